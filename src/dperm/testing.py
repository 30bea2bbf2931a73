"""Checks that every solver passes, one's own too, on small data.

In the manner of scikit-learn's ``check_estimator``::

    from dperm.testing import check_solver

    check_solver("noisy_gd")

It runs what a solver's family promises: names and options, a ledger that is kept, the
noise that the ledger declares, no record whose numbers decide anything, the same bits
however a run is split. What it computes is compared with nothing, and the accountants
are believed; ``dperm audit`` also holds the ledger's price against a second one.

With pytest, each check is a test of its own::

    @pytest.mark.parametrize("check", solver_checks("noisy_gd"), ids=str)
    def test_my_solver(check):
        check()
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import ModuleType
from typing import Any

import numpy as np

from dperm.audit.checks import OF_RUNS, Audit
from dperm.audit.draws import UNTOUCHED
from dperm.audit.mechanism import DELTA, Array, AuditData, Mechanism, Recorder
from dperm.audit.solvers import Shape, is_open, mechanisms
from dperm.privacy import noise
from dperm.privacy.accountants import TIGHT
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.events import Ledger
from dperm.privacy.noise import streams
from dperm.problems.door import shown
from dperm.solvers import registry
from dperm.solvers.batched import BatchedSettings
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.single_pass import Target
from dperm.solvers.single_pass.sources import Rows

UNTOUCHED.add(__name__)

NUMBERS = (math.nan, math.inf, -math.inf, 1e308, -1e308, 1e-200, 5e-324)
STRANGE_LABELS = (
    1.0,
    -1.0,
    math.nan,
    -1e308,
)  # the last two where labels are numbers
EFFORT = {"neighbours": 4, "runs": 12}  # of the audit
STEPS = 12  # of a block of settings
SEEDS = range(1, 5)


@dataclass(frozen=True)
class Check:
    """One check of one solver; calling it raises AssertionError if it fails."""

    name: str
    solver: str
    run: Callable[[], None]

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        """Run the check; a failure names the solver and the check."""
        try:
            self.run()
        except Exception as error:
            raise AssertionError(
                f"solver {self.solver}: check {self.name}: {error or 'failed'}"
            ) from error


def check_solver(
    algorithm: str,
    options: Mapping[str, Any] | None = None,
    varied: bool = True,
) -> None:
    """Check that a solver keeps what its family promises.

    It takes some seconds, and a minute where kernels are compiled first.

    Parameters
    ----------
    algorithm : str
        Name of an algorithm of this package, or of one's own module, beside ``conf/``
        or installed.
    options : mapping, optional
        Its options, as in its YAML.
    varied : bool
        Whether other losses, penalties and storages that it supports are tried too.

    Raises
    ------
    AssertionError
        At the first check that fails; the message names the solver and the check.
    ValueError
        If there is no such algorithm, or its module lacks what its family requires.
    """
    for check in solver_checks(algorithm, options, varied):
        check()


def solver_checks(
    algorithm: str,
    options: Mapping[str, Any] | None = None,
    varied: bool = True,
) -> list[Check]:
    """The checks of a solver, one by one, as for ``pytest.mark.parametrize``.

    Nothing runs before a check is called, but the module is imported.

    Parameters
    ----------
    algorithm, options, varied
        As for :func:`check_solver`.
    """
    if not __debug__:
        raise RuntimeError("the checks are assertions: run Python without -O")
    if not isinstance(algorithm, str) or not isinstance(
        options, Mapping | None
    ):
        raise ValueError(
            "expected the name of a solver and options by name, found "
            f"{shown(algorithm)}, {shown(options)}"
        )
    subject = Subject(algorithm, dict(options or {}), varied)
    checks = {**ALWAYS, **OF_FAMILY[registry.family(subject.module)]}
    return [
        Check(name, algorithm, partial(run, subject))
        for name, run in checks.items()
    ]


@dataclass(frozen=True)
class Subject:
    """A solver with options, and what it runs on."""

    algorithm: str
    option_values: dict[str, Any]
    varied: bool = True

    @cached_property
    def module(self) -> ModuleType:
        """Its module, which offers what the family requires."""
        return registry.load(self.algorithm)

    @cached_property
    def options(self) -> Any:
        """Its options, checked."""
        return registry.make_options(self.module, self.option_values)

    @cached_property
    def all(self) -> list[Mechanism]:
        """Its mechanisms under both calibrations, on all that it supports."""
        names = (self.algorithm, self.algorithm, self.option_values)
        return mechanisms(*names, varied=self.varied, private=False)

    @cached_property
    def private(self) -> list[Mechanism]:
        """Those that state privacy."""
        return [m for m in self.all if not is_open(m.ledger)]

    @cached_property
    def audits(self) -> list[tuple[Mechanism, Audit]]:
        """Audits of the private mechanisms under tight noise, at small effort."""
        return [
            (m, Audit(m, **EFFORT))
            for m in self.private
            if m.calibration == TIGHT
        ]


@dataclass(frozen=True)
class ObservedRun:
    """What a run released, and what it drew for that."""

    releases: list[Array]
    draws: list[tuple[str, tuple[int, ...]]]  #: law and shape of each
    weights: Array


def _observed_run(m: Mechanism, data: AuditData, seed: int = 1) -> ObservedRun:
    """A run of a mechanism on records, none of whose warnings is silenced."""
    recorder = Recorder()
    with noise.listening(recorder), warnings.catch_warnings():
        warnings.simplefilter("error")
        run = m.begin(data, streams(seed))
        releases = [np.array(release) for release in m.follow(run)]
        draws = [(draw.law, draw.unit.shape) for draw in recorder.draws]
        return ObservedRun(releases, draws, np.array(m.published(run)))


def _same(run: ObservedRun, twin: ObservedRun) -> None:
    """Two runs that release the same bits."""
    for release, expected in zip(run.releases, twin.releases, strict=True):
        np.testing.assert_array_equal(release, expected)
    np.testing.assert_array_equal(run.weights, twin.weights)


# --- every family ---------------------------------------------------------------------


def _offers(subject: Subject) -> None:
    """It has the names that its family requires, and refuses an unknown option."""
    assert subject.module
    try:
        registry.make_options(subject.module, {"no_such_option": 1})
    except ValueError as error:
        assert "no_such_option" in str(error), (
            f"does not name the option: {error}"
        )
    else:
        raise AssertionError("an unknown option is not refused")


def _ledger(subject: Subject) -> None:
    """Its ledger costs what was asked for; without noise it costs infinity."""
    for m in subject.all:
        assert m.ledger.events and all(
            event.count > 0 for event in m.ledger.events
        )
        if m.calibration == TIGHT and not is_open(m.ledger):
            assert m.true <= m.epsilon * (1 + 1e-3), (
                f"{m.name} costs {m.true:g}"
            )
    assert _cost_of_none(subject) == math.inf, (
        "without noise it says that it costs less"
    )


def _cost_of_none(subject: Subject) -> float:
    """Epsilon of its releases without noise."""
    m = subject.all[0]
    module = subject.module
    options = m.setting.get("options", subject.options)
    family = registry.family(module)
    ledger: Ledger
    if family == "batched":
        ledger = module.ledger(m.setting["problem"], 3, 0.0, options, TIGHT)
    elif family == "full_batch":
        ledger = module.ledger(Scaled(m.setting["problem"]), 0.0, options)
    elif family == "single_pass":
        target = Target(math.inf, DELTA, "none")
        ledger = module.noise(
            m.setting["setup"], len(m.base.y), target, options
        ).ledger
    else:
        problem = Shape(n=6, p=4, loss="least_squares")
        small = problem.problem(problem.records())
        ledger = module.noise(small, 3, options, math.inf, DELTA, TIGHT).ledger
    return true_epsilon(ledger, DELTA)


def _audited(name: str) -> Callable[[Subject], None]:
    """A check of the audit, of every mechanism under tight noise."""

    def check(subject: Subject) -> None:
        for m, audit in subject.audits:
            finding = getattr(audit, name)()
            assert not finding.caught, (
                f"{m.name}: {finding.measured:.4g}; {finding.note}"
            )

    return check


def _extremes(subject: Subject) -> None:
    """No number in a record raises, warns, or changes what is released but the values.

    Whatever it holds: NaN, infinity, numbers whose squares overflow or underflow.
    """
    # methods that send a feature when they first move it release other shapes then
    is_regular = registry.family(subject.module) != "frank_wolfe"
    for m in subject.private:
        plain = _observed_run(m, m.base)
        place = m.positions[0]
        turns = np.where(np.arange(m.base.X.shape[1]) % 2, -1.0, 1.0)
        bound = np.inf if m.bound is None else m.bound
        labels = STRANGE_LABELS if m.real else STRANGE_LABELS[:2]
        for x, y in itertools.product(NUMBERS, labels):
            record = (np.clip(x * turns, -bound, bound), y)
            observed = _observed_run(m, m.base.replaced(place, record))
            case = f"{m.name}: a record of {x:g}, label {y:g}"
            for release in observed.releases:
                assert np.isfinite(release).all(), case
            assert np.isfinite(observed.weights).all(), case
            if is_regular:
                shapes = [release.shape for release in observed.releases]
                assert shapes == [
                    release.shape for release in plain.releases
                ], case
                assert observed.draws == plain.draws, case


def _chance(subject: Subject) -> None:
    """One seed gives the same bits twice; noise differs between seeds."""
    for m in subject.all:
        _same(_observed_run(m, m.base), _observed_run(m, m.base))
        if subject.private:
            ends = {
                _observed_run(m, m.base, seed).weights.tobytes()
                for seed in SEEDS
            }
            assert len(ends) > 1, (
                f"{m.name}: every seed gives the same weights"
            )


def _layout(subject: Subject) -> None:
    """The order in which memory holds the columns changes no bit."""
    for m in subject.all:
        turned = AuditData(np.asfortranarray(m.base.X), m.base.y)
        _same(_observed_run(m, m.base), _observed_run(m, turned))


# --- settings -------------------------------------------------------------------------


def _many(m: Mechanism) -> BatchedSettings:
    """Settings of all sizes of steps and clips, in more than one tile."""
    rng = np.random.default_rng(2)
    step = rng.uniform(0.01, 1.0, 70)
    clip = 10.0 ** rng.uniform(-2, 1, 70)
    return BatchedSettings(step, clip, 0.7, m.calibration)


def _block(m: Mechanism, settings: BatchedSettings, workers: int = 1) -> Any:
    arguments = (
        m.setting["problem"],
        settings,
        streams(5),
        m.setting["options"],
    )
    return m.setting["module"].Run(*arguments, workers, STEPS)


def _sizes(subject: Subject) -> None:
    """Passes are steps, at least one; a setting has a size; weights are released."""
    for m in subject.private:
        problem = m.setting["problem"]
        options = m.setting["options"]
        fewest = subject.module.steps(problem, 1e-9, options)
        count = subject.module.steps(problem, 40, options)
        assert isinstance(count, int) and fewest == 1 < count, (
            f"{m.name}: steps"
        )
        assert subject.module.bytes_per_setting(problem) >= 8 * problem.p, (
            f"{m.name}: bytes_per_setting"
        )
        run = _block(m, _many(m))
        run.advance(2)
        assert run.weights.shape == (70, problem.p), f"{m.name}: weights"
        np.testing.assert_array_equal(
            run.released[:, : problem.p], run.weights
        )


def _split(subject: Subject) -> None:
    """Steps taken one by one, or by several threads, have the bits of a whole run."""
    for m in subject.private:
        undivided = _block(m, _many(m))
        undivided.advance(STEPS)
        for workers, step_counts in ((1, (1, 4, STEPS - 5)), (3, (STEPS,))):
            run = _block(m, _many(m), workers)
            for count in step_counts:
                run.advance(count)
            np.testing.assert_array_equal(run.weights, undivided.weights)
            np.testing.assert_array_equal(run.released, undivided.released)


def _apart(subject: Subject) -> None:
    """A setting has the same bits alone, among others, and after others are dropped."""
    for m in subject.private:
        settings = _many(m)
        is_kept = np.arange(70) % 3 == 0
        block = _block(m, settings)
        thinned = _block(m, settings)
        thinned.advance(5)
        thinned.keep(is_kept)
        thinned.advance(STEPS - 5)
        block.advance(STEPS)
        np.testing.assert_array_equal(thinned.weights, block.weights[is_kept])
        np.testing.assert_array_equal(
            thinned.released, block.released[is_kept]
        )
        for chosen in ([0], [7], [8], [69], [*range(9)]):
            alone = _block(m, settings.take(chosen))
            alone.advance(STEPS)
            np.testing.assert_array_equal(alone.weights, block.weights[chosen])
        thinned.keep(np.zeros(is_kept.sum(), dtype=bool))
        assert len(thinned.weights) == 0


def _storage(subject: Subject) -> None:
    """Sparse records are the same records: the weights are those of a dense matrix."""
    for m in subject.private:
        problem = m.setting["problem"]
        if not problem.is_sparse:
            continue
        ends = []
        for A in (problem.A, np.asfortranarray(problem.A.toarray())):
            setting = {**m.setting, "problem": replace(problem, A=A)}
            run = _block(replace(m, setting=setting), _many(m))
            run.advance(STEPS)
            ends.append(run.weights)
        np.testing.assert_allclose(ends[0], ends[1], rtol=1e-9, atol=1e-12)


# --- the other families ---------------------------------------------------------------


def _in_pieces(subject: Subject) -> None:
    """Steps of a Frank-Wolfe method taken one by one have the bits of a whole run."""
    for m in subject.all:
        ends = []
        for step_counts in ((2,), (1, 1)):
            with closing(m.begin(m.base, streams(4))) as run:
                for count in step_counts:
                    run.advance(count)
                ends.append([run.weights.copy(), *map(np.copy, run.released)])
        for weights, expected in zip(*ends, strict=True):
            np.testing.assert_array_equal(weights, expected)


def _targets(subject: Subject) -> None:
    """A target of a stream has the same bits alone and beside others."""
    for m in subject.private:
        targets = [
            Target(epsilon, DELTA, m.calibration)
            for epsilon in (0.5, 1.0, 4.0)
        ]

        def solved(chosen: list[Target], m: Mechanism = m) -> Array:
            arguments = (
                m.setting["setup"],
                chosen,
                streams(9),
                Rows(m.base.X, m.base.y),
            )
            run = subject.module.Run(
                *arguments, len(m.base.y), m.setting["options"]
            )
            return np.array(run.solve())

        together = solved(targets)
        assert len(np.unique(together, axis=0)) > 1, (
            f"{m.name}: targets do not matter"
        )
        for setting, target in enumerate(targets):
            np.testing.assert_array_equal(
                together[setting], solved([target])[0]
            )


def _side_by_side(subject: Subject) -> None:
    """A run of a fit ends where it ends beside others, but for rounding."""
    for m in subject.private:

        def solved(seeds: list[int], m: Mechanism = m) -> Array:
            arguments = (Scaled(m.setting["problem"]), m.ledger)
            own = [streams(seed) for seed in seeds]
            run = subject.module.Run(*arguments, own, m.setting["options"])
            return np.array(run.solve())

        together = solved([3, 4, 5])
        assert together.shape == (3, m.base.X.shape[1]), f"{m.name}: weights"
        for k, seed in enumerate((3, 4, 5)):
            alone = solved([seed])[0]
            np.testing.assert_allclose(
                together[k], alone, rtol=1e-7, atol=1e-9
            )


ALWAYS: dict[str, Callable[[Subject], None]] = {
    "offers": _offers,
    "ledger": _ledger,
    **{
        name: _audited(name)
        for name in (*OF_RUNS, "target")
        if name != "epsilon"
    },
    "extremes": _extremes,
    "chance": _chance,
    "layout": _layout,
}
OF_FAMILY: dict[str, dict[str, Callable[[Subject], None]]] = {
    "batched": {
        "sizes": _sizes,
        "split": _split,
        "apart": _apart,
        "storage": _storage,
    },
    "frank_wolfe": {"split": _in_pieces},
    "single_pass": {"apart": _targets},
    "full_batch": {"apart": _side_by_side},
}
