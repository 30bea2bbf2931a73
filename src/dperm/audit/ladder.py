"""Tables of the audit: every solver, the broken mechanisms caught, false alarms.

A ladder is the list of an audit's checks for one solver; a rung is one check.

A user's own solver is checked before it runs: releases on small data must stay within
its ledger, and weights must follow from releases. That takes a second and proves
little; ``dperm audit`` checks more.

Positive controls are mechanisms that are broken on purpose: real solvers with one error
each, which state the ledger of the correct one. The audit must catch all of them.
"""

from __future__ import annotations

import functools
import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.random import PCG64, Generator

from dperm.accountants.noisy_max import NoisyMax
from dperm.audit.climbing import ROUNDING, Effort, Ladder
from dperm.audit.families import LaneSubject, Shape, StreamSubject
from dperm.audit.registry import (
    EPSILON,
    LANES,
    LOUD,
    choice,
    crowd,
    estimators,
    plain,
    subjects,
)
from dperm.audit.rungs import BLIND, climb, published, stopped
from dperm.audit.subjects import Array, Subject
from dperm.core import solvers
from dperm.core.calibrations import PAPER, STRICT
from dperm.core.lanes import dp_cd
from dperm.core.privacy.ledger import Event, Ledger, N, united
from dperm.solvers.lanes import dp_cd_priv, dp_gcd, dp_sgd, dp_skgd
from dperm.solvers.streams.sources import Batch, Rows

log = logging.getLogger(__name__)

CONFIDENCE = 0.95  # of a whole table, all statistical tests in it together
TESTS, SUBJECTS = 1, 250  # tests of a subject, and subjects of a table, at most
FULL = Effort(level=(1 - CONFIDENCE) / (TESTS * SUBJECTS))
SMALL = Effort(level=FULL.level, pairs=8, draws=40)

# Sound mechanisms of every kind of release, which no rung may flag.
SOUND: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("dp_cd", "dp_cd", {}),
    ("dp_sgd", "dp_sgd", {}),
    ("dp_gcd_gumbel", "dp_gcd", {"noise": "gumbel"}),
    ("dp_skgd_full", "dp_skgd", {"blocks": 1}),
    ("phased_sgd", "phased_sgd", {}),
)
AGAIN = Effort(level=FULL.level, pairs=6, draws=100)
NEAR = 1e-3  # relative, between epsilons that grids have rounded


def solver(
    name: str, algorithm: str, options: dict[str, Any], effort: Effort, seed: int
) -> pd.DataFrame:
    """Findings about a solver under both calibrations, one row per rung.

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
    """Rows of a solver that cannot be audited: it counts as caught by every rung."""
    rows = pd.DataFrame([asdict(found) for found in stopped(error)])
    unknown = ("claimed_epsilon", "true_epsilon")
    text = {"subject": name, "calibration": "", "given": "", "reason": ""}
    known = {**text, **dict.fromkeys(unknown, math.nan), "delta": math.nan}
    return rows.assign(**known, level=effort.level, epsilon=0.0)


def findings(subject: Subject, effort: Effort, seed: int) -> pd.DataFrame:
    """Findings about one subject, one row per rung."""
    ladder = Ladder(subject, effort, seed)
    found = climb(ladder)
    known = {
        "subject": subject.name,
        "calibration": subject.calibration,
        "claimed_epsilon": subject.claimed_epsilon,
        "true_epsilon": subject.true_epsilon,
        "given": "; ".join(united((N,), subject.ledger.given)),
        "delta": subject.delta,
        "epsilon": _lower(ladder),
        "level": effort.level,
        "reason": subject.reason,
    }
    return pd.DataFrame([{**known, **asdict(one)} for one in found])


def _lower(ladder: Ladder) -> float:
    """The lower bound; 0 where a run raises, which the rungs report."""
    try:
        return ladder.lower
    except Exception:  # a user's solver may raise anything
        return 0.0


def epsilons(rows: pd.DataFrame) -> pd.DataFrame:
    """Claimed, true and audited epsilon, one row per subject and calibration."""
    keys = ["subject", "calibration"]
    return pd.DataFrame(
        [_epsilon(group) for _, group in rows.groupby(keys, sort=False)]
    )


def _epsilon(group: pd.DataFrame) -> dict[str, Any]:
    first, by_rung = group.iloc[0], group.set_index("rung")
    claimed, true = float(first.claimed_epsilon), float(first.true_epsilon)
    audited = float(first.epsilon)
    reached = audited / true if math.isfinite(true) else 0.0
    return {
        "algorithm": first.subject,
        "calibration": first.calibration,
        "delta": first.delta,
        "claimed_epsilon": claimed,
        "true_epsilon": true,
        "given": first.given,
        "audited_epsilon": audited,
        "reached": reached,
        "noise_p_value": by_rung.measured["noise"],
        "tightness": by_rung.measured["sensitivity"],
        "shifts": by_rung.note["sensitivity"],
        "claim": _claim(claimed, true, audited),
        "ledger": _kept(group),
        "reason": first.reason if reached < REACHED else "",
    }


REACHED = 0.8  # share of the bound, below which the table states a reason


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
    """Verdict on a ledger: kept only if some rung proved an epsilon above 0."""
    caught = group.rung[group.caught]
    if (group.note == BLIND).any():
        return "blind"
    if not caught.empty:
        return f"broken: {', '.join(caught)}"
    if math.isinf(float(group.true_epsilon.iloc[0])):
        return "states no bound"
    return "kept" if group.epsilon.max() > 0 else "not tested"


def controls(effort: Effort, seed: int, workers: int) -> pd.DataFrame:
    """Which rungs catch which broken mechanism, one row per mechanism."""
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
    row = {"mechanism": mechanism, "algorithm": algorithm, **caught}
    return {**row, "caught": int(any(caught.values()))}


def alarms(seed: int, workers: int) -> pd.DataFrame:
    """Whether sound mechanisms are flagged, one row per mechanism."""
    jobs = range(len(SOUND))
    return pd.DataFrame(
        Parallel(n_jobs=workers)(delayed(_alarm)(place, seed) for place in jobs)
    )


def _alarm(place: int, seed: int) -> dict[str, Any]:
    name, algorithm, options = SOUND[place]
    strict = subjects("sound", algorithm, options)[-1]  # the plain problem
    return _caught("sound", name, strict, AGAIN, seed)


def missed(table: pd.DataFrame) -> Sequence[str]:
    """Broken mechanisms that no rung caught."""
    broken = table[(table.mechanism != "sound") & (table.caught == 0)]
    return list(broken.mechanism + ", " + broken.algorithm)


# --- before a user's own solver runs --------------------------------------------------

FEW = Effort(pairs=6)


class LeakError(ValueError):
    """A solver releases more than its ledger states."""


def require_held(name: str, algorithm: str, options: Mapping[str, Any]) -> None:
    """Refuse a user's own solver that leaks on small data.

    A module that states a reason in ``UNCHECKED`` runs unchecked; that is logged.

    Raises
    ------
    LeakError
    """
    if algorithm in solvers.names():  # this package's tests check its own solvers
        return
    unchecked = getattr(solvers.load(algorithm), "UNCHECKED", "")
    if unchecked:
        log.warning("solver %s is not held to its ledger: %s", name, unchecked)
        return
    reason = _leak(name, algorithm, json.dumps(dict(options), sort_keys=True))
    if reason:
        raise LeakError(
            f"solver {name}: {reason}; once conf/solver/{name}.yaml names it, "
            f"`dperm audit solver={name}` shows all checks; UNCHECKED = 'reason' in "
            "its module runs it all the same"
        )


@functools.cache
def _leak(name: str, algorithm: str, options: str) -> str:
    """Description of a leak; empty if none was found."""
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


# --- mechanisms that are broken on purpose --------------------------------------------


@dataclass(frozen=True)
class Control:
    """A slip (a planted bug) and the solver that contains the slip."""

    slip: str
    solver: str
    make: Callable[[], Subject]


def lane(
    module: ModuleType,
    options: Any = None,
    calibration: str = STRICT,
    shape: Shape | None = None,
    **changes: Any,
) -> Subject:
    """A subject that runs lanes, with some changes, and its step with little noise."""
    name = module.__name__.rsplit(".", 1)[1]
    needs = LANES[name]
    given = (name, module, options or module.Options(), calibration)
    shape = shape or needs.shape
    quiet = LaneSubject(*given, needs.steps, shape, EPSILON, **changes)
    quiet.loud = LaneSubject(*given, 1, shape, LOUD * EPSILON, **changes)
    return quiet


def stream(name: str, which: int, change: Callable[[StreamSubject], None]) -> Subject:
    """A strict stream subject with some changes, and its step with little noise."""
    strict = [s for s in subjects(name, name, {}) if s.calibration == STRICT]
    for subject in (strict[which], strict[which].loud):
        assert isinstance(subject, StreamSubject)
        change(subject)
    return strict[which]


class Located(Generator):
    """The scale passed as the location: no noise, only a constant."""

    def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
        """Ones: the scale itself, in its own units."""
        return np.ones(() if size is None else size)


class Shared(Generator):
    """One number for all coordinates."""

    def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
        """A constant vector, or matrix of constant rows."""
        shape = np.shape(np.empty(() if size is None else size))
        one = super().standard_normal((*shape[:-1], 1))
        return np.broadcast_to(one, shape).copy()


class Repeated(Generator):
    """The same numbers in every call: every step has the noise of the first."""

    def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
        """What a fresh generator would draw first."""
        return Generator(PCG64(self.integers(1))).standard_normal(size)


def rebuilt(run: Any, change: Callable[..., tuple]) -> Any:
    """A Run whose arguments are changed by ``change``."""

    class Rebuilt(run):
        def __init__(self, *args: Any):
            super().__init__(*change(*args))

    return Rebuilt


def bent(run: Any, stream: Callable[[PCG64], Generator]) -> Any:
    """A Run whose noise comes from another stream."""

    def change(problem: Any, lanes: Any, generators: Any, *rest: Any) -> tuple:
        seed = int(generators.noise.integers(2**62))
        return problem, lanes, generators.replaced(noise=stream(PCG64(seed))), *rest

    return rebuilt(run, change)


def altered(
    run: Any, change: Callable[[Any], None] | None = None, **values: Callable
) -> Any:
    """A Run changed before its first step; ``values`` compute attributes of the run."""

    class Altered(run):
        def __init__(self, *args: Any):
            super().__init__(*args)
            self.__dict__.update({name: value(self) for name, value in values.items()})
            if change is not None:
                change(self)

    return Altered


class Again(Rows):
    """Records that are repeated: every batch starts at the first one."""

    def take(self, count: int) -> Batch:
        """The first records, whatever was taken before."""
        self.taken = 0
        return super().take(count)


def constant(which: int, factor: float) -> Callable[[Any], None]:
    """A change of one row of the lanes' constants."""

    def change(run: Any) -> None:
        run.constants[:, which] *= factor

    return change


def _without_two(problem: Any, lanes: Any, *rest: Any) -> tuple:
    """Use the noise for half of every sensitivity."""
    half = replace(lanes, noise_multiplier=lanes.noise_multiplier / 2)
    return problem, half, *rest


def _one_stream(problem: Any, lanes: Any, generators: Any, *rest: Any) -> tuple:
    """Sample records from the stream of the noise."""
    return problem, lanes, generators.replaced(sampling=generators.noise), *rest


def _spending(
    problem: Any, lanes: Any, generators: Any, options: Any, *rest: Any
) -> tuple:
    """Spend twice the share that the ledger states."""
    options = replace(options, share=2 * options.share)
    return problem, lanes, generators, options, *rest


def _each(
    change: Callable[[Any], dict[str, Any]], kind: Any = Event
) -> Callable[[Ledger], Ledger]:
    """Change fields of the events of one kind in a ledger."""

    def changed(event: Any) -> Event:
        return replace(event, **change(event)) if isinstance(event, kind) else event

    return lambda ledger: Ledger(tuple(map(changed, ledger.events)))


def _half(event: Any) -> dict[str, Any]:
    return {"sensitivity": event.sensitivity / 2}


def _again(subject: StreamSubject) -> None:
    subject.source = Again


def _without_dimension(subject: StreamSubject) -> None:
    if len(subject.ledger.events) == 1:
        change = _each(lambda event: {"kappa": event.order - 1})
        subject.ledger = change(subject.ledger)


def _shallow(subject: StreamSubject) -> None:
    """Half the noise from depth 3 of a tree on."""

    def halved(scale: Callable[[int, int, int], Array]) -> Any:
        return lambda t, depth, leaf: scale(t, depth, leaf) / (2 if depth >= 3 else 1)

    class Shallow(subject.kind):  # type: ignore[misc, name-defined]
        def __init__(self, *args: Any):
            super().__init__(*args)
            for part in self.parts:
                part.noise_scale = halved(part.noise_scale)

    subject.kind = Shallow


def _warm(run: Any) -> None:
    problem = run.problem
    start = -0.01 * problem.gradient(np.zeros(problem.p))
    run.tiles[:, : problem.p] = start[:, None]


def _by_gradient(run: Any) -> None:
    sizes = np.abs(run.problem.gradient(np.zeros(run.problem.p)))
    vars(run.sketch)["q"] = sizes / sizes.sum()


WHOLE = dp_skgd.Options(blocks=1)
IMPORTANCE = dp_skgd.Options(probabilities="importance")


def _in(
    module: ModuleType, slip: str, kind: Any = None, options: Any = None, **changes: Any
) -> Control:
    name = module.__name__.rsplit(".", 1)[1]
    return Control(slip, name, partial(lane, module, options, kind=kind, **changes))


def _of_stream(
    name: str, slip: str, which: int, change: Callable[[StreamSubject], None]
) -> Control:
    return Control(slip, name, partial(stream, name, which, change))


CONTROLS = (
    _in(dp_cd, "half noise", altered(dp_cd.Run, constant(2, 0.5))),
    _in(dp_sgd, "half noise", altered(dp_sgd.Run, constant(2, 0.5))),
    _in(dp_cd, "no noise", altered(dp_cd.Run, constant(2, 0.0))),
    _in(dp_cd, "scale passed as location", bent(dp_cd.Run, Located)),
    _in(dp_cd, "clip skipped", altered(dp_cd.Run, constant(1, np.inf))),
    _in(dp_sgd, "clip skipped", altered(dp_sgd.Run, constant(1, np.inf))),
    _in(
        dp_skgd, "sensitivity without its 2", rebuilt(dp_skgd.Run, _without_two), WHOLE
    ),
    _in(dp_gcd, "noisy max without its 2", claim=_each(_half, NoisyMax)),
    _in(dp_skgd, "noise shared between coordinates", bent(dp_skgd.Run, Shared), WHOLE),
    _in(dp_cd, "noise shared between steps", bent(dp_cd.Run, Repeated)),
    _in(dp_sgd, "seed reused", bent(dp_sgd.Run, lambda _: Generator(PCG64(4)))),
    _in(dp_sgd, "sampling and noise on one stream", rebuilt(dp_sgd.Run, _one_stream)),
    _of_stream("phased_sgd", "batches overlapping", 0, _again),
    _in(dp_cd, "composition counted once", claim=_each(lambda _: {"count": 1})),
    _in(
        dp_skgd,
        "one release not counted",
        options=WHOLE,
        claim=_each(lambda event: {"count": max(event.count - 1, 1)}),
    ),
    _in(dp_sgd, "wrong neighbouring relation", claim=_each(_half)),
    _in(
        dp_gcd,
        "selection noise inside an L1 rule",
        calibration=PAPER,
        shape=crowd(),
        view=choice,
        claim=_each(lambda _: {"sound": True}, NoisyMax),
    ),
    _in(
        dp_gcd,
        "unequal sensitivities under noisy max",
        altered(
            dp_gcd.Run,
            share=lambda run: np.ones(run.problem.p) / np.sqrt(run.problem.p),
        ),
    ),
    _in(
        dp_cd_priv,
        "constants spend twice their share",
        rebuilt(dp_cd_priv.Run, _spending),
    ),
    _in(dp_cd, "start at a gradient", altered(dp_cd.Run, _warm)),
    _in(
        dp_skgd,
        "importance by a private gradient",
        altered(dp_skgd.Run, _by_gradient),
        IMPORTANCE,
    ),
    _of_stream("noisy_sfw", "regularity without the dimension", 2, _without_dimension),
    _of_stream("noisy_sfw", "half noise deep in the tree", 2, _shallow),
)
