"""Tables of the audit: the findings about every solver, and its epsilons."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from dperm.audit import solvers
from dperm.audit.checks import BLIND, CHECKS, Audit, raised
from dperm.audit.mechanism import DELTA, Mechanism
from dperm.core.privacy.ledger import N, united

ESTIMATORS = "dperm.compare.audited"  # a higher layer, so imported by its name
FULL: dict[str, int] = {}  # effort of an audit: the defaults of ``Audit``
SMALL = {"neighbours": 8, "runs": 40}
NEAR = 1e-3  # relative, between epsilons that grids have rounded
UNKNOWN = ("claimed_epsilon", "true_epsilon", "epsilon")


def subjects(
    name: str, algorithm: str, options: Mapping[str, Any]
) -> Iterator[Mechanism]:
    """A solver, and the estimators with it; these not for its variants.

    Raises NoSubjectError if it is private and nothing can be audited.
    """
    yield from solvers.mechanisms(name, algorithm, options)
    if name == algorithm:
        yield from importlib.import_module(ESTIMATORS).mechanisms(name)


def solver(
    name: str,
    algorithm: str,
    options: Mapping[str, Any],
    effort: Mapping[str, int],
    seed: int,
) -> Iterator[pd.DataFrame]:
    """Findings about a solver, one row per check, for one subject after the other.

    A solver that stops on ordinary records is caught by every check.

    Parameters
    ----------
    name, algorithm, options
        As in the solver's YAML.
    effort : mapping
        Arguments of ``Audit``.

    Raises
    ------
    NoSubjectError
        If it is private and nothing can be audited.
    """
    try:
        for m in subjects(name, algorithm, options):
            yield findings(m, effort, seed)
    except solvers.NoSubjectError:
        raise
    except Exception as error:  # a user's solver may raise anything
        rows = pd.DataFrame([asdict(raised(check, error)) for check in CHECKS])
        known = {"subject": name, "calibration": "", "given": ""}
        yield rows.assign(**known, **dict.fromkeys(UNKNOWN, math.nan))


def findings(m: Mechanism, effort: Mapping[str, int], seed: int) -> pd.DataFrame:
    """Findings about one mechanism, one row per check."""
    found = [asdict(one) for one in Audit(m, seed=seed, **effort).findings()]
    numbers = (m.claimed, m.true, found[-1]["measured"])
    known = {
        "subject": m.name,
        "calibration": m.kind,
        **dict(zip(UNKNOWN, numbers, strict=True)),
        "given": "; ".join(united((N,), m.ledger.given)),
    }
    return pd.DataFrame([{**known, **one} for one in found])


def epsilons(rows: pd.DataFrame) -> pd.DataFrame:
    """Claimed, true and audited epsilon, one row per subject and calibration."""
    groups = rows.groupby(["subject", "calibration"], sort=False)
    return pd.DataFrame([_epsilon(group) for _, group in groups])


def _epsilon(group: pd.DataFrame) -> dict[str, Any]:
    first, by_check = group.iloc[0], group.set_index("check")
    true, audited = float(first.true_epsilon), float(first.epsilon)
    return {
        "algorithm": first.subject,
        "calibration": first.calibration,
        "delta": DELTA,
        "claimed_epsilon": first.claimed_epsilon,
        "true_epsilon": true,
        "given": first.given,
        "audited_epsilon": audited,
        "reached": audited / true if math.isfinite(true) else 0.0,
        "tightness": by_check.measured["sensitivity"],
        "claim": claim(float(first.claimed_epsilon), true, audited),
        "ledger": _kept(group),
    }


def claim(claimed: float, true: float, audited: float) -> str:
    """What the audit says of a claimed epsilon."""
    if audited > claimed * (1 + NEAR):
        return "refuted"
    if math.isinf(true):
        return "no proof"
    if true > claimed * (1 + NEAR):
        return "too low"
    return f"holds, {audited / true:.0%} reached" if audited else "no attack known"


def _kept(group: pd.DataFrame) -> str:
    """Verdict on a ledger."""
    if (group.note == BLIND).any():
        return "blind"
    if group.caught.any():
        return f"broken: {', '.join(group.check[group.caught])}"
    unknown = math.isinf(float(group.true_epsilon.iloc[0]))
    return "states no bound" if unknown else "kept"
