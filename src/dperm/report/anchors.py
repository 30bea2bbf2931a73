"""Anchors: the sentence of a paper that a claim stands for.

The papers' sentences are not part of this project. Instead, a claim has the section of
its sentence, the number of its letters and digits, and their digest. A sentence with
one altered word is not found.
"""

from __future__ import annotations

import argparse
import hashlib
import textwrap
import unicodedata
from functools import partial
from pathlib import Path

from dperm.core.experiment import config as configuration
from dperm.core.experiment.locate import ConfigError
from dperm.report.claims import load, papers


def anchor_key(sentence: str) -> str:
    """Key of a sentence: number and digest of its letters and digits.

    Line breaks, hyphens, ligatures and capitals make no difference.

    >>> anchor_key("DP-CD runs faster.") == anchor_key("DPCD Runs faster")
    True
    """
    text, _ = _letters(sentence)
    return f"{len(text)}-{_digest(text)}"


def anchored(text: str, key: str) -> str:
    """The sentence with that key, as it stands in a text; empty if there is none."""
    length, digest = key.split("-")
    letters, places = _letters(text)
    size = int(length)
    for start in range(len(letters) - size + 1):
        if _digest(letters[start : start + size]) == digest:
            return " ".join(text[places[start] : places[start + size - 1] + 1].split())
    return ""


def _letters(text: str) -> tuple[str, list[int]]:
    """Letters and digits of a text in lower case, and the place of each."""
    kept = [
        (letter, place)
        for place, sign in enumerate(text)
        for letter in unicodedata.normalize("NFKC", sign).lower()
        if letter.isalnum()
    ]
    return "".join(letter for letter, _ in kept), [place for _, place in kept]


def _digest(letters: str) -> str:
    return hashlib.sha256(letters.encode()).hexdigest()[:16]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``dperm anchors``."""
    parser.add_argument("folder", type=Path, help="with the papers' texts, <paper>.txt")
    parser.add_argument("--key", metavar="SENTENCE", help="print its key, and stop")


def main(options: argparse.Namespace) -> None:
    """Print every anchored claim with its sentence, or the key of a sentence.

    Raises ConfigError if the folder lacks a paper's text, or a text lacks a sentence.
    """
    if options.key:
        print(anchor_key(options.key))
        return
    wrapped = partial(textwrap.fill, width=88, subsequent_indent=" " * 12)
    lost = 0
    for config in papers(configuration.compose([])):
        path = options.folder / f"{config.paper.name}.txt"
        for claim in load(config):
            if not claim.anchor:
                continue
            if not path.is_file():
                text = f"{path}: no such file; expected the paper's text there"
                raise ConfigError(text)
            sentence = anchored(path.read_text("utf-8"), claim.anchor["sentence"])
            lost += not sentence
            print(f"{config.paper.name}, {claim.place}")
            print(f"  claim:    {wrapped(claim.says)}")
            print(f"  sentence: {wrapped(sentence or 'NOT FOUND')}\n")
    if lost:
        raise ConfigError(f"{lost} anchors name no sentence of these texts")
