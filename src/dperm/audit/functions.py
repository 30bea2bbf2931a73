"""A function under test: its neighbours, and its runs with a record of their draws.

While :func:`recorded` is open, ``numpy.random`` returns generators that record every
draw, and take its numbers from a script if there is one. Other sources of randomness
(``random``, ``secrets``, compiled generators) are not seen.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from dperm.audit.mechanism import Array, Draw, Pair, Records, Tap
from dperm.core.experiment import locate

Row = tuple[Array, float]  # features and label
Rng = np.random.Generator
Fit = Callable[[Array, Array, Any], Any]

NORMS = {"l1": 1.0, "l2": 2.0, "linf": np.inf}
RELATIONS = ("replace", "add-remove")
LOUD = (1.0, 1e3)  # sizes of records where no bound is declared
FINITE = (1e308, -1e308, 1e-200, 5e-324)  # which overflow or underflow
NOT_FINITE = (np.nan, np.inf, -np.inf)
QUIET = 1e-3  # size of a small record, relative to the bound
SHOWN = 4  # features of a record that are printed
GENERATORS = ("rng", "generator")  # names of a third parameter that wants a generator


class TimeUpError(Exception):
    """The time of an audit is over."""


class RefusedError(ValueError):
    """A function that cannot be audited; the message states why, in one line."""


# --- neighbours within what a function assumes of its data ----------------------------


@dataclass(frozen=True)
class Domain:
    """What a function assumes of its data, and the neighbouring relation."""

    #: n, p: records and features
    n: int = 8
    p: int = 2
    #: range of every feature; None if the function takes any number
    x: tuple[float, float] | None = None
    #: {"l1", "l2", "linf"}; norm of a record's features, bounded by the larger end of
    #: the range
    norm: str = "linf"
    #: ends of the labels' range, or all labels; None if the function takes any number
    y: tuple[float, ...] | None = None
    relation: str = "replace"  #: {"replace", "add-remove"}

    @property
    def bounded(self) -> bool:
        """Whether features and labels are both bounded."""
        return self.x is not None and self.y is not None

    def pairs(self, rng: Rng) -> list[Pair]:
        """Neighbours worth trying, each once, from each kind of data in turn."""
        groups = [
            [
                self._pair(base, position, one, two)
                for position in (0, self.n - 1)
                for one, two in self._exchanges(size, rng)
            ]
            for size in ((1.0,) if self.bounded else LOUD)
            for base in self._bases(size, rng)
        ]
        turns = itertools.chain.from_iterable(itertools.zip_longest(*groups))
        some = (pair for pair in turns if pair is not None)
        return list({(*p.first.bytes, *p.second.bytes): p for p in some}.values())

    def extremes(self, rng: Rng) -> list[Pair]:
        """Neighbours with an extreme record, where no bound is declared.

        Small features with large labels keep it company. Finite records come first,
        then those that hold NaN or infinity.
        """
        if self.bounded:
            return []
        halves = [list(self._bases(size, rng))[2] for size in LOUD]
        base = Records(halves[0].X, halves[1].y)
        usual = (base.X[0], float(base.y[0]))
        turn = 1 if self.relation == "replace" else -1
        both = [(usual, record)[::turn] for record in self._extreme_records()]
        pairs = [self._pair(base, 0, *two) for two in both]
        return sorted(pairs, key=lambda pair: not pair.finite)

    def _pair(self, base: Records, at: int, one: Row, two: Row) -> Pair:
        """Neighbours: one record in D, and another one or none in its place in D'."""
        first, place = base.replaced(at, one), f"record {at + 1} of {self.n}"
        if self.relation == "replace":
            text = f"{place}: {_said(two)} on D' in place of {_said(one)}"
            return Pair(first, base.replaced(at, two), at, text)
        rest = Records(np.delete(first.X, at, axis=0), np.delete(first.y, at))
        return Pair(first, rest, at, f"{place}: {_said(one)} not on D'")

    def _exchanges(self, size: float, rng: Rng) -> Iterator[tuple[Row, Row]]:
        """Opposite records, a record and zero, labels, a small record, random ones."""
        loud, ends = self._loud(size), self._ends(size)
        zero, last = self._fit(np.zeros(self.p), size), ends[-1]
        for x, other in loud:
            for y in ends:
                yield (x, y), (other, y)
                yield (zero, y), (x, y)
                yield (x, y), (zero, y)
            yield (x, last), (x, ends[0])
            yield (x, ends[0]), (other, last)
        yield (zero, last), (zero, ends[0])
        yield (zero, last), (self._fit(QUIET * loud[0][0], size), last)
        for _ in range(4):
            x, other = (self._random(size, rng) for _ in range(2))
            yield (x, float(rng.choice(ends))), (other, float(rng.choice(ends)))

    def _bases(self, size: float, rng: Rng) -> Iterator[Records]:
        """Zeros, duplicates, two opposite halves, random records."""
        ends, (high, low) = self._ends(size), self._loud(size)[0]
        alternating = np.arange(self.n) % 2
        zero = self._fit(np.zeros(self.p), size)
        yield Records(np.tile(zero, (self.n, 1)), np.full(self.n, ends[0]))
        yield Records(np.tile(high, (self.n, 1)), np.full(self.n, ends[-1]))
        halves = np.where(alternating[:, None], high, low)
        yield Records(halves, np.where(alternating, ends[-1], ends[0]))
        X = np.array([self._random(size, rng) for _ in range(self.n)])
        yield Records(X, rng.choice(ends, self.n))

    # --- records ----------------------------------------------------------------------

    def _range(self, size: float) -> tuple[float, float]:
        return (-size, size) if self.x is None else self.x

    def _ends(self, size: float) -> tuple[float, ...]:
        return (-size, size) if self.y is None else self.y

    def _loud(self, size: float) -> list[tuple[Array, Array]]:
        """Records at the ends of the range, each with its opposite."""
        (low, high), place = self._range(size), np.arange(self.p)
        kinds = (place >= 0, place % 2 == 0, place < self.p / 2, place < self.p - 1)
        both = [(np.where(k, high, low), np.where(k, low, high)) for k in kinds]
        middle = np.clip(0.0, low, high)
        for axis in np.eye(self.p, dtype=bool)[:4]:
            both.append((np.where(axis, high, middle), np.where(axis, low, middle)))
        return [(self._fit(a, size), self._fit(b, size)) for a, b in both]

    def _extreme_records(self) -> Iterator[Row]:
        """Every feature vector with every label, where at least one is extreme."""
        plain, wild = [self._fit(np.zeros(self.p), 1.0), self._loud(1.0)[0][0]], []
        if self.x is None:
            signs = 1.0 - 2.0 * (np.arange(self.p) % 2)
            wild = [np.full(self.p, value) for value in FINITE + NOT_FINITE]
            wild += [value * signs for value in (FINITE[0], np.inf) if self.p > 1]
        ends, odd = self._ends(1.0), tuple[float, ...]()
        if self.y is None:
            ends, odd = (*ends, 0.0), FINITE + NOT_FINITE
        yield from itertools.product(wild, ends + odd)
        yield from itertools.product(plain, odd)

    def _random(self, size: float, rng: Rng) -> Array:
        low, high = self._range(size)
        return self._fit(low + (high - low) * rng.random(self.p), size)

    def _fit(self, x: Array, size: float) -> Array:
        """Restrict a record to the range and the norm."""
        low, high = self._range(size)
        x = np.clip(x, low, high)
        if self.x is None:
            return x
        length, bound = np.linalg.norm(x, NORMS[self.norm]), max(abs(low), abs(high))
        return x * min(1.0, bound / length) if length > 0 else x


def _said(record: Row) -> str:
    x = [f"{value:g}" for value in record[0][:SHOWN]]
    x += ["..."] if len(record[0]) > SHOWN else []
    return f"x = ({', '.join(x)}), y = {record[1]:g}"


# --- what a run draws -----------------------------------------------------------------


class Run(Tap):
    """One run: what it drew, by the seed or by a script, and its output."""

    def __init__(self, seed: int = 0, script: Sequence[Draw] = ()):
        super().__init__(script)
        self.seed, self.scripted = seed, bool(script)
        self.others = set[str]()  #: randomness without a record
        self.made = 0  #: generators that were requested without a seed
        self.output = np.empty(0)  #: shape (k,)
        self.raised = ""  #: the exception in words; the output is empty then

    @property
    def known(self) -> bool:
        """Whether its draws are recorded, and all were those of the script, if any."""
        followed = bool(self.script) or not self.scripted
        return followed and not self.others and not self.raised

    def fresh(self) -> list[int]:
        """A seed for a generator that was requested without one."""
        self.made += 1
        return [self.seed, self.made]


_now = Run()  # the current run


class _Noted:
    """Methods that override those of a numpy generator, to record draws."""

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return _noted("normal", super().normal, loc, scale, size)  # type: ignore[misc]

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return _noted("laplace", super().laplace, loc, scale, size)  # type: ignore[misc]

    def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
        return self.normal(size=size)

    def randn(self, *shape: int) -> Any:
        return self.normal(size=shape or None)


def _noted(law: str, draw: Callable[..., Any], loc: Any, scale: Any, size: Any) -> Any:
    shape = np.broadcast(loc, scale).shape or None if size is None else size
    return loc + scale * _now(law, draw(size=shape))


def _not_replayed(name: str) -> Callable[..., Any]:
    def draw(self: Any, *args: Any, **named: Any) -> Any:
        _now.others.add(name)
        return getattr(super(_Noted, self), name)(*args, **named)

    return draw


_STATE = ("bit_generator", "seed", "get_state", "set_state", "spawn")  # draw nothing
for _name in {*dir(np.random.Generator), *dir(np.random.RandomState)} - {*_STATE}:
    if not (_name.startswith("_") or _name in vars(_Noted)):
        setattr(_Noted, _name, _not_replayed(_name))


class Generator(_Noted, np.random.Generator):
    """``numpy.random.Generator`` that records its draws."""


class RandomState(_Noted, np.random.RandomState):
    """``numpy.random.RandomState`` that records its draws."""

    def __init__(self, seed: Any = None):
        super().__init__(_bits(seed, np.random.MT19937))


def default_rng(seed: Any = None) -> Any:
    """``numpy.random.default_rng`` that records; its default seed is the run's."""
    is_ready = isinstance(seed, np.random.Generator)
    return seed if is_ready else Generator(_bits(seed, np.random.PCG64))


def _bits(seed: Any, kind: type[np.random.BitGenerator]) -> np.random.BitGenerator:
    """A source of bits; without a seed, one that the run's seed determines."""
    if isinstance(seed, np.random.BitGenerator):
        return seed
    return kind(_now.fresh() if seed is None else seed)


_everyone = RandomState(0)  # behind np.random.normal and similar functions


@contextmanager
def recorded() -> Iterator[None]:
    """Replace numpy's generators by the recording ones."""
    hidden = np.random.mtrand._rand  # type: ignore[attr-defined]
    places: list[tuple[Any, str, Any]] = [
        (np.random, name, getattr(_everyone, name))
        for name in dir(np.random)
        if getattr(getattr(np.random, name), "__self__", None) is hidden
    ]
    made = (Generator, RandomState, default_rng)
    places += [(np.random, one.__name__, one) for one in made]
    places.append((np.random.mtrand, "_rand", _everyone))
    with ExitStack() as stack:
        for place in places:
            stack.enter_context(mock.patch.object(*place))
        yield


# --- a run ----------------------------------------------------------------------------


class Target:
    """``fit`` as a function of data and noise.

    Parameters
    ----------
    fit : callable
        ``fit(X, y, seed)`` returns numbers: an array, several, or an object with
        ``coef_``. A third parameter called ``rng`` or ``generator`` gets a generator.
    """

    def __init__(self, fit: Fit):
        self.fit, self.runs, self.until = fit, 0, math.inf
        try:
            names = list(inspect.signature(fit).parameters)
        except (TypeError, ValueError):
            names = []
        self.wants_generator = len(names) > 2 and names[2] in GENERATORS

    def __call__(self, data: Records, seed: int, script: Sequence[Draw] = ()) -> Run:
        """Run once, on copies of the data, with noise of the script as far as it goes.

        Raises TimeUpError if the time is over before it starts.
        """
        if time.perf_counter() > self.until:
            raise TimeUpError
        self.runs += 1
        global _now
        run = _now = Run(seed, script)
        _everyone.seed(seed % 2**32)
        given = default_rng(seed) if self.wants_generator else seed
        try:
            value = self.fit(data.X.copy(), data.y.copy(), given)
            if value is None:  # numpy would take it for NaN, on all records
                raise RefusedError("the output: expected numbers, found None")
            run.output = numbers(value)
        except (RefusedError, KeyboardInterrupt):
            raise
        except BaseException as error:  # other people's code may raise anything
            run.raised = told(error)
        return run

    def repeats(self, data: Records) -> bool:
        """Whether a seed fixes the output, whatever ran before."""
        first, _, again = (self(data, seed).output for seed in (11, 12, 11))
        return first.tobytes() == again.tobytes()


def told(error: BaseException) -> str:
    """The kind of an exception and the first line of what it says."""
    try:
        return f"{type(error).__name__}: {error}".split("\n")[0]
    except Exception:  # it does not even say what it is
        return type(error).__name__


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
        fit: Any = _imported(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # it may even exit
        text = f"{place}: {module} does not import: {told(error)}"
        raise RefusedError(text) from error
    for part in name.split("."):
        fit = getattr(fit, part, None)
    if not callable(fit):
        raise RefusedError(f"{place}: expected a function {name} in it, found none")
    return fit


def _imported(module: str) -> Any:
    if not module.endswith(".py"):
        locate.conf_dirs()  # the folder next to the user's conf/ joins the path
        sys.path.append(str(Path.cwd()))
        return importlib.import_module(module)
    path = Path(module).resolve()  # its name may be that of another module
    sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    loaded = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded
