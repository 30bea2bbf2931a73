"""Methods of every family behind one interface, found by name.

A setting is a mapping of tuned values. Clips are in units of the public scales, so that
one grid serves every problem: 1 is the largest slope times sqrt(sum_j S_j^2), the root
mean square of a record's norm. Default settings and grids stand beside the solvers.

What a name means does not depend on the current folder. Variants of a solver are read
from the YAML files of the package itself, never from a user's ``conf/``.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from dperm.names import ConfigError, entry_points, hint, home
from dperm.privacy.accountants import TIGHT
from dperm.privacy.events import (
    GLOBAL_SMOOTHNESS,
    LABEL_SCALE,
    LIFTS,
    SMOOTHNESS,
    Ledger,
)
from dperm.privacy.noise import Streams, streams
from dperm.problems.door import shown
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem
from dperm.solvers import registry
from dperm.solvers.exact_noise import Exact
from dperm.solvers.full_batch import Fit
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.options import is_whole, typed
from dperm.solvers.scales import column_scales, is_declared, label_scale

Setting = Mapping[str, float]

DECLARED = (SMOOTHNESS, GLOBAL_SMOOTHNESS, LABEL_SCALE, LIFTS)
MAX_FULL_STEP_FEATURES = 10_000  # beyond, a step on all of them takes too long
# Clip of entries and labels of Frank-Wolfe methods, in their scales
ENTRY_CLIP = 3.0


class UnsuitedError(ValueError):
    """A method that cannot solve a problem."""


class FollowedRun:
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


class FollowedBatch(FollowedRun):
    """One batched run, which releases before its first step and after each."""

    def releases(self) -> Iterator[np.ndarray]:
        """Make the run, and yield each release as it is made."""
        yield np.array(self.run.released[0])
        for _ in range(self.count):
            self.run.advance(1)
            yield np.array(self.run.released[0])


class SolverAdapter(ABC):
    """A solver, by its module and options, on a problem of public constants."""

    #: noise is discrete, for release; of the family ``full_batch``
    exact = False
    #: whether it runs once, so that records need not be held twice
    once = False
    own = False  #: whether it may change the problem's array

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
    ) -> AbstractContextManager[FollowedRun | Fit]:
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
        known = (
            ledger.assuming(*self.problem.given) + Ledger(given=labels)
        ).given
        left = DECLARED if is_declared(self.problem) else ()
        return tuple(name for name in known if name not in left)


class FullBatchAdapter(SolverAdapter):
    """A method of the family ``full_batch``."""

    def __init__(self, module: ModuleType, options: Any, problem: Problem):
        super().__init__(module, options, problem)
        self.at = Scaled(problem)

    def obstacle(self) -> str:
        """The module's refusal, if any."""
        return str(self.module.refuses(self.options, self.at))

    def ledger(self, setting: Setting, noise_multiplier: float) -> Ledger:
        """The module's ledger."""
        ledger: Ledger = self.module.ledger(
            self.at, noise_multiplier, self._options(setting)
        )
        return ledger

    def start(
        self, setting: Setting, noise_multiplier: float, own: Streams
    ) -> AbstractContextManager[Fit]:
        """One run."""
        ledger = self.ledger(setting, noise_multiplier)
        at = Scaled(self.problem, apart=True) if self.exact else self.at
        if self.once and self.problem.public is not None:
            at.hold_records(self.own)
            self.at = at
            self.problem = self.problem.public
        run: Fit = self.module.Run(at, ledger, [own], self._options(setting))
        run.exact = Exact() if self.exact else None
        return nullcontext(run)

    def _options(self, setting: Setting) -> Any:
        typed = {
            k: type(getattr(self.options, k))(v) for k, v in setting.items()
        }
        return replace(self.options, **typed)  # integers stay integers


class BatchedAdapter(SolverAdapter):
    """A batched solver; a fit is a batch of one setting."""

    def obstacle(self) -> str:
        """What the solver cannot do, or noise on every feature of a wide problem."""
        problem = self.problem
        if problem.is_sparse and not getattr(self.module, "SPARSE", False):
            return "its data are kept sparse"
        batch = getattr(self.options, "batch", 1)
        if batch > problem.n:
            return f"batches of {batch} are more than its {problem.n} records"
        refuses = getattr(self.module, "refuses", lambda *_: "")
        reason = str(refuses(self.options, problem.penalty.is_smooth))
        by_record = getattr(self.module, "RECORDWISE", False)
        if not reason and by_record and problem.p > MAX_FULL_STEP_FEATURES:
            return (
                f"noise on {problem.p} features in every step takes too long"
            )
        return reason

    def ledger(self, setting: Setting, noise_multiplier: float) -> Ledger:
        """The module's ledger under tight calibration."""
        given = (self._count(setting), noise_multiplier, self.options, TIGHT)
        ledger: Ledger = self.module.ledger(self.problem, *given)
        return ledger

    def public_information(self, ledger: Ledger) -> tuple[str, ...]:
        """What an epsilon takes as public: also scales, the units of clips."""
        return super().public_information(ledger.assuming(SMOOTHNESS))

    def start(
        self, setting: Setting, noise_multiplier: float, own: Streams
    ) -> AbstractContextManager[FollowedBatch]:
        """A batch of one setting, its clip in units of the scales."""
        clip, count = (
            clip_unit(self.problem) * setting["clip"],
            self._count(setting),
        )
        step = np.array([setting["step"]], dtype=float)
        from dperm.solvers.batched import (
            BatchedSettings,  # a fit by few releases needs none
        )

        settings = BatchedSettings(
            step, np.array([clip]), noise_multiplier, TIGHT
        )
        run = self.module.Run(
            self.problem, settings, own, self.options, 1, count
        )
        return nullcontext(FollowedBatch(run, count))

    def _count(self, setting: Setting) -> int:
        return int(
            self.module.steps(self.problem, setting["passes"], self.options)
        )


class FrankWolfeAdapter(SolverAdapter):
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
        ledger: Ledger = self.module.ledger(
            self.scaled,
            int(setting["steps"]),
            noise_multiplier,
            self._options(setting),
        )
        return ledger.assuming(SMOOTHNESS)

    @contextmanager
    def start(
        self, setting: Setting, noise_multiplier: float, own: Streams
    ) -> Iterator[FollowedRun]:
        """One run, whose releases are signed indices and sketched features."""
        from dperm.solvers.frank_wolfe import Noise

        ledger = self.ledger(setting, noise_multiplier)
        selections, *features = (event.scale for event in ledger.events)
        noise = Noise(ledger, selections, sum(features))  # at most one kind
        given = (self.scaled, own, self._options(setting), noise)
        with self.module.Run(*given) as run:
            yield FollowedRun(run, int(setting["steps"]), self.S)

    def _options(self, setting: Setting) -> Any:
        label = label_scale(self.problem)
        return replace(
            self.options,
            radius=setting["radius"] * label,
            entry_bound=ENTRY_CLIP,
            label_bound=ENTRY_CLIP * label,
        )


ADAPTERS: dict[str, Any] = {
    "full_batch": FullBatchAdapter,
    "batched": BatchedAdapter,
    "frank_wolfe": FrankWolfeAdapter,
}


def clip_unit(problem: Problem) -> float:
    """A record's slope times its norm, both at their scales."""
    slope = min(problem.loss.lipschitz(math.inf), label_scale(problem))
    return slope * float(
        np.sqrt(problem.smoothness.sum() / problem.loss.curvature)
    )


# --- by name --------------------------------------------------------------------------


SETTING_NAMES = {
    "batched": ("passes", "step", "clip"),
    "frank_wolfe": ("steps", "radius"),
}
# Beyond, the rule takes no method with p x p matrices
MAX_MATRIX_FEATURES = 2000
# n epsilon / p below which noise is large beside second moments
FEW_RECORDS = 300
ARENA = (  # the methods that ``dperm try solvers=all`` compares, as the arena does
    "objective_perturbation",
    "moments",
    "ada_ssp",
    "dp_gd",
    "dp_gram",
    "dp_adaptive",
    "dp_newton",
    "dp_minibatch",
    "hessian_mixing",
    "dp_selection",
    "dp_cd",
    "dp_gcd_gumbel",
    "dp_skgd_full",
    "dp_sgd",
    "dp_fw",
)


@dataclass(frozen=True)
class Method:
    """A method that can be applied to a problem."""

    name: str
    algorithm: str  #: one that ``dperm.solvers.registry.load`` takes
    module: Any = field(
        repr=False
    )  #: its module, or an object that stands for one
    options: Any
    default: Setting  #: the setting without tuning
    grid: Sequence[Setting] = field(repr=False)

    @functools.cached_property
    def label(self) -> str:
        """The name of tables and figures."""
        return str(_packaged(self.name).get("label", self.name))

    @property
    def scales_columns(self) -> bool:
        """Whether steps use the scales of columns; then the intercept's may be large.

        Steps of one size for all weights do not, and a user's own solver may not.
        """
        own = self.algorithm not in registry.PLACES
        if own and registry.family(self.module) == "batched":
            return False
        words = ("RECORDWISE", "SAME_STEPS")
        return not any(getattr(self.module, word, False) for word in words)

    def on(self, problem: Problem) -> SolverAdapter:
        """The method on a problem."""
        adapter = ADAPTERS[registry.family(self.module)]
        made: SolverAdapter = adapter(self.module, self.options, problem)
        return made

    def check(self, setting: Setting) -> None:
        """Refuse a setting with unknown names or wrong values, by a ConfigError."""
        where = f"solver {self.name}: setting"
        numbers = SETTING_NAMES.get(registry.family(self.module), ())
        able = numbers or [one.name for one in fields(self.options)]
        for key, value in setting.items():
            expected = ""
            if key not in able:
                expected = f"one of {', '.join(able)}{hint(str(key), able)}"
            elif numbers and not (
                isinstance(value, Real)
                and not isinstance(value, bool)
                and 0 < float(value) < math.inf
            ):
                expected = f"a positive number, found {value!r}"
            elif isinstance(value, Real) and abs(value) == math.inf:
                expected = f"a finite number, found {value!r}"
            elif numbers and key == "steps" and not is_whole(value):
                expected = f"a whole number, found {value!r}"
            if expected:
                raise ConfigError(f"{where} {key}: expected {expected}")
        if numbers:
            return
        try:
            typed(self.options, setting)
            replace(self.options, **setting)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{where}: {error}") from error


def usual(is_quadratic: bool, p: int, size: float) -> tuple[str, ...]:
    """The methods that a fit tries, the first of which can solve the problem.

    Public numbers alone decide: the loss, the features p, and ``size`` = n epsilon / p.

    *Why.* Where p x p matrices are wide, descent alone makes none. Two classes: nothing
    beats objective perturbation. Numbers: noise on all second moments costs more than
    noise on a few gradients while n epsilon / p is small (boosted AdaSSP, Tang et al.
    2023), and nothing less once it is large, when they give the exact minimiser.

    Mean regret in the arena (66 cells, results/arena/arena.csv, excess cut at 2) by
    threshold of ``size``, in units of what can be learned:

    ========= ===== ===== ===== ===== ==================
    threshold 0     100   300   1000  always descent
    regret    0.116 0.051 0.038 0.039 0.042
    ========= ===== ===== ===== ===== ==================
    """
    if p > MAX_MATRIX_FEATURES:
        return ("dp_gd",)
    if not is_quadratic:
        return ("objective_perturbation", "dp_gram", "dp_minibatch", "dp_gd")
    if size < FEW_RECORDS:
        return ("dp_gram", "moments", "dp_gd")
    return ("moments", "dp_gram", "dp_gd")


def known() -> list[str]:
    """Names of the package's solvers that solve a composite problem."""
    names = {*registry.PLACES, *_variants()}
    return sorted(
        name for name in names if _is_able(registry.load(_algorithm(name)))
    )


def method(
    solver: Any,
    defaults: Mapping[str, Any] | None = None,
    grids: Mapping[str, Any] | None = None,
) -> Method:
    """Find a method by its solver.

    Parameters
    ----------
    solver : str, module, object or Method
        A name of this package; the name of an entry point of ``dperm.solvers``;
        ``module:name``, which is imported; or what such a name stands for, a module or
        an object with the names that a family requires.
    defaults, grids : mapping, optional
        Settings, and values of axes, that replace the solver's own, by its name.

    Raises
    ------
    ConfigError
        If there is no such solver, or it solves no such problem.
    """
    if isinstance(solver, Method):
        return solver
    if isinstance(solver, str) and not defaults and not grids:
        return _kept(solver)
    return _method(solver, defaults or {}, grids or {})


@functools.cache
def _kept(solver: str) -> Method:
    """Keep a method by its name: to find it is nine tenths of a small fit."""
    return _method(solver, {}, {})


def _method(
    solver: Any, defaults: Mapping[str, Any], grids: Mapping[str, Any]
) -> Method:
    if not isinstance(solver, str):
        return configured(_shown(solver), _given(solver), {}, defaults, grids)
    if ":" in solver:
        return configured(
            solver, _given(_imported(solver)), {}, defaults, grids
        )
    return configured(
        solver, _algorithm(solver), _options(solver), defaults, grids
    )


def configured(
    name: str,
    algorithm: str,
    options: Mapping[str, Any],
    defaults: Mapping[str, Any] | None = None,
    grids: Mapping[str, Any] | None = None,
) -> Method:
    """The method of an algorithm with these options.

    Raises ConfigError if there is no such algorithm or option, if it solves no such
    problem, or if it is a user's own and leaks.
    """
    try:
        module = registry.load(algorithm)
        made = registry.make_options(module, dict(options))
    except (ValueError, TypeError) as error:
        raise ConfigError(f"solver {name}: {error}") from error
    if not _is_able(module):
        why = (
            ": it adds no noise" if registry.family(module) in ADAPTERS else ""
        )
        raise ConfigError(
            f"solver {name}: solves no problem of this kind{why}; expected one of "
            f"{', '.join(known())}"
        )
    if algorithm not in registry.PLACES:
        # for a user's own solver alone
        from dperm.audit.leaks import refuse_leaks

        refuse_leaks(name, algorithm, options)
    usual, axes = registry.settings(module)
    default = {**usual, **(defaults or {}).get(name, {})}
    chosen = (grids or {}).get(name)
    every = _points(name, chosen) if chosen else _product(axes)
    # axes that a grid leaves out stay at the default
    grid = [{**default, **one} for one in every] or [default]
    found = Method(name, algorithm, module, made, default, grid)
    for setting in (default, *grid):
        found.check(setting)
    return found


def of_file(file: Path, *given: Mapping[str, Any]) -> Method:
    """The method of a Python file, whose folder then is on Python's path.

    Raises ConfigError if it is no solver, or one that leaks.
    """
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    return configured(file.stem, file.stem, {}, *given)


def _product(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All settings of a solver's grid."""
    every = itertools.product(*axes.values())
    return [dict(zip(axes, point, strict=True)) for point in every]


def _points(name: str, grid: Any) -> list[dict[str, Any]]:
    """All settings of a grid that a user wrote."""
    from dperm.config.grid import points  # as in a paper's YAML

    return points(dict(grid), f"grids.{name}", axes=None)


def _given(solver: Any) -> str:
    try:
        return registry.given(solver)
    except ValueError as error:
        raise ConfigError(
            f"solver: expected a name, or a module or object with the names of a "
            f"solver, found {shown(solver)}: {error}"
        ) from error


def _shown(solver: Any) -> str:
    """An object's name, without the package that a module lies in."""
    return registry.name_of(solver).rpartition(".")[2]


def _imported(place: str) -> Any:
    """The object that ``module:name`` stands for, which may be a module in a package.

    Raises ConfigError if there is none.
    """
    module_name, _, name = place.partition(":")
    try:
        module = importlib.import_module(module_name)
        if hasattr(module, name):
            return getattr(module, name)
        return importlib.import_module(f"{module_name}.{name}")
    except (ImportError, ValueError) as error:
        raise ConfigError(
            f"solver {place}: expected module:name: {error}"
        ) from error


def _algorithm(name: str) -> str:
    """The algorithm of a name. Raises ConfigError if there is none."""
    if name in registry.PLACES or name in entry_points("solvers"):
        return name
    algorithm = _packaged(name).get("algorithm")
    if algorithm is None:
        names = sorted({*registry.PLACES, *_variants()})
        raise ConfigError(
            f"solver {name}{hint(name, names)}: expected one of {', '.join(names)}, "
            "an entry point of dperm.solvers, module:name or a module"
        )
    return str(algorithm)


def _options(name: str) -> Mapping[str, Any]:
    """The options of a name; an algorithm's own are the defaults of its Options."""
    if name in registry.PLACES or name in entry_points("solvers"):
        return {}
    options: Mapping[str, Any] = _packaged(name).get("options", {})
    return options


@functools.cache
def _variants() -> list[str]:
    """Names of the package's own YAML files of solvers."""
    return sorted(
        path.stem for path in (home() / "conf/solver").glob("*.yaml")
    )


@functools.cache
def _packaged(name: str) -> Mapping[str, Any]:
    """The package's own YAML of a solver; empty if there is none."""
    if name not in _variants():
        return {}
    import yaml

    text = (home() / f"conf/solver/{name}.yaml").read_text(encoding="utf-8")
    content: Mapping[str, Any] = yaml.safe_load(text)
    return content


def _is_able(module: Any) -> bool:
    """Whether it takes part: Frank-Wolfe methods without bounds add no noise."""
    options = {one.name for one in fields(module.Options)}
    family = registry.family(module)
    return family in ADAPTERS and (
        family != "frank_wolfe" or "entry_bound" in options
    )
