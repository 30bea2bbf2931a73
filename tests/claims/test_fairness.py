"""The paper judged by itself: if it is right, it passes; if nothing is behind it, not.

Every number of a claim is drawn as runs would give it, with the width that ours have,
in three worlds. In the first the paper is right: the truth is what it prints, or
``truth`` of its claim. In the second it is only just right: a theorem, which names no
number but an end, is at that end. In the third nothing is behind the claim.
"""

import math

import numpy as np
import pytest

from dperm.claims.claims import groups, made
from dperm.claims.judge import (
    CONTRADICTED,
    IN_PART,
    REPRODUCED,
    SUPPORTED,
    UNDECIDED,
    VERDICTS,
    Finding,
    combined,
    judged,
)
from dperm.claims.judge import _combined as of_groups
from dperm.claims.number import Number
from dperm.config.config import compose
from dperm.report import claims, texts

DRAWS = 400
SURE = 0.9  # least chance to pass of a paper that is right
RARE = 0.1  # largest chance to pass with nothing behind a claim, and of a conviction
MANY = 60  # most groups of a claim that is tried: others take long
SIDE = 1.96  # of a 95 % interval, in standard errors


def drawn(numbers, centres, generator):
    """Estimates, and both ends of their intervals, around centres: (draws, groups)."""
    value, low, high = np.array([(n.value, n.low, n.high) for n in numbers]).T
    z = generator.normal(size=(DRAWS, len(numbers))) / SIDE
    with np.errstate(all="ignore"):
        # Errors of a ratio are relative, those of a difference are not: the lesser.
        relative = centres * np.log(high / low) < high - low
        on_log = (low > 0) & (centres > 0) & relative
        width = np.where(on_log, np.log(high / low), high - low) / 2
    # or what is proved at most
    exact = (low == high) | ((value == high) & (low == 0))
    width = np.where(exact, 0.0, width)
    wide = np.isinf(width)
    width = np.where(wide, 0.0, width)
    middle = np.where(on_log, centres * np.exp(width * z), centres + width * z)
    ends = []
    for side in (-1, 1):
        end = np.where(
            on_log, middle * np.exp(side * width), middle + side * width
        )
        ends.append(np.where(wide, side * np.inf, end))
    return middle, *ends


def places(claim, middle, low, high):
    """Places in ``VERDICTS`` of a claim's verdicts on draws of all groups."""
    least, most, loose_least, loose_most = claim.range
    holds = (least <= middle) & (middle <= most)
    inside = np.where(
        holds, VERDICTS.index(REPRODUCED), VERDICTS.index(IN_PART)
    )
    outside = (high < loose_least) | (low > loose_most)
    other = np.where(
        outside, VERDICTS.index(CONTRADICTED), VERDICTS.index(UNDECIDED)
    )
    loose = (loose_least <= low) & (high <= loose_most)
    ranked = np.sort(np.where(loose, inside, other), axis=1)
    share = {"all": 1.0, "any": 0.0}.get(claim.required, claim.required)
    return ranked[:, max(math.ceil(share * ranked.shape[1]), 1) - 1]


def verdicts(claim, numbers, centres):
    """Of all draws around centres, by group; the first is the judge's own as well."""
    names = [name for name in numbers if name in centres]
    centre = np.array([centres[name] for name in names])
    seeded = np.random.default_rng(0)
    draws = drawn([numbers[name] for name in names], centre, seeded)
    rows = zip(*(part[0] for part in draws), strict=True)
    first = {
        name: Number(*map(float, row))
        for name, row in zip(names, rows, strict=True)
    }
    own = combined(
        claim, Finding(UNDECIDED, numbers=first, absent={}, idle={})
    ).verdict
    found = places(claim, *draws)
    assert VERDICTS[found[0]] == own, f"{claim.source}: the judge says {own}"
    return found


def passing(found, null_places=()):
    """The share of draws in which a claim holds, and none of its nulls as well."""
    held = np.isin(found, [VERDICTS.index(one) for one in SUPPORTED])
    for null_place in null_places:
        held &= null_place > found
    return float(held.mean())


def edge(claim):
    """The number that is only just in a range: its end, or its middle of two."""
    low, high, *_ = claim.range
    if math.isfinite(low) and math.isfinite(high):
        return (low + high) / 2
    return low if math.isfinite(low) else high


class Court:
    """A claim under the reading that is shown, before worlds that are not ours."""

    def __init__(self, tables, follow, claim, finding):
        self.claim, self.numbers = claim.read()[finding.shown], finding.numbers
        self.tables, self.follow = tables, follow

    def read(self, claim, text, numbers):
        """What an expression gives, where the claim's own numbers are these."""
        return of_groups(claim, self.tables, self.follow, text, numbers)

    def nulls(self, centres):
        """What every null gives: the finding on it."""
        numbers = {name: Number.of_any(one) for name, one in centres.items()}
        for null in self.claim.nulls:
            is_change = isinstance(null, dict)
            changed = self.claim.changed(null) if is_change else self.claim
            text = changed.estimate if is_change else null
            yield self.read(changed, text, numbers)

    def chance(self, centres):
        """How often the claim holds in a world of these numbers."""
        null_places = [
            VERDICTS.index(one.verdict) for one in self.nulls(centres)
        ]
        return passing(
            verdicts(self.claim, self.numbers, centres), null_places
        )

    def truths(self, printed):
        """The number of every group if the paper is right; empty if it names none."""
        if self.claim.truth is not None:
            true = self.read(
                self.claim, str(self.claim.truth), self.numbers
            ).numbers
            return {name: one.value for name, one in true.items()}
        if printed and set(self.numbers) <= set(printed):
            return {name: printed[name].value for name in self.numbers}
        if all(number.is_exact for number in self.numbers.values()):
            return dict.fromkeys(self.numbers, edge(self.claim))
        return {}

    def chances(self, printed):
        """Chances by the world: to hold, or to be contradicted if it is just so."""
        right = self.truths(printed)
        found = {}
        if right:
            found["right"] = self.chance(right)
        else:
            just = dict.fromkeys(self.numbers, edge(self.claim))
            places = verdicts(self.claim, self.numbers, just)
            found["convicted"] = float(
                (places == VERDICTS.index(CONTRADICTED)).mean()
            )
        truths = right or {
            name: one.value for name, one in self.numbers.items()
        }
        centres = [
            {name: one.value for name, one in null.numbers.items()}
            for null in self.nulls(truths)
        ]
        worlds = [
            self.chance(one) for one in centres if {*one} >= {*self.numbers}
        ]
        return found | ({"nothing": max(worlds)} if worlds else {})


@pytest.fixture(scope="module")
def worlds():
    """Chances of every claim that has numbers with intervals, by its name."""
    found = {}
    config = compose([])
    for paper in texts.papers(config):
        tables = claims.tables(paper, config.output)
        follow = claims.arguments(paper.name)
        loaded = claims.load(paper, tables)
        theirs = claims.published(paper, loaded)
        for claim in loaded:
            if "proof(" in claim.estimate or claim.kind in (
                "cells",
                "variant",
            ):
                continue  # exact, and what is printed is 1; or no claim of the paper
            if (
                max(len(groups(part.each)) for part in claim.read().values())
                > MANY
            ):
                continue
            finding = judged(claim, tables, follow)
            numbers = finding.numbers.values()
            if not numbers or any(number.bare for number in numbers):
                continue
            printed = (
                judged(claim, theirs, follow).numbers if claim.table else {}
            )
            name = f"{paper.name} {claim.source} | {claim.statement[:60]}"
            found[name] = Court(tables, follow, claim, finding).chances(
                printed
            )
    return found


@pytest.mark.parametrize(
    ("centre", "count", "changed", "low", "high"),
    [
        (10, 1, {"at_least": 7}, SURE, 1),
        (
            10,
            1,
            {"at_least": 10},
            0,
            RARE,
        ),  # a range that ends at what is true
        # and that nine must keep
        (10, 9, {"at_least": 10, "tolerance": 8}, RARE, SURE),
        (1, 1, {"above": 1}, 0, RARE),
        (
            1,
            9,
            {"above": 1, "required": "any"},
            RARE,
            1,
        ),  # one of nine by luck
    ],
)
def test_an_unfair_or_an_empty_claim_would_be_seen(
    centre, count, changed, low, high
):
    entry = {
        "source": "P",
        "statement": "S",
        "kind": "sentence",
        "estimate": "v",
    }
    numbers = {str(k): Number(10.0, 9.0, 100 / 9) for k in range(count)}
    claim = made(entry | changed)
    chance = passing(verdicts(claim, numbers, dict.fromkeys(numbers, centre)))
    assert low <= chance <= high


# --- the claims of all papers ---------------------------------------------------------

TRIED = {"right": 99, "convicted": 9, "nothing": 104}  # claims, in each world


@pytest.mark.parametrize(
    ("kind", "allowed"),
    [
        ("right", lambda chance: chance >= SURE),
        ("convicted", lambda chance: chance <= RARE),
        ("nothing", lambda chance: chance <= RARE),
    ],
)
def test_no_claim_is_unfair_or_empty(worlds, kind, allowed):
    """Right papers pass, just theorems are not contradicted, nothing does not pass."""
    chances = {
        name: each[kind] for name, each in worlds.items() if kind in each
    }
    print(f"{kind}: {len(chances)} claims tried")
    assert len(chances) >= TRIED[kind]
    wrong = {name: one for name, one in chances.items() if not allowed(one)}
    assert not wrong


def test_every_sentence_says_what_is_true_if_it_is_right(worlds):
    told = "right", "convicted"
    assert [
        name for name, each in worlds.items() if not {*told} & {*each}
    ] == []
