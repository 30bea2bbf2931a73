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
    found = letters(sentence)
    return f"{len(found)}-{hashlib.sha256(found.encode()).hexdigest()[:16]}"


def stands_in(text, key):
    """Whether a text has the sentence with that key."""
    found, size = letters(text), int(key.split("-")[0])
    starts = range(len(found) - size + 1)
    return any(
        anchor_key(found[start : start + size]) == key for start in starts
    )


def letters(text):
    """Letters and digits of a text in lower case."""
    return "".join(
        filter(str.isalnum, unicodedata.normalize("NFKC", text).lower())
    )


if __name__ == "__main__":
    print(anchor_key(sys.argv[1]))
