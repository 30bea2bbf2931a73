"""Methods of every family behind one interface, found by name.

A setting is a mapping of tuned values. Lanes count clips in units of the public scales,
as the methods of the family ``fits`` do, so that one grid serves every problem. A clip
of 1 is the largest slope times sqrt(sum_j S_j^2), the root mean square of a record's
norm. Default settings and grids are the arena's (``conf/paper/arena``); a method that
the arena lacks takes those of a similar method.
"""

from __future__ import annotations

import functools
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from dperm.compare.metrics import is_signed
from dperm.core import solvers
from dperm.core.calibrations import STRICT
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem
from dperm.core.experiment import locate, schema
from dperm.core.experiment.config import read
from dperm.core.experiment.grid import points
from dperm.core.experiment.locate import ConfigError, available
from dperm.core.lanes import Block, Lanes
from dperm.core.lanes.engine import run_lanes
from dperm.core.names import hint
from dperm.core.privacy.ledger import (
    GLOBAL_SMOOTHNESS,
    LABEL_SCALE,
    LIFTS,
    SMOOTHNESS,
    Ledger,
)
from dperm.core.privacy.mechanisms import Streams, streams
from dperm.pipeline import checks
from dperm.solvers.exact_noise import Exact
from dperm.solvers.fits import Fit, side_by_side
from dperm.solvers.fits.scaled import Scaled
from dperm.solvers.frank_wolfe import Noise
from dperm.solvers.scales import column_scales, is_declared, label_scale

Setting = Mapping[str, float]
Measure = Callable[[np.ndarray], dict[str, np.ndarray]]  # of weights (L, p)

DECLARED = (SMOOTHNESS, GLOBAL_SMOOTHNESS, LABEL_SCALE, LIFTS)
LANES = 32  # runs side by side
WIDE = 10_000  # features above which a step on all of them takes too long
FEATURE = 20.0  # cost of noise and a step on one feature, in entries
ENTRIES = 3.0  # clip of entries and labels of Frank-Wolfe methods, in their scales


class Job(NamedTuple):
    """One run: its setting, noise and seed."""

    setting: Setting
    noise_multiplier: float
    seed: int


class Releasing(Protocol):
    """A run in progress."""

    @property
    def weights(self) -> np.ndarray:
        """Weights of the run, shape (1, p)."""

    def releases(self) -> Iterator[np.ndarray]:
        """Make the run, and yield each release as it is made."""


class Contestant(ABC):
    """A method on a problem.

    Parameters
    ----------
    module, options
        Of the solver.
    problem : Problem
        The method may know its public constants.
    """

    def __init__(self, module: ModuleType, options: Any, problem: Problem):
        self.module, self.options, self.problem = module, options, problem

    @abstractmethod
    def obstacle(self) -> str:
        """Why it cannot work on the problem; empty if it can."""

    @abstractmethod
    def ledger(self, setting: Setting, noise_multiplier: float) -> Ledger:
        """The releases of a run."""

    def work(self, setting: Setting) -> float:
        """Rough number of entries of the data that a run reads."""
        return 0.0

    def within(self, setting: Setting, work: float) -> Setting | None:
        """The setting with passes or steps cut to that work; None if none remain."""
        for key in ("passes", "steps"):
            whole = setting.get(key, getattr(self.options, key, 0))
            if whole and self.work(setting) > work:
                fewer = math.floor(whole * work / self.work(setting))
                return {**setting, key: fewer} if fewer >= 1 else None
        return setting if self.work(setting) <= work else None

    @abstractmethod
    def start(
        self, setting: Setting, noise_multiplier: float, own: Streams
    ) -> AbstractContextManager[Releasing]:
        """One run, which an audit follows release by release."""

    @abstractmethod
    def run(self, jobs: Sequence[Job], measure: Measure) -> dict[str, np.ndarray]:
        """The objective and the measures of each run, each of shape (len,)."""

    def aiming(self, epsilon: float) -> Contestant:
        """A copy with another target, which keeps what was prepared."""
        problem = replace(self.problem, epsilon=epsilon)
        return type(self)(self.module, self.options, problem)

    def public_information(self, ledger: Ledger) -> tuple[str, ...]:
        """What an epsilon takes as public; clips are in units of the label's scale."""
        labels = () if is_signed(self.problem) else (LABEL_SCALE,)
        known = (ledger.assuming(*self.problem.given) + Ledger(given=labels)).given
        left = DECLARED if is_declared(self.problem) else ()
        return tuple(name for name in known if name not in left)


class Fitting(Contestant):
    """A method of the family ``fits``; runs of one setting advance together."""

    def __init__(self, module: ModuleType, options: Any, problem: Problem):
        super().__init__(module, options, problem)
        self.at = Scaled(problem)

    def aiming(self, epsilon: float) -> Contestant:
        """A copy with another target; records are scaled and clipped only once."""
        made = Fitting.__new__(Fitting)
        made.module, made.options = self.module, self.options
        made.problem = replace(self.problem, epsilon=epsilon)
        made.at = self.at.aiming(epsilon)
        return made

    def obstacle(self) -> str:
        """The module's refusal, if any."""
        return str(self.module.refuses(self.options, self.at))

    def ledger(self, setting: Setting, noise_multiplier: float) -> Ledger:
        """The module's ledger."""
        made: Ledger = self.module.ledger(
            self.at, noise_multiplier, self._options(setting)
        )
        return made

    def run(self, jobs: Sequence[Job], measure: Measure) -> dict[str, np.ndarray]:
        """Runs of one setting and noise as columns, ``LANES`` at a time."""
        W = np.empty((len(jobs), self.problem.p))
        alike = _alike(jobs, lambda job: (_key(job.setting), job[1]))
        for bunch in _bunches(alike, LANES):
            at = self.at.together()
            runs = [self._run_of([jobs[k] for k in places], at) for places in bunch]
            side_by_side(runs)
            for places, run in zip(bunch, runs, strict=True):
                W[places] = run.weights
        return seen(self.problem, W, measure)

    def _run_of(self, jobs: Sequence[Job], at: Scaled) -> Fit:
        setting, own = jobs[0].setting, [streams(job.seed) for job in jobs]
        ledger = self.ledger(setting, jobs[0].noise_multiplier)
        made: Fit = self.module.Run(at, ledger, own, self._options(setting))
        return made

    def alone(
        self, setting: Setting, noise_multiplier: float, seed: int, exact: bool
    ) -> np.ndarray:
        """The weights of one run, with noise for release if requested; shape (p,)."""
        ledger, made = self.ledger(setting, noise_multiplier), self._options(setting)
        at = Scaled(self.problem, apart=True) if exact else self.at
        run: Fit = self.module.Run(at, ledger, [streams(seed)], made)
        run.exact = Exact() if exact else None
        return run.solve()[0]

    def start(
        self, setting: Setting, noise_multiplier: float, own: Streams
    ) -> AbstractContextManager[Releasing]:
        """One run."""
        ledger, made = self.ledger(setting, noise_multiplier), self._options(setting)
        return nullcontext(self.module.Run(self.at, ledger, [own], made))

    def work(self, setting: Setting) -> float:
        """Steps times entries, shared by joint runs, and noise on every feature.

        A Hessian counts p times as much; a released matrix adds its eigenvalues.
        """
        steps = float(setting.get("steps", getattr(self.options, "steps", 1)))
        name = self.module.__name__
        each = self.problem.p / 8 if "newton" in name else 1 / 8
        if "minibatch" in name:  # its runs go one by one
            each = self.options.share / 2
        size, p = self.problem.A.size, self.problem.p
        square = p**3 / 5 if hasattr(self.module, "floored") else 0.0  # eigenvalues
        return square + steps * (each * size + FEATURE * p)

    def _options(self, setting: Setting) -> Any:
        return replace(self.options, **_typed(self.options, setting))


class Laning(Contestant):
    """A solver of lanes; lanes with equal passes and one seed run together."""

    def obstacle(self) -> str:
        """What lanes cannot do, or noise on every feature of a wide problem."""
        problem = self.problem
        if problem.is_sparse and not getattr(self.module, "SPARSE", False):
            return "its data are kept sparse"
        batch = getattr(self.options, "batch", 1)
        if batch > problem.n:
            return f"batches of {batch} are more than its {problem.n} records"
        refuses = getattr(self.module, "refuses", None)
        reason = (
            str(refuses(self.options, problem.penalty.is_smooth)) if refuses else ""
        )
        by_record = any(word in self.module.__name__ for word in RECORDWISE)
        if not reason and by_record and problem.p > WIDE:
            return f"noise on {problem.p} features in every step takes too long"
        return reason

    def ledger(self, setting: Setting, noise_multiplier: float) -> Ledger:
        """The module's ledger under strict calibration."""
        count = self.module.steps(self.problem, setting["passes"], self.options)
        given = (self.problem, count, noise_multiplier, self.options, STRICT)
        made: Ledger = self.module.ledger(*given)
        return made

    def public_information(self, ledger: Ledger) -> tuple[str, ...]:
        """What an epsilon takes as public: also scales, the units of clips."""
        return super().public_information(ledger.assuming(SMOOTHNESS))

    def work(self, setting: Setting) -> float:
        """Passes times entries; a step on all features costs several times more."""
        by_record = "sgd" in self.module.__name__ or "svrg" in self.module.__name__
        slow = 25.0 if by_record else 8.0 if self.problem.is_sparse else 1.0
        return slow * setting["passes"] * self.problem.A.size

    def run(self, jobs: Sequence[Job], measure: Measure) -> dict[str, np.ndarray]:
        """Run lanes of one noise, length and seed together."""
        found: dict[str, np.ndarray] = {}
        for places in _alike(jobs, lambda job: (job.setting["passes"], *job[1:])):
            for name, values in self._lanes([jobs[k] for k in places], measure).items():
                found.setdefault(name, np.full(len(jobs), np.nan))[places] = values
        return found

    def start(
        self, setting: Setting, noise_multiplier: float, own: Streams
    ) -> AbstractContextManager[Releasing]:
        """One lane, step by step."""
        count = self._steps(setting["passes"])
        lanes = self._settings([Job(setting, noise_multiplier, 0)])
        run = self.module.Run(self.problem, lanes, own, self.options, 1, count)
        return nullcontext(Stepping(run, count))

    def _settings(self, jobs: Sequence[Job]) -> Lanes:
        """Jobs of one noise as lanes, with clips in units of the scales."""
        step = np.array([job.setting["step"] for job in jobs])
        clip = clip_unit(self.problem) * np.array([j.setting["clip"] for j in jobs])
        return Lanes(step, clip, jobs[0].noise_multiplier, STRICT)

    def _lanes(self, jobs: Sequence[Job], measure: Measure) -> dict[str, np.ndarray]:
        first, lanes = jobs[0], self._settings(jobs)
        ends = [self._steps(first.setting["passes"])]  # lanes that diverge run on too
        last = run_lanes(
            self.module, self.options, self.problem, lanes, ends, first.seed, measure
        )[-1]
        return {"objective": last.objective, **last.measures}

    def _steps(self, passes: float) -> int:
        return int(self.module.steps(self.problem, passes, self.options))


class Stepping:
    """A lane that yields its release after every step."""

    def __init__(self, run: Block, count: int):
        self.run, self.count = run, count

    @property
    def weights(self) -> np.ndarray:
        """Weights of the lane, shape (1, p)."""
        return self.run.weights

    def releases(self) -> Iterator[np.ndarray]:
        """Yield the release before the first step and after each step."""
        yield np.array(self.run.released[0])
        for _ in range(self.count):
            self.run.advance(1)
            yield np.array(self.run.released[0])


class FrankWolfing(Contestant):
    """A Frank-Wolfe method over an L1 ball, in units of the public scales.

    The radius is a multiple of the label's scale. Entries and labels are clipped to
    three times their scales. It is measured by the penalised objective, like all
    others.
    """

    def __init__(self, module: ModuleType, options: Any, problem: Problem):
        super().__init__(module, options, problem)
        self.S = column_scales(problem)

    @functools.cached_property
    def scaled(self) -> Problem:
        """The problem in units of its scales, without its penalty."""
        A = sparse.csc_array(self.problem.A) @ sparse.diags_array(1 / self.S)
        A = sparse.csc_array(A)
        return replace(self.problem, A=A, penalty=Penalty(), public=None)

    def obstacle(self) -> str:
        """None: it can do every problem."""
        return ""

    def ledger(self, setting: Setting, noise_multiplier: float) -> Ledger:
        """The module's ledger."""
        made: Ledger = self.module.ledger(
            self.scaled, int(setting["steps"]), noise_multiplier, self._options(setting)
        )
        return made.assuming(SMOOTHNESS)

    @contextmanager
    def start(
        self, setting: Setting, noise_multiplier: float, own: Streams
    ) -> Iterator[Releasing]:
        """One run, whose releases are signed indices and sketched features."""
        with self._run_of(setting, noise_multiplier, own) as run:
            yield Indexing(run, int(setting["steps"]), self.S)

    def run(self, jobs: Sequence[Job], measure: Measure) -> dict[str, np.ndarray]:
        """Make the runs one after another."""
        W = np.empty((len(jobs), self.problem.p))
        for k, (setting, noise_multiplier, seed) in enumerate(jobs):
            with self._run_of(setting, noise_multiplier, streams(seed)) as run:
                run.advance(int(setting["steps"]))
                W[k] = run.weights[0] / self.S
        return seen(self.problem, W, measure)

    def _run_of(self, setting: Setting, noise_multiplier: float, own: Streams) -> Any:
        ledger = self.ledger(setting, noise_multiplier)
        selections, *features = (event.scale for event in ledger.events)
        noise = Noise(ledger, selections, sum(features))  # at most one kind
        return self.module.Run(self.scaled, own, self._options(setting), noise)

    def _options(self, setting: Setting) -> Any:
        label = label_scale(self.problem)
        return replace(
            self.options,
            radius=setting["radius"] * label,
            entry_bound=ENTRIES,
            label_bound=ENTRIES * label,
        )


class Indexing:
    """A Frank-Wolfe run of a fixed number of steps, weights in the problem's units."""

    def __init__(self, run: Any, count: int, S: np.ndarray):
        self.run, self.count, self.S = run, count, S

    @property
    def weights(self) -> np.ndarray:
        """Weights of the run, shape (1, p)."""
        found: np.ndarray = self.run.weights / self.S
        return found

    def releases(self) -> Iterator[np.ndarray]:
        """Yield the releases of the run."""
        found: Iterator[np.ndarray] = self.run.releases(self.count)
        return found


KINDS: dict[str, type[Contestant]] = {
    "fits": Fitting,
    "lanes": Laning,
    "frank_wolfe": FrankWolfing,
}


def contestant(algorithm: str, given: dict[str, Any], problem: Problem) -> Contestant:
    """The method of a solver's YAML on a problem.

    Raises ValueError if its family does not take part.
    """
    module = solvers.load(algorithm)
    family = solvers.family(module)
    if family not in KINDS:
        raise ValueError(f"{algorithm}: the family {family} solves no such problem")
    options = solvers.make_options(module, given)
    return KINDS[family](module, options, problem)


def clip_unit(problem: Problem) -> float:
    """A record's slope times its norm, both at their scales."""
    slope = min(problem.loss.lipschitz(math.inf), label_scale(problem))
    return slope * float(np.sqrt(problem.smoothness.sum() / problem.loss.curvature))


def seen(problem: Problem, W: np.ndarray, measure: Measure) -> dict[str, np.ndarray]:
    """The objective of weights (L, p), and their measures."""
    return {"objective": problem.objective(W), **measure(W)}


def _alike(jobs: Sequence[Job], key: Callable[[Job], Any]) -> Iterable[list[int]]:
    """Places of jobs with equal keys."""
    found: dict[Any, list[int]] = {}
    for place, job in enumerate(jobs):
        found.setdefault(key(job), []).append(place)
    return found.values()


def _bunches(groups: Iterable[list[int]], most: int) -> Iterator[list[list[int]]]:
    """Join groups in order, at most ``most`` places a bunch or one whole group."""
    bunch: list[list[int]] = []
    for group in groups:
        if bunch and sum(map(len, bunch)) + len(group) > most:
            yield bunch
            bunch = []
        bunch.append(group)
    if bunch:
        yield bunch


def _key(setting: Setting) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(setting.items()))


def _typed(options: Any, setting: Setting) -> dict[str, Any]:
    """Values of a setting in the types of the options: integers stay integers."""
    return {key: type(getattr(options, key))(value) for key, value in setting.items()}


# --- by name --------------------------------------------------------------------------


STREAMED = (  # why solvers of streams serve no fit
    ": it reads each record once and minimises the loss of new records over a norm "
    "ball, without a penalty, where a fit minimises that of these records with one"
)
RECORDWISE = ("sgd", "svrg")  # in the names of algorithms that step record by record
ALIKE = (*RECORDWISE, "skgd")  # algorithms whose steps have one size for all weights
KEYS = {"lanes": ("passes", "step", "clip"), "frank_wolfe": ("steps", "radius")}


@dataclass(frozen=True)
class Method:
    """A method that can be applied to a problem."""

    section: schema.Solver
    default: Setting  #: the setting without tuning
    grid: Sequence[Setting]

    @property
    def name(self) -> str:
        """The name of its YAML or file."""
        return self.section.name

    @property
    def scales_columns(self) -> bool:
        """Whether steps use the scales of columns; then the intercept's may be large.

        Steps of one size for all weights do not, and lanes of a user's file may not.
        """
        algorithm = self.section.algorithm
        is_own = algorithm not in solvers.names() and _family(self.section) == "lanes"
        return not is_own and not any(word in algorithm for word in ALIKE)

    def on(self, problem: Problem) -> Contestant:
        """The method on a problem."""
        return contestant(self.section.algorithm, self.section.options, problem)


def known() -> list[str]:
    """Names of the solvers that solve a composite problem."""
    every = (_section(name) for name in available("solver"))
    return [one.name for one in every if _family(one) in KINDS and _is_private(one)]


def method(
    name: str,
    defaults: Mapping[str, Any] | None = None,
    grids: Mapping[str, Any] | None = None,
) -> Method:
    """Find a method by its name.

    Parameters
    ----------
    name : str
        Of a solver's YAML, or of a Python file in the current folder.
    defaults, grids : mapping, optional
        Settings by solver's name that replace the arena's.

    Raises
    ------
    ConfigError
        If no such solver exists, or it solves no such problem.
    """
    if defaults or grids:
        return _method(name, defaults or {}, grids or {})
    folders = tuple(locate.conf_dirs())
    files = (folder / "solver" / f"{name}.yaml" for folder in folders)
    edited = tuple(file.stat().st_mtime_ns for file in files if file.is_file())
    return _kept(name, folders, edited) if edited else _method(name, {}, {})


@functools.cache
def _kept(name: str, folders: tuple[Path, ...], edited: tuple[int, ...]) -> Method:
    """Cache a method by its YAML's time: reading it is nine tenths of a small fit."""
    return _method(name, {}, {})


def _method(name: str, defaults: Mapping[str, Any], grids: Mapping[str, Any]) -> Method:
    section = _section(name)
    if _family(section) not in KINDS or not _is_private(section):
        why = STREAMED if _family(section) == "streams" else ""
        why = why if _is_private(section) else ": it adds no noise"
        raise ConfigError(
            f"solver {name}: solves no problem of this kind{why}; expected one of "
            f"{', '.join(known())}"
        )
    checks.held(section)
    like = _like(section)
    default = {**like[0], **defaults.get(name, {})}
    check_setting(section, default)
    grid = _settings(section, default, like[1], grids.get(name))
    return Method(section, default, grid)


def check_setting(section: schema.Solver, setting: Mapping[str, Any]) -> None:
    """Refuse a setting with unknown names or wrong values."""
    where = f"solver {section.name}: setting"
    module = solvers.load(section.algorithm)
    options = solvers.make_options(module, section.options)
    family = solvers.family(module)
    able = KEYS.get(family) or [field.name for field in fields(options)]
    for key, value in setting.items():
        if key not in able:
            raise ConfigError(
                f"{where} {key}: expected one of {', '.join(able)}{hint(key, able)}"
            )
        if family in KEYS and not _is_positive(value):
            raise ConfigError(
                f"{where} {key}: expected a positive number, found {value!r}"
            )
    if family not in KEYS:
        try:
            replace(options, **setting)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{where}: {error}") from error


def _is_positive(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value < math.inf


def _settings(
    section: schema.Solver, default: Setting, usual: Any, chosen: Any
) -> list[Setting]:
    """The points of a grid; axes that a chosen grid leaves out stay at the default."""
    axes = dict(chosen or usual)
    every = [dict(one) for one in points(axes, f"grids.{section.name}", axes=None)]
    if chosen:
        every = [{**default, **one} for one in every]
    for setting in every:
        check_setting(section, setting)
    return [*every] or [default]


def _section(name: str) -> schema.Solver:
    """The section of a YAML, or one made for a Python file of that name."""
    names = available("solver")
    if name in names:
        section: schema.Solver = read("solver", name)
    elif name.isidentifier() and Path(f"{name}.py").is_file():
        if str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))
        section = schema.Solver(name=name, label=name, algorithm=name)
    else:
        raise ConfigError(
            f"solver {name}: expected one of {', '.join(names)}, or a file {name}.py "
            f"here{hint(name, names)}"
        )
    checks.solver(section)
    return section


def _family(section: schema.Solver) -> str:
    return solvers.family(solvers.load(section.algorithm))


def _is_private(section: schema.Solver) -> bool:
    """Whether it can add noise: Frank-Wolfe methods without bounds cannot."""
    options = {field.name for field in fields(solvers.load(section.algorithm).Options)}
    return _family(section) != "frank_wolfe" or "entry_bound" in options


def _like(section: schema.Solver) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Its module's ``DEFAULT`` and ``GRID``, or those of the arena's nearest method."""
    module = solvers.load(section.algorithm)
    if hasattr(module, "GRID"):
        return getattr(module, "DEFAULT", {}), module.GRID
    defaults, grids = settings()["defaults"], settings()["grids"]
    algorithm, names = section.algorithm, [section.name]
    if section.name not in grids and algorithm in solvers.PLACES:
        known = _algorithms(locate.conf_dirs()[0])
        names += [name for name in grids if known[name] == algorithm]
    by_record = any(word in algorithm for word in RECORDWISE)
    others = {"lanes": "dp_svrg" if by_record else "dp_cd", "frank_wolfe": "dp_fw"}
    names.append(others.get(_family(section), ""))
    name = next((name for name in names if name in grids), None)
    return ({}, {}) if name is None else (defaults.get(name, {}), grids[name])


def settings() -> dict[str, Any]:
    """The arena's ``work``, and its ``defaults`` and ``grids`` by solver's name."""
    return _contest(locate.conf_dirs()[0])


@functools.cache
def _algorithms(folder: Path) -> dict[str, str]:
    return {name: _section(name).algorithm for name in _contest(folder)["grids"]}


@functools.cache
def _contest(folder: Path) -> dict[str, Any]:
    return dict(read("paper", "arena").sweeps["contest"].options)
