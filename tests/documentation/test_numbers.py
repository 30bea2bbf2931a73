"""Every number that a page states as a result is one of the results.

``numbers.yaml`` has, for each page, the words of it that hold results. The numbers in
the words, in their order, are compared with the values of a table at as many digits as
the page writes. A value is a pandas expression over the table ``t``; what a result is
compared with (a published number, say) is a plain number. ``read`` reads another
table.
"""

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[2]
STATED = yaml.safe_load(
    Path(__file__).with_name("numbers.yaml").read_text("utf-8")
)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")  # not that of log1
SECTION = "## What we found"
CASES = [
    (page, one) for page, rows in STATED.items() for one in rows["results"]
]


def plain(text):
    """The words of a page on one line, thousands closed up."""
    return re.sub(r"(?<=\d) (?=\d{3}\b)", "", " ".join(text.split()))


def values(case):
    def read(table):
        return pd.read_csv(ROOT / f"{table}.csv")

    t = read(case["table"]) if "table" in case else None
    found = []
    for value in case["are"]:
        one = value
        if isinstance(value, str):
            one = eval(value, {"t": t, "np": np, "read": read})
        found += list(np.ravel(one))
    return [float(one) for one in found]


def agrees(word, value):
    """Whether a written number is the value, rounded as the page rounds."""
    decimals = len(word.partition(".")[2])
    digits = len(word.strip("-").replace(".", "").strip("0")) or 1
    size = 10.0**-decimals
    if not decimals and value:  # 440000 has as many digits as it shows
        size = max(
            1.0, 10.0 ** (math.floor(math.log10(abs(value))) + 1 - digits)
        )
    return abs(float(word) - value) <= 0.5 * size * (1 + 1e-6)


@pytest.mark.parametrize(("page", "case"), CASES, ids=lambda x: str(x)[:40])
def test_the_page_states_the_result(page, case):
    words = plain(str(case["says"]))
    assert words in plain((ROOT / page).read_text("utf-8")), f"{page}: {words}"
    written, found = NUMBER.findall(words), values(case)
    assert len(written) == len(found), f"{page}: {words}: {found}"
    pairs = zip(written, found, strict=True)
    assert all(agrees(*pair) for pair in pairs), (
        f"{page}: {words}: found {found}"
    )


@pytest.mark.parametrize("page", STATED)
def test_every_number_is_one_of_them(page):
    """What is left are settings, which the list names."""
    section = STATED[page].get("section", SECTION)
    text = (
        (ROOT / page)
        .read_text("utf-8")
        .partition(section)[2]
        .partition("\n## ")[0]
    )
    text = plain(
        re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)|commit [0-9a-f]{8}", "", text)
    )
    for case in STATED[page]["results"]:
        text = text.replace(
            plain(re.sub(r"`[^`]*`", "", str(case["says"]))), ""
        )
    for words in STATED[page]["settings"]:
        text = text.replace(plain(str(words)), "")
    assert NUMBER.findall(text) == []
