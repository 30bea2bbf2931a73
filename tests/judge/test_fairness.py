"""The paper judged by itself: if it is right, it passes; if nothing is behind it, not.

Every number of a claim is drawn as it would be found in two worlds, with the interval
that our runs gave it: in one the paper is right, in the other nothing is behind the
claim. What the paper prints is the truth where it prints a number, else ``truth``; a
theorem is taken as tight, at the end of its range, where it passes least often.
"""

import math

import numpy as np
import pytest

from dperm.core.experiment.config import compose
from dperm.judge.claims import PREDICTIONS
from dperm.judge.judge import FAILS, HELD, OPEN, Finding, combined, judged
from dperm.judge.judge import _combined as of_groups
from dperm.judge.number import Number
from dperm.report import claims, texts

DRAWS = 100
SURE = 0.9  # least chance to pass of a paper that is right
RARE = 0.1  # largest chance to pass where nothing is behind a claim
MANY = 60  # most groups of a claim that is tried: others take long
SIMULATED = 1  # claims that are tried, at least
TOO_FEW_RUNS = 0  # undecided claims that a right paper may fail, at most


def drawn(number, centre, generator):
    """A number around a centre, with the relative or absolute width of another."""
    if number.is_exact:
        return Number.of_any(centre)
    z = generator.normal()
    if number.low > 0 and centre > 0 and math.isfinite(number.high):
        half = math.log(number.high / number.low) / 2
        middle = centre * math.exp(half / 1.96 * z)
        return Number(middle, middle * math.exp(-half), middle * math.exp(half))
    half = (number.high - number.low) / 2
    middle = centre + half / 1.96 * z
    return Number(middle, middle - half, middle + half)


def chance(claim, numbers, centres):
    """How often a claim passes if its numbers are drawn around these centres."""
    generator = np.random.default_rng(0)
    passed = 0
    for _ in range(DRAWS):
        world = {
            name: drawn(numbers[name], centres[name], generator) for name in centres
        }
        seen = Finding(OPEN, numbers=world, absent={}, idle={})
        passed += combined(claim, seen).verdict in HELD
    return passed / DRAWS


def tight(claim):
    """The number of a theorem that is just true."""
    low, high, *_ = claim.range
    if math.isfinite(low) and math.isfinite(high):
        return (low + high) / 2
    return low if math.isfinite(low) else high


def truths(claim, theirs, follow, tables, numbers):
    """The number of every group if the paper is right; empty if it prints none."""
    if claim.truth is not None:
        found = of_groups(claim, tables, follow, str(claim.truth), numbers).numbers
        return {name: found[name].value for name in numbers if name in found}
    printed = judged(claim, theirs, follow).numbers if claim.table else {}
    if printed and set(numbers) <= set(printed):
        return {name: printed[name].value for name in numbers}
    if claim.kind in ("proof", "privacy", "print"):
        return dict.fromkeys(numbers, tight(claim))
    return {}


@pytest.fixture(scope="module")
def worlds():
    """Of every claim that can be simulated: verdict, chance if right, if not."""
    found = {}
    for config in texts.papers(compose([])):
        tables, follow = claims.tables(config), claims.arguments(config)
        loaded = claims.load(config)
        theirs = claims.published(config, loaded)
        for claim in loaded:
            finding = judged(claim, tables, follow)
            one = claim.read()[finding.shown]
            numbers = finding.numbers
            if not 0 < len(numbers) <= MANY or any(n.bare for n in numbers.values()):
                continue
            right = truths(one, theirs, follow, tables, numbers)
            if not right or one.table in PREDICTIONS:
                continue
            nothing = []
            for null in one.nulls:
                changed = one.changed(null) if isinstance(null, dict) else one
                text = changed.number if isinstance(null, dict) else null
                of_null = of_groups(changed, tables, follow, text, numbers).numbers
                centres = {n: of_null[n].value for n in numbers if n in of_null}
                nothing.append(chance(one, numbers, centres) if centres else 0.0)
            name = f"{config.paper.name} {claim.place} {claim.says[:40]}"
            found[name] = (finding, chance(one, numbers, right), max([0.0, *nothing]))
    return found


def test_a_paper_that_is_right_passes(worlds):
    assert len(worlds) >= SIMULATED
    unfair = {name: w[1] for name, w in worlds.items() if w[1] < SURE}
    decided = {n for n in unfair if worlds[n][0].verdict != OPEN}
    assert not decided, {name: unfair[name] for name in sorted(decided)}
    assert len(unfair) <= TOO_FEW_RUNS, unfair


def test_where_nothing_is_behind_a_claim_it_does_not_pass(worlds):
    kind = {n: w[2] for n, w in worlds.items() if w[2] > RARE}
    held = {n for n in kind if worlds[n][0].verdict in (*HELD, FAILS)}
    assert not held, {name: kind[name] for name in sorted(held)}
