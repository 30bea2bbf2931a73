"""Methods of every family behind one interface, found by name.

A setting is a mapping of tuned values. Clips are in units of the public scales, so that
one grid serves every problem: 1 is the largest slope times sqrt(sum_j S_j^2), the root
mean square of a record's norm. Default settings and grids are the arena's
(``conf/paper/arena``), or those of a similar method.
"""

from __future__ import annotations

import functools
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from numbers import Real
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from dperm.core import solvers
from dperm.core.calibrations import STRICT
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem
from dperm.core.experiment import locate, schema
from dperm.core.experiment.config import read
from dperm.core.experiment.grid import points
from dperm.core.experiment.locate import ConfigError, available
from dperm.core.lanes import Lanes
from dperm.core.names import hint
from dperm.core.privacy.ledger import (
    GLOBAL_SMOOTHNESS,
    LABEL_SCALE,
    LIFTS,
    SMOOTHNESS,
    Ledger,
)
from dperm.core.privacy.mechanisms import Streams, streams
from dperm.core.solvers.options import is_whole, typed
from dperm.pipeline import checks
from dperm.solvers.exact_noise import Exact
from dperm.solvers.fits import Fit
from dperm.solvers.fits.scaled import Scaled
from dperm.solvers.frank_wolfe import Noise
from dperm.solvers.scales import column_scales, is_declared, label_scale

Setting = Mapping[str, float]

DECLARED = (SMOOTHNESS, GLOBAL_SMOOTHNESS, LABEL_SCALE, LIFTS)
WIDE = 10_000  # features above which a step on all of them takes too long
ENTRIES = 3.0  # clip of entries and labels of Frank-Wolfe methods, in their scales


class Following:
    """A run of so many steps that is followed, in units of scales S."""

    def __init__(self, run: Any, count: int, S: Any = 1.0):
        self.run, self.count, self.S = run, count, S

    @property
    def weights(self) -> np.ndarray:
        """Weights of the run, shape (1, p)."""
        found: np.ndarray = self.run.weights / self.S
        return found

    def releases(self) -> Iterator[np.ndarray]:
        """Make the run, and yield each release as it is made."""
        yield from self.run.releases(self.count)

    def solve(self) -> np.ndarray:
        """Make the run, and return its weights, shape (1, p)."""
        self.run.advance(self.count)
        return self.weights


class Lane(Following):
    """One lane, which releases before its first step and after each."""

    def releases(self) -> Iterator[np.ndarray]:
        """Make the run, and yield each release as it is made."""
        yield np.array(self.run.released[0])
        for _ in range(self.count):
            self.run.advance(1)
            yield np.array(self.run.released[0])


class Contestant(ABC):
    """A solver, by its module and options, on a problem of public constants."""

    exact = False  #: whether noise is discrete, for release; of the family ``fits``

    def __init__(self, module: ModuleType, options: Any, problem: Problem):
        self.module, self.options, self.problem = module, options, problem

    def obstacle(self) -> str:
        """Why it cannot work on the problem; empty if it can."""
        return ""

    @abstractmethod
    def ledger(self, setting: Setting, noise_multiplier: float) -> Ledger:
        """The releases of a run."""

    @abstractmethod
    def start(
        self, setting: Setting, noise_multiplier: float, own: Streams
    ) -> AbstractContextManager[Following | Fit]:
        """One run, which an audit follows release by release."""

    def weights(
        self, setting: Setting, noise_multiplier: float, seed: int
    ) -> np.ndarray:
        """The weights of one run, shape (p,)."""
        with self.start(setting, noise_multiplier, streams(seed)) as run:
            found: np.ndarray = run.solve()[0]
        return found

    def public_information(self, ledger: Ledger) -> tuple[str, ...]:
        """What an epsilon takes as public; clips are in units of the label's scale."""
        is_signed = self.problem.loss.labels == "sign"
        labels = () if is_signed else (LABEL_SCALE,)
        known = (ledger.assuming(*self.problem.given) + Ledger(given=labels)).given
        left = DECLARED if is_declared(self.problem) else ()
        return tuple(name for name in known if name not in left)


class Fitting(Contestant):
    """A method of the family ``fits``."""

    def __init__(self, module: ModuleType, options: Any, problem: Problem):
        super().__init__(module, options, problem)
        self.at = Scaled(problem)

    def obstacle(self) -> str:
        """The module's refusal, if any."""
        return str(self.module.refuses(self.options, self.at))

    def ledger(self, setting: Setting, noise_multiplier: float) -> Ledger:
        """The module's ledger."""
        made: Ledger = self.module.ledger(
            self.at, noise_multiplier, self._options(setting)
        )
        return made

    def start(
        self, setting: Setting, noise_multiplier: float, own: Streams
    ) -> AbstractContextManager[Fit]:
        """One run."""
        ledger = self.ledger(setting, noise_multiplier)
        at = Scaled(self.problem, apart=True) if self.exact else self.at
        run: Fit = self.module.Run(at, ledger, [own], self._options(setting))
        run.exact = Exact() if self.exact else None
        return nullcontext(run)

    def _options(self, setting: Setting) -> Any:
        typed = {k: type(getattr(self.options, k))(v) for k, v in setting.items()}
        return replace(self.options, **typed)  # integers stay integers


class Laning(Contestant):
    """A solver of lanes, of which a run is one."""

    def obstacle(self) -> str:
        """What lanes cannot do, or noise on every feature of a wide problem."""
        problem = self.problem
        if problem.is_sparse and not getattr(self.module, "SPARSE", False):
            return "its data are kept sparse"
        batch = getattr(self.options, "batch", 1)
        if batch > problem.n:
            return f"batches of {batch} are more than its {problem.n} records"
        refuses = getattr(self.module, "refuses", lambda *_: "")
        reason = str(refuses(self.options, problem.penalty.is_smooth))
        by_record = any(word in self.module.__name__ for word in RECORDWISE)
        if not reason and by_record and problem.p > WIDE:
            return f"noise on {problem.p} features in every step takes too long"
        return reason

    def ledger(self, setting: Setting, noise_multiplier: float) -> Ledger:
        """The module's ledger under strict calibration."""
        given = (self._count(setting), noise_multiplier, self.options, STRICT)
        made: Ledger = self.module.ledger(self.problem, *given)
        return made

    def public_information(self, ledger: Ledger) -> tuple[str, ...]:
        """What an epsilon takes as public: also scales, the units of clips."""
        return super().public_information(ledger.assuming(SMOOTHNESS))

    def start(
        self, setting: Setting, noise_multiplier: float, own: Streams
    ) -> AbstractContextManager[Lane]:
        """One lane, its clip in units of the scales."""
        clip, count = clip_unit(self.problem) * setting["clip"], self._count(setting)
        step = np.array([setting["step"]], dtype=float)
        lanes = Lanes(step, np.array([clip]), noise_multiplier, STRICT)
        run = self.module.Run(self.problem, lanes, own, self.options, 1, count)
        return nullcontext(Lane(run, count))

    def _count(self, setting: Setting) -> int:
        return int(self.module.steps(self.problem, setting["passes"], self.options))


class FrankWolfing(Contestant):
    """A Frank-Wolfe method over an L1 ball, in units of the public scales.

    The radius is a multiple of the label's scale. Entries and labels are clipped to
    three times their scales. The ball stands in place of the problem's penalty.
    """

    def __init__(self, module: ModuleType, options: Any, problem: Problem):
        super().__init__(module, options, problem)
        self.S = column_scales(problem)

    @functools.cached_property
    def scaled(self) -> Problem:
        """The problem in units of its scales, without its penalty."""
        A = sparse.csc_array(self.problem.A) @ sparse.diags_array(1 / self.S)
        A = sparse.csc_array(A)
        A.sort_indices()  # a run shares them, and sorts what is unsorted in place
        return replace(self.problem, A=A, penalty=Penalty(), public=None)

    def ledger(self, setting: Setting, noise_multiplier: float) -> Ledger:
        """The module's ledger."""
        made: Ledger = self.module.ledger(
            self.scaled, int(setting["steps"]), noise_multiplier, self._options(setting)
        )
        return made.assuming(SMOOTHNESS)

    @contextmanager
    def start(
        self, setting: Setting, noise_multiplier: float, own: Streams
    ) -> Iterator[Following]:
        """One run, whose releases are signed indices and sketched features."""
        ledger = self.ledger(setting, noise_multiplier)
        selections, *features = (event.scale for event in ledger.events)
        noise = Noise(ledger, selections, sum(features))  # at most one kind
        given = (self.scaled, own, self._options(setting), noise)
        with self.module.Run(*given) as run:
            yield Following(run, int(setting["steps"]), self.S)

    def _options(self, setting: Setting) -> Any:
        label = label_scale(self.problem)
        return replace(
            self.options,
            radius=setting["radius"] * label,
            entry_bound=ENTRIES,
            label_bound=ENTRIES * label,
        )


KINDS: dict[str, Any] = {"fits": Fitting, "lanes": Laning, "frank_wolfe": FrankWolfing}


def clip_unit(problem: Problem) -> float:
    """A record's slope times its norm, both at their scales."""
    slope = min(problem.loss.lipschitz(math.inf), label_scale(problem))
    return slope * float(np.sqrt(problem.smoothness.sum() / problem.loss.curvature))


# --- by name --------------------------------------------------------------------------


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
        is_own = algorithm not in solvers.PLACES and _family(self.section) == "lanes"
        return not is_own and not any(word in algorithm for word in ALIKE)

    def on(self, problem: Problem) -> Contestant:
        """The method on a problem."""
        module, options = _loaded(self.section)
        return KINDS[solvers.family(module)](module, options, problem)

    def check(self, setting: Setting) -> None:
        """Refuse a setting with unknown names or wrong values, by a ConfigError."""
        where = f"solver {self.name}: setting"
        module, options = _loaded(self.section)
        numbers = KEYS.get(solvers.family(module), ())
        able = numbers or [field.name for field in fields(options)]
        for key, value in setting.items():
            expected = ""
            if key not in able:
                expected = f"one of {', '.join(able)}{hint(key, able)}"
            elif numbers and not (
                isinstance(value, Real)
                and not isinstance(value, bool)
                and 0 < float(value) < math.inf
            ):
                expected = f"a positive number, found {value!r}"
            elif numbers and key == "steps" and not is_whole(value):
                expected = f"a whole number, found {value!r}"
            if expected:
                raise ConfigError(f"{where} {key}: expected {expected}")
        if numbers:
            return
        try:
            typed(options, setting)
            replace(options, **setting)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{where}: {error}") from error


def _loaded(section: schema.Solver) -> tuple[ModuleType, Any]:
    module = solvers.load(section.algorithm)
    return module, solvers.make_options(module, section.options)


def known() -> list[str]:
    """Names of the solvers that solve a composite problem."""
    every = (_section(name) for name in available("solver"))
    return [one.name for one in every if _is_able(one)]


def method(
    name: str,
    defaults: Mapping[str, Any] | None = None,
    grids: Mapping[str, Any] | None = None,
) -> Method:
    """Find a method by the name of a solver's YAML, or of a Python file in this folder.

    ``defaults`` and ``grids`` have settings by solver's name that replace the arena's.
    Raises ConfigError if there is no such solver, or it solves no such problem.
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
    if not _is_able(section):
        why = ": it adds no noise" if _family(section) in KINDS else ""
        raise ConfigError(
            f"solver {name}: solves no problem of this kind{why}; expected one of "
            f"{', '.join(known())}"
        )
    checks.held(section)
    usual = _usual(section)
    default = {**usual[0], **defaults.get(name, {})}
    axes = grids.get(name)
    every = points(dict(axes or usual[1]), f"grids.{name}", axes=None)
    # axes that a chosen grid leaves out stay at the default, and those of a module's
    is_own = axes or hasattr(solvers.load(section.algorithm), "GRID")
    grid = [{**(default if is_own else {}), **one} for one in every] or [default]
    made = Method(section, default, grid)
    for setting in (default, *grid):
        made.check(setting)
    return made


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
        near = hint(name, names)
        listed = "the names in conf/solver" if near else f"{', '.join(names)}"
        raise ConfigError(
            f"solver {name}{near}: expected one of {listed}, or a file {name}.py here"
        )
    checks.solver(section)
    return section


def _family(section: schema.Solver) -> str:
    return solvers.family(solvers.load(section.algorithm))


def _is_able(section: schema.Solver) -> bool:
    """Whether it takes part: Frank-Wolfe methods without bounds add no noise."""
    options = {field.name for field in fields(solvers.load(section.algorithm).Options)}
    family = _family(section)
    return family in KINDS and (family != "frank_wolfe" or "entry_bound" in options)


def _usual(section: schema.Solver) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Default and grid of the arena's nearest method; its module's come first."""
    module = solvers.load(section.algorithm)
    options = _arena(locate.conf_dirs()[0])
    defaults, grids = options["defaults"], options["grids"]
    names, algorithm = [section.name], section.algorithm
    if algorithm in solvers.PLACES:  # a variant has its algorithm's
        names += [name for name in grids if name.startswith(algorithm)]
    by_record = any(word in algorithm for word in RECORDWISE)
    others = {"lanes": "dp_sgd" if by_record else "dp_cd", "frank_wolfe": "dp_fw"}
    names.append(others.get(_family(section), ""))
    name = next((name for name in names if name in grids), "")
    default = {**defaults.get(name, {}), **getattr(module, "DEFAULT", {})}
    return default, getattr(module, "GRID", grids.get(name, {}))


@functools.cache
def _arena(folder: Path) -> dict[str, Any]:
    """The arena's defaults and grids by solver's name."""
    return dict(read("paper", "arena").sweeps["race"].options)
