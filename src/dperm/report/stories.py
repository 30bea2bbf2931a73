"""The story of a paper in five sentences, each put together from verdicts and numbers.

No sentence is written by hand: a rule picks a claim by its verdict, and its own words,
its place, its number and its interval are put into a frame. Another verdict gives
another sentence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import pandas as pd

from dperm.report.claims import HEADLINE
from dperm.report.evidence import Estimate
from dperm.report.verdicts import (
    CAVEAT,
    NOT,
    NOTHING,
    PENDING,
    REPRODUCED,
    UNDECIDED,
    VERDICTS,
    interval,
    rounded,
)

Claims = list[dict[str, Any]]
_OPEN = (UNDECIDED, NOTHING, PENDING)


@dataclass(frozen=True)
class Sentence:
    """A sentence, and the claim that it rests on, if it rests on a single one."""

    text: str
    claim: str = ""


def story(claims: Claims, costs: Claims, best: pd.DataFrame) -> list[Sentence]:
    """Five sentences on a paper.

    Parameters
    ----------
    claims : list of dict
        Its ``entries``.
    costs : list of dict
        ``name``, ``target``, ``low``, ``high``: true epsilons of its printed noise.
    best : DataFrame
        ``board.leaders`` of its problems.
    """
    return [
        counts(claims),
        _picked(claims, (REPRODUCED, CAVEAT), "Nothing of it was reproduced."),
        _picked(claims, (NOT,), "Nothing that was tested contradicts it."),
        _open(claims),
        _price(costs, claims) or leading(best),
    ]


def counts(claims: Claims) -> Sentence:
    """How many of its sentences and cells have which verdict."""
    own = [claim for claim in claims if claim["kind"] in HEADLINE]
    if not own:
        return Sentence("It has no sentence or printed number that a run can test.")
    parts = [
        f"{count} {verdict}"
        for verdict in VERDICTS
        if (count := sum(claim["verdict"] == verdict for claim in own))
    ]
    sentences = sum(claim["kind"] == "sentence" for claim in own)
    sizes = [_plural(sentences, "sentence"), _plural(len(own) - sentences, "cell")]
    of = " and ".join(size for size in sizes if not size.startswith("0 "))
    return Sentence(f"Of {of}: {', '.join(parts)}.")


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")


def _picked(claims: Claims, verdicts: tuple[str, ...], otherwise: str) -> Sentence:
    """The weightiest claim of the first of these verdicts that there is."""
    for verdict in verdicts:
        found = _weightiest(claims, (verdict,))
        if found:
            return Sentence(_quoted(found), found["id"])
    return Sentence(otherwise)


def _weightiest(claims: Claims, verdicts: tuple[str, ...]) -> dict[str, Any] | None:
    """The first in this order: one of the ten to see first, a sentence, a cell."""
    some = [claim for claim in claims if claim["verdict"] in verdicts]
    order = {"sentence": 0, "cell": 1, "variant": 2, "proof": 3, "privacy": 4}
    some.sort(key=lambda claim: (not claim["first"], order.get(claim["kind"], 5)))
    return some[0] if some else None


def _quoted(claim: dict[str, Any]) -> str:
    verdict = str(claim["verdict"])
    found = number(claim)
    parts = [f"found {found}"] if found else []
    parts += [f"published {claim['published']}"] if claim["published"] else []
    end = f": {', '.join(parts)}." if parts else "."
    return f"{verdict.capitalize()}: “{claim['claim']}” ({claim['place']}){end}"


def number(claim: dict[str, Any]) -> str:
    """What was found, with its interval; empty where nothing was."""
    if pd.isna(claim["reproduced"]):
        return ""
    ends = (float(claim[key]) for key in ("reproduced", "ci_low", "ci_high"))
    return interval(Estimate(*ends))


def _open(claims: Claims) -> Sentence:
    """What decides nothing yet, and the weightiest of that."""
    found = _weightiest(claims, _OPEN)
    if found is None:
        return Sentence("Every claim that could be tested is decided.")
    count = sum(claim["verdict"] in _OPEN for claim in claims)
    others = f"{_plural(count, 'claim')} of all kinds {'is' if count == 1 else 'are'}"
    return Sentence(f"{others} open. {_quoted(found)}", found["id"])


def _price(costs: Claims, claims: Claims) -> Sentence | None:
    """What the printed noise costs, over what it is said to cost."""
    known = [cost for cost in costs if isinstance(cost["target"], Real)]
    if not known:
        privacy = [claim for claim in claims if claim["kind"] == "privacy"]
        found = _weightiest(privacy, (NOT, REPRODUCED, CAVEAT))
        return Sentence(_quoted(found), found["id"]) if found else None
    low = min(cost["low"] / cost["target"] for cost in known)
    high = max(cost["high"] / cost["target"] for cost in known)
    if high == math.inf:
        return Sentence(
            f"Its printed noise costs from {rounded(low)} times the epsilon it states "
            "to no finite epsilon at all, under the strict accountant."
        )
    proved = max(cost["proved"] / cost["target"] for cost in known)
    verdict = "whether ever more than it says no proof tells"
    if high <= 1:
        verdict = "never more than it says"
    elif proved > 1:
        verdict = "more than it says somewhere"
    return Sentence(
        f"Its printed noise costs {rounded(low)} to {rounded(high)} times the epsilon "
        f"it states, under the strict accountant: {verdict}."
    )


def leading(best: pd.DataFrame) -> Sentence:
    """Who leads how often, over data sets and true epsilons."""
    if best.empty:
        return Sentence("No error on fresh runs at a known epsilon is there yet.")
    wins = best["algorithm"].value_counts()
    first = " and ".join(sorted(wins.index[wins == wins.iloc[0]]))
    return Sentence(
        f"Over {len(best)} pairs of data set and true epsilon, {first} "
        f"{'have' if ' and ' in first else 'has'} the least mean error on fresh runs "
        f"most often, {wins.iloc[0]} times."
    )
