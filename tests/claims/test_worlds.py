"""Wrong worlds, tables that plausible mistakes would have written, are noticed.

A claim that holds should notice them: it holds no longer, or names missing groups. As
many do as when this was written, but for DP-CD's thresholds (Section 5.1): measured on
100 runs they gain 7.2 times, so far from the required 5 that 1.4 times does not matter.
"""

import functools

import numpy as np
import pytest

from dperm.claims.claims import groups
from dperm.claims.judge import SUPPORTED, VERDICTS, judged
from dperm.claims.words import ends
from dperm.config.config import compose
from dperm.report import claims, texts

METHODS = ("algorithm", "constants", "solver", "method", "sampling", "first")
ERRORS = (
    "mean",
    "fresh_mean",
    "relative_error",
    "excess",
    "share",
    "ratio",
    "error",
)


def key_of(table):
    """The column that names methods, if there is one."""
    return next((name for name in METHODS if name in table), None)


def named(claim, table):
    """Methods of a table that a claim names, the first ones first."""
    key = key_of(table)
    text = repr([claim.estimate, claim.rows, claim.each])
    known = (
        [one for one in table[key].unique() if f"{one}" in text] if key else []
    )
    return sorted(known, key=lambda one: text.index(f"{one}"))


def exchanged(claim, table):
    """The names of two methods exchanged: the claim's first, and another."""
    key, mine = key_of(table), named(claim, table)
    if not mine:
        return table
    others = [
        one for one in [*mine[1:], *table[key].unique()] if one != mine[0]
    ]
    pair = {mine[0]: others[0], others[0]: mine[0]} if others else {}
    return table.assign(**{key: table[key].replace(pair)})


def half_empty(claim, table):
    """Every second row has no numbers."""
    floats = np.array([kind.kind == "f" for kind in table.dtypes])
    return table.mask((np.arange(len(table))[:, None] % 2 == 1) & floats)


def without_a_group(claim, table):
    """The rows of the claim's first group are lost."""
    point = {k: v for k, v in groups(claim.each)[0].items() if k in table}
    if not point:
        return table
    lost = np.logical_and.reduce([table[k] == v for k, v in point.items()])
    return table[~lost]


def times(factor):
    """Errors of the claim's first method, or all, are multiplied."""

    def change(claim, table):
        key, mine = key_of(table), named(claim, table)
        own = table[key] == mine[0] if mine else table.index >= 0
        columns = [
            one
            for name in ERRORS
            if name in table
            for one in (name, *ends(list(table), name))
        ]
        return table.assign(
            **{
                one: table[one].where(~own, factor * table[one])
                for one in columns
            }
        )

    return change


WORLDS = {
    "names exchanged": exchanged,
    "half empty": half_empty,
    "a group lost": without_a_group,
    "errors x 0.7": times(0.7),
    "errors x 1.4": times(1.4),
}


def noticed(claim, found, tables, arguments):
    """Names of the worlds that a claim notices, which holds as was found."""
    seen, first = [], claim.read()[found.shown]

    def world(change):
        @functools.cache
        def changed(file):
            is_printed = file.startswith("published/")
            return tables(file) if is_printed else change(first, tables(file))

        return changed

    for name, change in WORLDS.items():
        other = judged(claim, world(change), arguments)
        worse = VERDICTS.index(other.verdict) > VERDICTS.index(found.verdict)
        if worse or len(other.missing) > len(found.missing):
            seen.append(name)
    return seen


# --- the claims of all papers ---------------------------------------------------------

MANY = 60  # most groups of a claim that is tried: others take long
NOTICED = {  # claims that notice a world, of those that hold
    "names exchanged": 50,
    "half empty": 91,
    "a group lost": 99,
    "errors x 0.7": 13,
    "errors x 1.4": 7,
}
HOLD = 111  # of the claims that are tried


@pytest.fixture(scope="module")
def seen():
    """Worlds that every claim notices, of those that hold and read a table."""
    found = {}
    config = compose([])
    for paper in texts.papers(config):
        tables = claims.tables(paper, config.output)
        arguments = claims.arguments(paper.name)
        for claim in claims.load(paper, tables):
            parts = claim.read().values()
            most = max(len(groups(part.each)) for part in parts)
            if most > MANY or not any(part.table for part in parts):
                continue
            finding = judged(claim, tables, arguments)
            if finding.verdict in SUPPORTED:
                name = f"{paper.name} {claim.source} {claim.statement}"
                found[name] = noticed(claim, finding, tables, arguments)
    return found


@pytest.mark.parametrize("world", WORLDS)
def test_claims_notice_wrong_worlds(seen, world):
    assert len(seen) >= HOLD
    assert sum(world in names for names in seen.values()) >= NOTICED[world]


def test_most_claims_notice_something(seen):
    blind = [name for name, names in seen.items() if not names]
    assert len(blind) <= 4, blind
