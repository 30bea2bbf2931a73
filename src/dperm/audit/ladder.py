"""The audit as tables: every solver, who caught what, and how often in vain.

A solver of the reader's own is held to its transcript before it runs: releases on small
data must stay within its ledger, and weights must follow from releases. That takes a
second and proves little; ``dperm audit`` looks for more.
"""

from __future__ import annotations

import functools
import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
from joblib import Parallel, delayed

from dperm.accountants.intervals import epsilon_interval
from dperm.audit.climbing import ROUNDING, Effort, Ladder
from dperm.audit.controls import CONTROLS
from dperm.audit.registry import estimators, plain, subjects
from dperm.audit.rungs import BLIND, climb, published, stopped
from dperm.audit.subjects import Subject
from dperm.core import solvers
from dperm.core.privacy.ledger import N, united

log = logging.getLogger(__name__)

CONFIDENCE = 0.95  # of a whole table, all statistical tests in it together
TESTS = 600  # at most: four a subject, a hundred and fifty subjects
FULL = Effort(level=(1 - CONFIDENCE) / TESTS)
SMALL = Effort(level=FULL.level, pairs=8, draws=40, samples=80, losses=12)

# Sound mechanisms of every kind of release, audited again and again.
SOUND: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("dp_cd", "dp_cd", {}),
    ("dp_sgd", "dp_sgd", {}),
    ("dp_gcd_gumbel", "dp_gcd", {"noise": "gumbel"}),
    ("dp_skgd_full", "dp_skgd", {"blocks": 1}),
    ("phased_sgd", "phased_sgd", {}),
)
AGAIN = Effort(level=FULL.level, pairs=6, draws=100, samples=400, losses=60)
NEAR = 1e-3  # relative, between epsilons that grids have rounded


def solver(
    name: str, algorithm: str, options: dict[str, Any], effort: Effort, seed: int
) -> pd.DataFrame:
    """What every rung finds of a solver, a row a rung, under both calibrations.

    Parameters
    ----------
    name, algorithm : str
        As in the solver's YAML.
    """
    try:
        every = [*subjects(name, algorithm, options), *estimators(name, algorithm)]
        rows = [findings(one, effort, seed) for one in every]
    except Exception as error:  # it does not run on ordinary records
        return _stopped(name, error, effort)
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def _stopped(name: str, error: Exception, effort: Effort) -> pd.DataFrame:
    """Rows of a solver that cannot be audited: every rung has caught it."""
    rows = pd.DataFrame([asdict(found) for found in stopped(error)])
    unknown = ("claimed_epsilon", "true_epsilon", "epsilon_low", "epsilon_high")
    text = {"subject": name, "calibration": "", "given": "", "reason": ""}
    known = {**text, **dict.fromkeys(unknown, math.nan), "delta": math.nan}
    return rows.assign(**known, level=effort.level, exact=False)


def findings(subject: Subject, effort: Effort, seed: int) -> pd.DataFrame:
    """What every rung finds of one subject, a row a rung."""
    ladder = Ladder(subject, effort, seed)
    rows = pd.DataFrame([asdict(found) for found in climb(ladder)])
    known = {
        "subject": subject.name,
        "calibration": subject.calibration,
        "claimed_epsilon": subject.claimed_epsilon,
        "true_epsilon": subject.true_epsilon,
        **stated(subject),
        "delta": subject.delta,
        "level": effort.level,
        "exact": ladder.audited.exact,
        "reason": subject.reason,
    }
    for place, (key, value) in enumerate(known.items()):
        rows.insert(place, key, value)
    return rows


def stated(subject: Subject) -> dict[str, Any]:
    """What is proved of the ledger's epsilon, and what it takes for granted."""
    low, high = epsilon_interval(subject.ledger, subject.delta)
    assumed = "; ".join(united((N,), subject.ledger.given))
    return {"epsilon_low": low, "epsilon_high": high, "given": assumed}


def epsilons(rows: pd.DataFrame) -> pd.DataFrame:
    """Claimed, true and audited epsilon, a row a subject and calibration."""
    keys = ["subject", "calibration"]
    return pd.DataFrame(
        [_epsilon(group) for _, group in rows.groupby(keys, sort=False)]
    )


def _epsilon(group: pd.DataFrame) -> dict[str, Any]:
    first, by_rung = group.iloc[0], group.set_index("rung")
    claimed, true = float(first.claimed_epsilon), float(first.true_epsilon)
    audited = float(group.epsilon.max())
    exact = bool(first.exact) and audited == float(by_rung.epsilon["transcript"])
    reached = audited / true if math.isfinite(true) else 0.0
    return {
        "algorithm": first.subject,
        "calibration": first.calibration,
        "delta": first.delta,
        "claimed_epsilon": claimed,
        "true_epsilon": true,
        "epsilon_low": first.epsilon_low,
        "epsilon_high": first.epsilon_high,
        "given": first.given,
        "audited_epsilon": audited,
        "reached": reached,
        "evidence": "exact" if exact else f"statistical, {1 - first.level:.3%}",
        "confidence": 1.0 if exact else 1 - first.level,
        "noise_p_value": by_rung.measured["noise"],
        "tightness": by_rung.measured["sensitivity"],
        "shifts": by_rung.note["sensitivity"],
        "claim": _claim(claimed, true, audited),
        "ledger": _kept(group),
        "reason": first.reason if reached < REACHED else "",
    }


REACHED = 0.8  # of the bound, below which the table says why


def _claim(claimed: float, true: float, audited: float) -> str:
    if audited > claimed * (1 + NEAR):
        return "refuted"
    if math.isinf(true):
        return "no proof"
    if true > claimed * (1 + NEAR):
        return "too low"
    if audited == 0:
        return "no attack known"
    return f"holds, {audited / true:.0%} reached"


def _kept(group: pd.DataFrame) -> str:
    """Whether a rung caught it; nothing is kept of what was never put to the test."""
    caught = group.rung[group.caught]
    if (group.note == BLIND).any():
        return "blind"
    if not caught.empty:
        return f"broken: {', '.join(caught)}"
    if math.isinf(float(group.true_epsilon.iloc[0])):
        return "states no bound"
    return "kept" if group.epsilon.max() > 0 else "not put to the test"


def controls(effort: Effort, seed: int, workers: int) -> pd.DataFrame:
    """Which rungs catch which broken mechanism, a row a mechanism."""
    rows = Parallel(n_jobs=workers)(
        delayed(_control)(place, effort, seed) for place in range(len(CONTROLS))
    )
    return pd.DataFrame(rows)


def _control(place: int, effort: Effort, seed: int) -> dict[str, Any]:
    control = CONTROLS[place]
    return _caught(control.slip, control.solver, control.make(), effort, seed)


def _caught(
    mechanism: str, algorithm: str, subject: Subject, effort: Effort, seed: int
) -> dict[str, Any]:
    caught = {f.rung: int(f.caught) for f in climb(Ladder(subject, effort, seed))}
    row = {"mechanism": mechanism, "algorithm": algorithm, "runs": 1, **caught}
    return {**row, "caught": int(any(caught.values()))}


def alarms(repetitions: int, seed: int, workers: int) -> pd.DataFrame:
    """How often sound mechanisms are flagged, a row a mechanism."""
    jobs = [(one, seed + k) for one in range(len(SOUND)) for k in range(repetitions)]
    found = Parallel(n_jobs=workers)(delayed(_alarm)(*job) for job in jobs)
    rows = pd.DataFrame(found)
    sums = rows.groupby(["mechanism", "algorithm"], sort=False).sum()
    return sums.reset_index()


def _alarm(place: int, seed: int) -> dict[str, Any]:
    name, algorithm, options = SOUND[place]
    strict = subjects("sound", algorithm, options)[-1]  # the plain problem
    return _caught("sound", name, strict, AGAIN, seed)


def missed(table: pd.DataFrame) -> Sequence[str]:
    """Broken mechanisms that no rung caught."""
    broken = table[(table.mechanism != "sound") & (table.caught == 0)]
    return list(broken.mechanism + ", " + broken.algorithm)


# --- before a solver of the reader's own runs -----------------------------------------

FEW = Effort(pairs=6)


class LeakError(ValueError):
    """A solver lets go of more than its ledger states."""


def require_held(name: str, algorithm: str, options: Mapping[str, Any]) -> None:
    """Refuse a solver of the reader's own that leaks on small data.

    A module that says why in ``UNCHECKED`` runs all the same; that is logged.

    Raises
    ------
    LeakError
    """
    if algorithm in solvers.names():  # those of this package are held by its tests
        return
    unchecked = getattr(solvers.load(algorithm), "UNCHECKED", "")
    if unchecked:
        log.warning("solver %s is not held to its ledger: %s", name, unchecked)
        return
    reason = _leak(name, algorithm, json.dumps(dict(options), sort_keys=True))
    if reason:
        raise LeakError(
            f"solver {name}: {reason}; `dperm audit solver={name}` tells more, and "
            "UNCHECKED = 'reason' in its module runs it all the same"
        )


@functools.cache
def _leak(name: str, algorithm: str, options: str) -> str:
    """What it lets go of; empty if nothing was found."""
    for subject in plain(name, algorithm, json.loads(options)):
        ladder = Ladder(subject, FEW, 0)
        coupled = [found for _, found in ladder.couplings] + ladder.odd
        shifts = [shift for one in coupled for shift in one.shifts]
        worst = max((shift.ratio for shift in shifts), default=0.0)
        if worst > 1 + ROUNDING:
            much = f"{worst:.3g} times" if math.isfinite(worst) else "without noise"
            return f"a record moves a release beyond what its ledger states, {much}"
        if published(ladder).caught:
            return "its weights do not follow from what its ledger says it releases"
    return ""
