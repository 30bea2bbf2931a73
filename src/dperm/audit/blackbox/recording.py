"""A function under test, and numpy's generators with a record of what it drew.

While :func:`recorded` is open, ``numpy.random`` hands out generators that note every
draw, and take its numbers from a script if there is one. Python's ``random`` and the
system's entropy are made repeatable too, but are not noted number by number.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import io
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dperm.audit.blackbox import recording
from dperm.audit.blackbox.domain import Data
from dperm.audit.subjects import Draw
from dperm.core.experiment import locate

Array = np.ndarray

# Methods whose draws are no noise of known scale: what they decide is not replayed.
OTHERS = """
random integers choice permutation permuted shuffle bytes uniform random_sample rand
randint random_integers tomaxint beta binomial chisquare dirichlet f gamma geometric
hypergeometric logseries lognormal multinomial negative_binomial
noncentral_chisquare noncentral_f pareto poisson power rayleigh standard_cauchy
standard_gamma standard_t triangular vonmises wald weibull zipf
multivariate_hypergeometric
"""


@dataclass
class Record:
    """What one run drew."""

    #: numbers of unit scale to hand out instead, as long as they fit
    script: Sequence[Array] = ()
    draws: list[Draw] = field(default_factory=list)
    #: methods and modules that decided something without being noted
    others: set[str] = field(default_factory=set)

    def noise(self, kind: str, unit: Any, loc: Any, scale: Any) -> Any:
        """The draw, noted; of the script's numbers where there are some."""
        at, shape = len(self.draws), np.shape(unit)
        if at < len(self.script) and self.script[at].shape == shape:
            unit = self.script[at] if shape else float(self.script[at])
        elif self.script:
            self.others.add("another sequence of draws")
        self.draws.append(
            Draw(kind, np.array(unit, dtype=float), scale=np.asarray(scale))
        )
        return loc + scale * unit


class _Now:
    """The record and the seed of the run under way."""

    record, seed, made = Record(), 0, 0

    def fresh(self) -> list[int]:
        """A seed for a generator that was asked for without one."""
        self.made += 1
        return [self.seed, self.made]


_now = _Now()


def _shape(size: Any, *parameters: Any) -> Any:
    """The shape of a draw: ``size``, or what the parameters broadcast to."""
    return np.broadcast(*parameters).shape or None if size is None else size


class _Noted:
    """Methods that stand before those of a generator of numpy's."""

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        unit = super().standard_normal(_shape(size, loc, scale))  # type: ignore[misc]
        return _now.record.noise("normal", unit, loc, scale)

    def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
        unit = super().standard_normal(size)  # type: ignore[misc]
        return _now.record.noise("normal", unit, 0.0, 1.0)

    def randn(self, *shape: int) -> Any:
        return self.standard_normal(shape or None)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        unit = super().standard_exponential(_shape(size, scale))  # type: ignore[misc]
        return _now.record.noise("exponential", unit, 0.0, scale)

    def standard_exponential(self, size: Any = None, *_: Any, **__: Any) -> Any:
        unit = super().standard_exponential(size)  # type: ignore[misc]
        return _now.record.noise("exponential", unit, 0.0, 1.0)


def _two_parameters(law: str) -> Callable[..., Any]:
    def draw(self: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        unit = getattr(super(_Noted, self), law)(0.0, 1.0, _shape(size, loc, scale))
        return _now.record.noise(law, unit, loc, scale)

    return draw


def _not_replayed(name: str) -> Callable[..., Any]:
    def draw(self: Any, *args: Any, **named: Any) -> Any:
        _now.record.others.add(name)
        return getattr(super(_Noted, self), name)(*args, **named)

    return draw


for _law in ("laplace", "logistic", "gumbel"):
    setattr(_Noted, _law, _two_parameters(_law))
for _name in OTHERS.split():
    setattr(_Noted, _name, _not_replayed(_name))


class Generator(_Noted, np.random.Generator):
    """``numpy.random.Generator`` with a record."""


class RandomState(_Noted, np.random.RandomState):
    """``numpy.random.RandomState`` with a record."""

    def __init__(self, seed: Any = None):
        if isinstance(seed, np.random.BitGenerator):
            super().__init__(seed)
            return
        bits = np.random.MT19937(0)  # numpy would ask the system for a seed first
        bits._legacy_seeding(_now.fresh() if seed is None else seed)  # type: ignore[attr-defined]
        super().__init__(bits)


def default_rng(seed: Any = None) -> Any:
    """``numpy.random.default_rng`` with a record; without a seed, one of the run's."""
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, np.random.BitGenerator):
        return Generator(seed)
    return Generator(np.random.PCG64(_now.fresh() if seed is None else seed))


_everyone = RandomState(0)  # behind np.random.normal and its neighbours
_entropy = random.Random(0)  # behind the system's


def _urandom(count: int) -> bytes:
    _now.record.others.add("the system's entropy (secrets)")
    return _entropy.randbytes(count)


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    hidden = np.random.mtrand._rand  # type: ignore[attr-defined]
    for name in dir(np.random):
        if getattr(getattr(np.random, name), "__self__", None) is hidden:
            yield np.random, name, getattr(_everyone, name)
    for made in (Generator, RandomState, default_rng):
        yield np.random, made.__name__, made
    yield np.random.mtrand, "_rand", _everyone
    yield random, "_urandom", _urandom


@contextmanager
def recorded() -> Iterator[None]:
    """Put the recording generators in the place of numpy's."""
    before = [
        (module, name, getattr(module, name), value)
        for module, name, value in _replacements()
    ]
    for module, name, _, value in before:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value, _ in before:
            setattr(module, name, value)


@contextmanager
def run(
    seed: int, script: Sequence[Array] = (), careful: bool = False
) -> Iterator[Record]:
    """One run: every source of randomness starts anew from the seed.

    ``careful`` also looks whether Python's ``random`` was used, which takes time.
    """
    _now.record, _now.seed, _now.made = Record(script), seed, 0
    _everyone.seed(seed % 2**32)
    random.seed(seed)
    _entropy.seed(seed)
    before = random.getstate() if careful else None
    yield _now.record
    if careful and random.getstate() != before:
        _now.record.others.add("Python's random")


Fit = Callable[[Array, Array, Any], Any]

GENERATORS = ("rng", "generator")  # names of a third parameter that wants a generator


class RefusedError(ValueError):
    """What cannot be audited; the text says why, in one line."""


@dataclass(frozen=True)
class Run:
    """One run: its output (k,), which is empty where it raised, and what it drew."""

    output: Array
    raised: str
    record: Record


class Target:
    """``fit`` on given data and noise.

    Parameters
    ----------
    fit : callable
        ``fit(X, y, seed)`` returns numbers: an array, several, or an object with
        ``coef_``. A third parameter called ``rng`` gets a generator.
    """

    def __init__(self, fit: Fit):
        self.fit, self.runs = fit, 0
        self.wants_generator = _third(fit) in GENERATORS

    def __call__(
        self,
        data: Data,
        seed: int,
        script: Sequence[Array] = (),
        careful: bool = False,
    ) -> Run:
        """Run once, on copies of the data; see :func:`.recording.run`."""
        self.runs += 1
        with recording.run(seed, script, careful) as record:
            given = recording.default_rng(seed) if self.wants_generator else seed
            try:
                value = self.fit(data.X.copy(), data.y.copy(), given)
            except Exception as error:  # what the code of others may raise
                text = f"{type(error).__name__}: {error}".split("\n")[0]
                return Run(np.empty(0), text, record)
        return Run(numbers(value), "", record)

    def repeats(self, data: Data) -> bool:
        """Whether a seed fixes the output, whatever ran before."""
        first, _, again = (self(data, seed).output for seed in (11, 12, 11))
        return first.tobytes() == again.tobytes()


def _third(fit: Fit) -> str:
    try:
        names = list(inspect.signature(fit).parameters)
    except (TypeError, ValueError):
        return ""
    return names[2] if len(names) > 2 else ""


@contextlib.contextmanager
def quiet() -> Any:
    """Drop what the code of others warns of and prints."""
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


def numbers(value: Any) -> Array:
    """All numbers of an output, flat.

    Raises RefusedError if it holds something that is no number.
    """
    if hasattr(value, "coef_"):
        value = [value.coef_, getattr(value, "intercept_", ())]
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    if isinstance(value, list | tuple):
        return np.concatenate([np.empty(0), *map(numbers, value)])
    try:
        return np.ravel(np.asarray(value, dtype=float)) + 0.0  # -0.0 is 0.0
    except (TypeError, ValueError) as error:
        kind = type(value).__name__
        raise RefusedError(f"the output: expected numbers, found {kind}") from error


def load(place: str) -> Fit:
    """The function that ``module:name`` or ``path.py:name`` names.

    Raises RefusedError if there is no such module or function, or its module does not
    import.
    """
    module, _, name = place.rpartition(":")
    try:
        loaded = _by_path(module) if module.endswith(".py") else _by_name(module)
    except Exception as error:
        text = f"{type(error).__name__}: {error}".split("\n")[0]
        raise RefusedError(f"{place}: {module} does not import: {text}") from error
    fit: Any = loaded
    for part in name.split("."):
        fit = getattr(fit, part, None)
    if not callable(fit):
        raise RefusedError(
            f"{place}: expected a function {name} in {module}, found none"
        )
    return fit


def _by_name(module: str) -> Any:
    locate.conf_dirs()  # the folder beside one's own conf/ joins the path
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    return importlib.import_module(module)


def _by_path(module: str) -> Any:
    path = Path(module).resolve()
    sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = loaded
    spec.loader.exec_module(loaded)
    return loaded
