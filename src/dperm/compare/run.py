"""Run several methods on one problem and write the results.

Every method meets the same true epsilon under the strict accountant, and minimises the
same objective with the same certified optimum. Its fresh runs use seeds that did not
choose its setting.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from dperm import extras
from dperm.compare import PRIVATE, TUNINGS, choosing, contestants, results, sources
from dperm.compare.contest import Row, Seeds, contest_rows
from dperm.compare.contestants import (
    Contestant,
    Job,
    Measure,
    Method,
    Releasing,
    Setting,
)
from dperm.compare.metrics import SIGNED, Split, split
from dperm.compare.request import Request
from dperm.compare.sources import Solved
from dperm.core.erm.optimum import solve
from dperm.core.erm.problem import Problem
from dperm.core.experiment import files as store
from dperm.core.experiment.config import compose
from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.plan import seed_of
from dperm.core.privacy.ledger import Ledger
from dperm.core.privacy.mechanisms import Streams
from dperm.pipeline.workers import away
from dperm.present.tables import save
from dperm.solvers import private_scales
from dperm.solvers.scales import declared

log = logging.getLogger(__name__)

TRIED = 4  # number of methods if none is named: the first able ones
FEWEST = 20  # least number of records of which a fifth is held out


@dataclass(frozen=True)
class Plan:
    """A comparison of several methods on one problem."""

    command: str  #: command whose seeds are used
    methods: Sequence[Method]
    source: Solved  #: the problem, at whose epsilon all methods run
    split: Split | None  #: for held-out metrics
    seed: int  #: seed of all random draws
    #: fresh, held: runs of a setting on all records, and on the training part
    fresh: int
    held: int
    work: float  #: settings that read more entries of the data are left out
    tunings: Sequence[str] = TUNINGS
    #: declares the scales that methods may know; by default the problem's own
    declared: Callable[[Problem], Problem] | None = None
    epsilons: Sequence[float] = ()  #: replace the problem's
    #: entry of the intercept's column, if there is one; otherwise 0
    constant: float = 0.0
    #: whether scales of features and of labels are released within epsilon
    private: tuple[bool, bool] = (False, False)

    def on(self, method: Method, problem: Problem) -> Contestant:
        """The method on the problem, or on part of it."""
        problem = self.declared(problem) if self.declared else problem
        if any(self.private) or (self.constant and not method.scales_columns):
            return Rescaled(method, problem, self.constant, *self.private)
        return method.on(problem)

    def label(self, name: str) -> str:
        """The label of a method."""
        return next(one.section.label for one in self.methods if one.name == name)


def runs(plan: Plan, workers: int) -> pd.DataFrame:
    """One row for every run of every method, or one with the reason for none."""
    for method in plan.methods:
        label, tunings = method.section.label, ", ".join(plan.tunings)
        log.info("%s: %s of %d settings", label, tunings, len(method.grid))
    pack = away if workers > 1 else lambda function, *given: delayed(function)(*given)
    jobs = (pack(runs_of, plan, method) for method in plan.methods)
    every: list[Row] = []
    for k, rows in enumerate(Parallel(workers, return_as="generator")(jobs)):
        label, brief = plan.methods[k].section.label, results.brief(pd.DataFrame(rows))
        log.info("%d of %d: %s: %s", k + 1, len(plan.methods), label, brief)
        every += rows
    return pd.DataFrame(every)


def runs_of(plan: Plan, method: Method) -> list[Row]:
    """One row for each run of a method under every tuning."""
    problem = plan.source.problem
    seed = seed_of(plan.seed, plan.command, problem.name, method.name, 0, 0)
    with threadpool_limits(1):  # also in its own process
        at = (problem, plan.source.optimum.value, method.grid, method.default)
        how = (
            Seeds.of(seed, plan.fresh, plan.held),
            [*plan.epsilons] or [problem.epsilon],
            plan.tunings,
        )
        rows = contest_rows(partial(plan.on, method), *at, *how, plan.split, plan.work)
    known = {"problem": problem.name, "solver": method.name, "public_scales": True}
    ok = {"seed": seed, "status": "ok", "reason": "", "epsilon": np.nan, "tuning": None}
    return [known | ok | row for row in rows]


def write(
    table: pd.DataFrame, zero: float, title: str, caption: str, stem: Path, figure: Path
) -> list[Path]:
    """Write the table and the figure, and return their paths.

    Without the extra ``pipeline``, only write the table as CSV.
    """
    if extras.has("pipeline"):
        from dperm.compare import pictures
        from dperm.present import drawing

        written = save(table, stem, caption)
        drawn, rows = pictures.figure(table, zero, title)
        written += drawing.save(drawn, rows, figure)
    else:
        written = [stem.with_suffix(".csv")]
        store.write_csv(written[0], table)
        needed = extras.command("pipeline")
        log.info("a figure, and the table in Markdown: %s", needed)
    log.info("%s", "\n".join(map(str, written)))
    return written


# --- dperm try ------------------------------------------------------------------------


def compare(request: Request) -> str:
    """Compare the methods of ``dperm try`` and return the table as text.

    Raises
    ------
    ConfigError
        For a request that cannot be carried out.
    """
    start = time.perf_counter()
    plan = planned(request)
    zero, epsilon = plan.source.zero, plan.source.problem.epsilon
    best = plan.source.optimum
    gap = max(best.gap / best.value, 1e-16)
    text = "F* = %.9g, certified to %.0e of it; w = 0 has relative error %.4g"
    log.info(text, best.value, gap, zero)
    rows = runs(plan, request.workers)
    table = results.by_tuning(rows, epsilon, plan.label)
    name = sources.slug(request.name or Path(request.problem).stem)
    overrides = [word for word in request.overrides if not word.startswith("problem.")]
    folder = Path(compose(overrides).output.results, "try", name)
    caption = (
        f"Relative error on {name}: mean of {plan.fresh} fresh runs with Student's "
        "95 % interval, neighbours by replacing a record, true epsilon under the "
        f"strict accountant; w = 0 has {zero:.4g}. Tuning over ten settings or the "
        "grid is not paid for in epsilon, and neither is this table: show it only to "
        "people who may see the data."
    )
    write(table, zero, name, caption, folder / "try", folder / "errors")
    log.info("%.0f seconds", time.perf_counter() - start)
    return results.words(table, zero, tuple(plan.tunings), _ceiling(plan.split))


def planned(request: Request) -> Plan:
    """The plan of a request, with checks that all of it can be done.

    Raises
    ------
    ConfigError
        For a request that cannot be carried out.
    """
    chosen = [
        contestants.method(name, request.defaults, request.grids)
        for name in dict.fromkeys(request.solvers)
    ]
    source = sources.load(request)
    problem, (scales, private) = source.problem, _scales(request, source)
    seen = scales(problem) if scales else problem
    chosen = chosen or _suited(request, seen)
    for key in {*request.defaults, *request.grids} - {one.name for one in chosen}:
        names = ", ".join(one.name for one in chosen)
        raise ConfigError(
            f"defaults, grids: {key}: expected a method that runs, one of {names}; "
            "solvers= names others"
        )
    for method in chosen:
        reason = method.on(seen).obstacle()
        if reason:
            able = ", ".join(one.name for one in _suited(request, seen))
            raise ConfigError(
                f"solver {method.name}: cannot do this problem: {reason}; expected "
                f"others, such as {able}"
            )
    is_split = request.held and problem.n >= FEWEST
    known = split(problem, source.y) if is_split else None
    counts = (request.seed, request.fresh, request.held, contestants.settings()["work"])
    made = Plan("try", chosen, source, known, *counts, request.tunings, scales)
    return replace(made, constant=source.constant, private=private)


def _suited(request: Request, problem: Problem) -> list[Method]:
    """Methods if none is named: those that ``dperm.fit`` would take."""
    names = [one.name for one in islice(choosing.able(problem), TRIED)]
    return [contestants.method(name, request.defaults, request.grids) for name in names]


def _scales(
    request: Request, source: Solved
) -> tuple[Callable[[Problem], Problem] | None, tuple[bool, bool]]:
    """A function that declares a problem's scales, and which scales are released.

    Raises ConfigError if only one kind of scale is declared: the other would be read
    off the data.
    """
    problem = source.problem
    signed = problem.loss.name in SIGNED
    if signed and "label_scale" in request.given:
        raise ConfigError(f"label_scale: {problem.loss.name} labels are signs")
    both = [request.feature_scale, request.label_scale]
    stated = [one is not None and one != PRIVATE for one in both]
    if not (any(stated) or source.as_fit):
        return None, (False, False)
    if not (all(stated) or signed or source.as_fit):
        raise ConfigError(
            "feature_scale, label_scale: expected a number for both, or for neither"
        )
    scales, label = source.scales
    p = problem.p - bool(source.constant)
    if stated[0]:
        given = np.array(request.feature_scale, dtype=float)
        if given.shape not in ((), (p,)):
            raise ConfigError(f"feature_scale: expected a number or {p} of them")
        scales = np.broadcast_to(given, p)
    if stated[1]:
        label = float(request.label_scale or 1.0)
    private = (scales is None, label is None and not signed)
    known = np.ones(p) if scales is None else scales
    known = np.append(known, [source.constant] * bool(source.constant))
    return partial(declared, scales=known, label=label or 1.0), private


def _ceiling(known: Split | None) -> list[str]:
    """The metric on the held-out fifth without privacy."""
    if known is None:
        return []
    try:
        best = solve(known.train).w[None]
    except ArithmeticError:  # the training part may be separable
        return []
    return [f"held out, without privacy: {known.metric} {known.measure(best)[0]:.3f}"]


# --- units ------------------------------------------------------------------------


class Rescaled(Contestant):
    """A method in the units that ``dperm.fit`` would use.

    Scales that are not declared are released within epsilon, once per run. The
    intercept's column holds a large constant, so that its weight is not penalised;
    solvers with steps of one size for all weights see a column of ones instead.

    Parameters
    ----------
    problem : Problem
        Its objective is measured.
    constant : float
        The entry of the last column, if that is the intercept's; otherwise 0.
    features, label : bool
        Whether their scales are released. Otherwise they are the problem's.
    """

    def __init__(
        self,
        method: Method,
        problem: Problem,
        constant: float,
        features: bool,
        label: bool,
    ):
        self.method, self.problem, self.constant = method, problem, constant
        self.features, self.label = features, label
        self.units = np.ones(problem.p)
        if constant and not method.scales_columns:
            self.units[-1] = constant
        self.first = Ledger()
        if features or label:
            k = len(self._sized()) * features + label
            at = (problem.epsilon, problem.delta)
            self.first = private_scales.ledger(k, problem.n, *at)
        self.inner = method.on(self._seen(problem.A, problem.offset, self.units))
        super().__init__(self.inner.module, self.inner.options, problem)

    def _sized(self) -> range:
        return range(self.problem.p - bool(self.constant))

    def _seen(self, A: Any, offset: np.ndarray, over: np.ndarray) -> Problem:
        """The problem in the method's units: columns divided, 1 for unknown scales."""
        known = self.problem.known
        S = np.sqrt(known.smoothness / known.loss.curvature) / self.units
        S[self._sized()] = np.where(self.features, 1.0, S[self._sized()])
        label = 1.0 if self.label else float(np.abs(known.offset).max()) or 1.0
        made = replace(
            self.problem, A=private_scales.divided(A, over), offset=offset, public=None
        )
        is_read = known is self.problem and not (self.features or self.label)
        return made if is_read else declared(made, S, label)

    def obstacle(self) -> str:
        """The obstacle of the method."""
        return self.inner.obstacle()

    def ledger(self, setting: Setting, noise_multiplier: float) -> Ledger:
        """Ledger of the scales, where they are released, and of the method."""
        return self.first + self.inner.ledger(setting, noise_multiplier)

    def work(self, setting: Setting) -> float:
        """The work of the method."""
        return self.inner.work(setting)

    def start(
        self, setting: Setting, noise_multiplier: float, own: Streams
    ) -> AbstractContextManager[Releasing]:
        """The method's run, without a release of scales."""
        return self.inner.start(setting, noise_multiplier, own)

    def aiming(self, epsilon: float) -> Contestant:
        """A copy with another target."""
        problem = replace(self.problem, epsilon=epsilon)
        return Rescaled(self.method, problem, self.constant, self.features, self.label)

    def public_information(self, ledger: Ledger) -> tuple[str, ...]:
        """What the method takes as public."""
        return self.inner.public_information(ledger)

    def run(self, jobs: Sequence[Job], measure: Measure) -> dict[str, np.ndarray]:
        """Make the runs, each with its own release of scales where there is one."""
        if not self.first.events:
            return self.inner.run(jobs, self._back(1 / self.units, measure))
        found: list[dict[str, np.ndarray]] = []
        for job in jobs:
            problem, back = self._released(job.seed)
            on = self.method.on(problem)
            found.append(on.run([job], self._back(back, measure)))
        return {key: np.concatenate([one[key] for one in found]) for key in found[0]}

    def _back(self, units: np.ndarray, measure: Measure) -> Measure:
        """Measure weights (L, p) in the problem's units."""

        def measured(W: np.ndarray) -> dict[str, np.ndarray]:
            W = W * units
            return {**measure(W), "objective": self.problem.objective(W)}

        return measured

    def _released(self, seed: int) -> tuple[Problem, np.ndarray]:
        """The problem over scales that are released here, and factors of weights."""
        A, offset, some = self.problem.A, self.problem.offset, self._sized()
        columns = [A[:, some]] * self.features + [offset[:, None]] * self.label
        noisy = private_scales.noisy_counts(
            columns, self.first, private_scales.seeded(seed)
        )
        found, _ = private_scales.scales(noisy, self.first, self.problem.n, self.label)
        size, over = float(found[-1]) if self.label else 1.0, self.units.copy()
        if self.features:
            over[some] = found[: len(some)]
        return self._seen(A, offset / size, over), size / over
