"""Anchors: the sentence of a paper that a claim stands for.

The papers' sentences are not part of this project. Instead, a claim has the section of
its sentence, the number of its letters and digits, and their digest, which
``python tests/report/anchors.py "A sentence."`` prints.
"""

import hashlib
import sys
import unicodedata


def anchor_key(sentence):
    """Number and digest of letters and digits, whatever the lines and capitals."""
    text, _ = _letters(sentence)
    return f"{len(text)}-{_digest(text)}"


def anchored(text, key):
    """The sentence with that key, as it stands in a text; empty if there is none."""
    size = int(key.split("-")[0])
    letters, places = _letters(text)
    for start in range(len(letters) - size + 1):
        if f"{size}-{_digest(letters[start : start + size])}" == key:
            return " ".join(text[places[start] : places[start + size - 1] + 1].split())
    return ""


def _letters(text):
    """Letters and digits of a text in lower case, and the place of each."""
    kept = [
        (letter, place)
        for place, sign in enumerate(text)
        for letter in unicodedata.normalize("NFKC", sign).lower()
        if letter.isalnum()
    ]
    return "".join(letter for letter, _ in kept), [place for _, place in kept]


def _digest(letters):
    return hashlib.sha256(letters.encode()).hexdigest()[:16]


if __name__ == "__main__":
    print(anchor_key(sys.argv[1]))
