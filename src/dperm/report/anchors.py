"""Anchors: which sentence of a paper a claim stands for.

The papers' sentences are not part of this project. A claim names its section, and how
many letters and digits its sentence has, with a digest. ``dperm anchors FOLDER``
finds it in a paper's text; a sentence of which one word was altered is not found.
"""

from __future__ import annotations

import argparse
import hashlib
import textwrap
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dperm.core.experiment import config as configuration
from dperm.core.experiment import schema
from dperm.core.experiment.locate import ConfigError
from dperm.report.claims import load, papers

DIGITS = 16  # of a digest


class Found(NamedTuple):
    """A claim beside its sentence; ``sentence`` is empty where it was not found."""

    paper: str
    claim: schema.Claim
    sentence: str


def key(sentence: str) -> str:
    """The key of a sentence: its length and its digest, both of letters and digits.

    Line breaks, hyphens, ligatures and capitals make no difference.

    >>> key("DP-CD runs faster.") == key("DPCD Runs faster")
    True
    """
    text, _ = _letters(sentence)
    return f"{len(text)}-{_digest(text)}"


def find(text: str, wanted: str) -> str:
    """The sentence of that key in a text, in the text's own words; empty if none."""
    length, digest = wanted.split("-")
    letters, places = _letters(text)
    size = int(length)
    for start in range(len(letters) - size + 1):
        if _digest(letters[start : start + size]) == digest:
            found = text[places[start] : places[start + size - 1] + 1]
            return " ".join(found.split())
    return ""


def found(config: schema.Config, folder: Path) -> Iterator[Found]:
    """Every anchored claim of all papers beside its sentence.

    Raises ConfigError if the folder does not hold a paper's text.
    """
    for paper in papers(config):
        claims = [claim for claim in load(paper) if claim.anchor]
        path = folder / f"{paper.paper.name}.txt"
        if claims and not path.is_file():
            raise ConfigError(f"{path}: no such file; expected the paper's text there")
        text = path.read_text(encoding="utf-8") if claims else ""
        for claim in claims:
            wanted = claim.anchor.sentence if claim.anchor else ""
            yield Found(paper.paper.name, claim, find(text, wanted))


def arguments(parser: argparse.ArgumentParser) -> None:
    """Of ``dperm anchors``."""
    parser.add_argument("folder", type=Path, help="with the papers' texts, <paper>.txt")
    parser.add_argument("--key", metavar="SENTENCE", help="print its key, and stop")


def main(options: argparse.Namespace) -> None:
    """Print every claim beside its sentence, or the key of a sentence.

    Raises ConfigError if a sentence is not found.
    """
    if options.key:
        print(key(options.key))
        return
    lost = 0
    for paper, claim, sentence in found(configuration.compose([]), options.folder):
        lost += not sentence
        print(f"{paper}, {claim.place}\n  claim:    {_wrapped(claim.claim)}")
        print(f"  sentence: {_wrapped(sentence or 'NOT FOUND')}\n")
    if lost:
        raise ConfigError(f"{lost} anchors name no sentence of these texts")


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 88, subsequent_indent=" " * 12)


def _letters(text: str) -> tuple[str, list[int]]:
    """Letters and digits of a text in lower case, and where each of them stands."""
    kept = [
        (letter, place)
        for place, sign in enumerate(text)
        for letter in unicodedata.normalize("NFKC", sign).lower()
        if letter.isalnum()
    ]
    return "".join(letter for letter, _ in kept), [place for _, place in kept]


def _digest(letters: str) -> str:
    return hashlib.sha256(letters.encode()).hexdigest()[:DIGITS]
