"""Tables of the audit: the findings about every solver, and its epsilons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from dperm.audit.checks import BLIND, CHECKS, Audit, CheckResult, raised
from dperm.audit.mechanism import DELTA, Mechanism
from dperm.audit.solvers import NoSubjectError
from dperm.privacy.events import N, united

# effort of an audit: the defaults of ``Audit``
FULL_EFFORT: dict[str, int] = {}
SMALL_EFFORT = {"neighbours": 8, "runs": 40}
NEAR = 1e-3  # relative, between epsilons that grids have rounded
EPSILONS = ("claimed_epsilon", "true_epsilon", "epsilon")
KNOWN = (
    "subject",
    "calibration",
    *EPSILONS,
    "given",
)  # columns beside a finding's


def solver(
    name: str,
    subjects: Iterable[Mechanism],
    effort: Mapping[str, int],
    seed: int,
) -> Iterator[pd.DataFrame]:
    """Findings about a solver, one row per check, by subject.

    A solver that stops on ordinary records is caught by every check.

    Parameters
    ----------
    name
        As in the solver's YAML.
    subjects : iterable of Mechanism
        Made as they are asked for, so that what fails to be made is caught too.
    effort : mapping
        Arguments of ``Audit``.

    Raises
    ------
    NoSubjectError
        If it is private and nothing can be audited.
    """
    try:
        for m in subjects:
            yield findings(m, effort, seed)
    except NoSubjectError:
        raise
    except Exception as error:  # a user's solver may raise anything
        rows = [raised(check, error) for check in CHECKS]
        yield _rows(rows, name, "", math.nan, math.nan, math.nan, "")


def findings(
    m: Mechanism, effort: Mapping[str, int], seed: int
) -> pd.DataFrame:
    """Findings about one mechanism, one row per check."""
    checked = [*Audit(m, seed=seed, **effort).findings()]
    public = "; ".join(united((N,), m.ledger.given))
    lower = next(
        check.measured for check in checked if check.check == "epsilon"
    )
    return _rows(
        checked, m.name, m.calibration, m.claimed, m.true, lower, public
    )


def _rows(findings: list[CheckResult], *common: Any) -> pd.DataFrame:
    columns = dict(zip(KNOWN, common, strict=True))
    return pd.DataFrame(
        [{**columns, **asdict(finding)} for finding in findings]
    )


def epsilons(rows: pd.DataFrame) -> pd.DataFrame:
    """Claimed, true and audited epsilon, one row per subject and calibration."""
    groups = rows.groupby(["subject", "calibration"], sort=False)
    return pd.DataFrame([_epsilon(group) for _, group in groups])


def _epsilon(group: pd.DataFrame) -> dict[str, Any]:
    row = group.iloc[0]
    caught = group.check[group.caught]
    claimed, true, audited = (float(row[column]) for column in EPSILONS)
    status = "states no bound" if math.isinf(true) else "kept"
    broken = f"broken: {', '.join(caught)}" if len(caught) else status
    return {
        "algorithm": row.subject,
        "calibration": row.calibration,
        "delta": DELTA,
        "claimed_epsilon": claimed,
        "true_epsilon": true,
        "given": row.given,
        "audited_epsilon": audited,
        "reached": audited / true if math.isfinite(true) else 0.0,
        "tightness": group.set_index("check").measured["sensitivity"],
        "claim": claim(claimed, true, audited),
        "ledger": "blind" if (group.note == BLIND).any() else broken,
    }


def claim(claimed: float, true: float, audited: float) -> str:
    """What the audit says of a claimed epsilon."""
    if audited > claimed * (1 + NEAR):
        return "refuted"
    if math.isinf(true):
        return "no proof"
    if true > claimed * (1 + NEAR):
        return "too low"
    return (
        f"holds, {audited / true:.0%} reached"
        if audited
        else "no attack known"
    )
