"""Write a page's numbers anew: ``PYTHONPATH=tests python -m documentation.renew PAGE``.

Each number in the words of ``numbers.yaml`` becomes that of today's results, with as
many decimals as before, in the page and in the list. What the words say of the numbers
(ahead, less, none) is for a reader to check.
"""

from __future__ import annotations

import re
import sys

from documentation.test_numbers import ROOT, STATED, plain, values

WRITTEN = re.compile(r"(?<![\w.])-?\d+(?: \d{3}\b)*(?:\.\d+)?")
LIST = ROOT / "tests/documentation/numbers.yaml"


def number(word: str, value: float) -> str:
    """A value with the decimals of a written number; thousands apart."""
    decimals = len(word.partition(".")[2])
    return f"{value:,.{decimals}f}".replace(",", " ")


def renewed(words: str, numbers: list[float]) -> str:
    """Words with other numbers, in their order."""
    rest = iter(numbers)
    return WRITTEN.sub(lambda written: number(written[0], next(rest)), words)


def spaced(words: str) -> str:
    """A pattern of words, however their lines are broken."""
    return r"\s+".join(map(re.escape, words.split()))


def renew(page: str) -> None:
    """Write the page and the list anew; print what changed."""
    text = (ROOT / page).read_text("utf-8")
    listed = LIST.read_text("utf-8")
    for case in STATED[page]["results"]:
        words = str(case["says"])
        numbers = values(case)
        match = re.search(spaced(words), text)
        if match is None or len(WRITTEN.findall(words)) != len(numbers):
            sys.exit(f"{page}: {words}: found {numbers}")
        changed = renewed(words, numbers)
        text = text.replace(match[0], renewed(match[0], numbers))
        listed = listed.replace(words, changed)
        if plain(changed) != plain(words):
            print(changed)
    (ROOT / page).write_text(text, "utf-8")
    LIST.write_text(listed, "utf-8")


if __name__ == "__main__":
    renew(sys.argv[1])
