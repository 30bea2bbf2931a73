"""A function under test: its neighbours, and its runs.

What a run draws is recorded by :mod:`.draws`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import itertools
import math
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from dperm.audit.draws import RecordedRun, begin, default_rng
from dperm.audit.mechanism import Array, AuditData
from dperm.config import locate

Row = tuple[Array, float]  # features and label
Rng = np.random.Generator
Fit = Callable[[Array, Array, Any], Any]

NORMS = {"l1": 1.0, "l2": 2.0, "linf": np.inf}
RELATIONS = ("replace", "add-remove")
RECORD_SIZES = (1.0, 1e3)  # sizes of records where no bound is declared
OVERFLOWING = 1e200  # whose square overflows
FINITE = (1e308, -1e308, 1e-200, 5e-324)  # which overflow or underflow
NOT_FINITE = (np.nan, np.inf, -np.inf)
ALIKE, ALTERNATING = 1, 2  # of Domain._bases
COMPANIES = (  # sizes of features and labels of the records next to an extreme one
    (1.0, 1e3, ALTERNATING),
    (1.0, 1.0, ALTERNATING),
    (1e3, 1e3, ALTERNATING),
    (1.0, 1e3, ALIKE),
)
SMALL_SIZE = 1e-3  # size of a small record, relative to the bound
PRINTED_FEATURES = 4  # features of a record that are printed
GENERATORS = (
    "rng",
    "generator",
)  # names of a third parameter that wants a generator
# Times the CPU seconds of an audit, after which the clock ends it
PATIENCE = 4.0


class TimeUpError(Exception):
    """The time of an audit is over."""


class CannotAuditError(ValueError):
    """A function that cannot be audited; the message states why, in one line."""


# --- neighbours within what a function assumes of its data ----------------------------


@dataclass(frozen=True)
class Neighbours:
    """Neighbours, and their difference in words."""

    first: AuditData
    second: AuditData
    text: str

    @property
    def largest(self) -> float:
        """Size of the largest number; NaN if any number is."""
        parts = (
            part
            for data in (self.first, self.second)
            for part in (data.X, data.y)
        )
        return float(np.max([np.abs(part).max(initial=0.0) for part in parts]))

    @property
    def finite(self) -> bool:
        """Whether all numbers are finite."""
        return math.isfinite(self.largest)


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
    #: range of the labels, of which the ends are tried, or all labels
    y: tuple[float, ...] | None = None
    relation: str = "replace"  #: {"replace", "add-remove"}

    @property
    def bounded(self) -> bool:
        """Whether features and labels are both bounded."""
        return self.x is not None and self.y is not None

    def pairs(self, rng: Rng) -> list[Neighbours]:
        """Neighbours worth trying, each once, from each size of records in turn."""
        return self._in_turn((1.0,) if self.bounded else RECORD_SIZES, rng)

    def extremes(self, rng: Rng) -> list[Neighbours]:
        """Neighbours with an extreme record, where no bound is declared.

        Finite ones come first, then those of :data:`HUGE` numbers throughout, then
        records that hold NaN or infinity.
        """
        if self.bounded:
            return []
        pairs = []
        for x_size, y_size, place in COMPANIES:
            X = list(self._bases(x_size, rng))[place].X
            base = AuditData(X, list(self._bases(y_size, rng))[place].y)
            for record in self._extreme_records():
                both = [(X[0], float(base.y[0])), record]
                both = both if self.relation == "replace" else both[::-1]
                pairs.append(self._pair(base, 0, *both))
        huge = [
            pair
            for pair in self._in_turn((OVERFLOWING,), rng)
            if pair.largest > 1e6
        ]
        finite = [pair for pair in pairs if pair.finite]
        return finite + huge + [pair for pair in pairs if not pair.finite]

    def mutants(
        self, parents: list[Neighbours], count: int, rng: Rng
    ) -> Iterator[Neighbours]:
        """Changed pairs: another record or label in D, D' or both, alone or for all."""
        if self.relation != "replace":
            return
        for _ in range(count if parents else 0):
            parent = parents[int(rng.integers(len(parents)))]
            one, two = parent.first, parent.second
            if one.X.shape != two.X.shape:
                continue
            differ = (one.X != two.X).any(axis=1) | (one.y != two.y)
            place = int(np.argmax(differ))
            rows = [
                (data.X[place].copy(), float(data.y[place]))
                for data in (one, two)
            ]
            base = AuditData(one.X.copy(), one.y.copy())
            mutation = int(rng.integers(5))
            if mutation < 2:
                rows[mutation] = self._mutant(rows[mutation], rng)
            elif mutation == 2:
                base.X[:], base.y[:] = rows[int(rng.integers(2))]
            elif mutation == 3:
                base.X[:], base.y[:] = self._mutant(
                    rows[int(rng.integers(2))], rng
                )
            else:
                other = int(rng.integers(self.n))
                base.X[other], base.y[other] = self._mutant(rows[0], rng)
            yield self._pair(base, place, *rows)

    def _mutant(self, row: Row, rng: Rng) -> Row:
        """A record with another label, another feature, or another size."""
        x, label = row[0].copy(), row[1]
        mutation = int(rng.integers(3))
        if mutation == 0 or not self.p:
            low, high = min(self._ends(1.0)), max(self._ends(1.0))
            share = float(rng.choice((0.25, 0.5, 0.75, rng.random())))
            spread = 1.0
            if self.y is None:
                spread = float(10.0 ** rng.uniform(-1, 1))
            return x, spread * (low + (high - low) * share)
        if mutation == 1:
            x[int(rng.integers(self.p))] = self._random(1.0, rng)[0]
        else:
            x = x * rng.uniform(-1, 1)
        return self._fit(x, max(1.0, float(np.abs(x).max()))), label

    def _in_turn(self, sizes: tuple[float, ...], rng: Rng) -> list[Neighbours]:
        groups = [
            [
                self._pair(base, position, one, two)
                for position in (0, self.n - 1)
                for one, two in self._exchanges(size, rng)
            ]
            for size in sizes
            for base in self._bases(size, rng)
        ]
        turns = itertools.chain.from_iterable(itertools.zip_longest(*groups))
        some = (pair for pair in turns if pair is not None)
        return list(
            {(*p.first.bytes, *p.second.bytes): p for p in some}.values()
        )

    def _pair(
        self, base: AuditData, at: int, one: Row, two: Row
    ) -> Neighbours:
        """Neighbours: one record in D, and another one or none in its place in D'."""
        first, place = base.replaced(at, one), f"record {at + 1} of {self.n}"
        if self.relation == "replace":
            text = f"{place}: {_said(two)} on D' in place of {_said(one)}"
            return Neighbours(first, base.replaced(at, two), text)
        rest = AuditData(
            np.delete(first.X, at, axis=0), np.delete(first.y, at)
        )
        return Neighbours(first, rest, f"{place}: {_said(one)} not on D'")

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
        yield (zero, last), (self._fit(SMALL_SIZE * loud[0][0], size), last)
        for _ in range(4):
            x, other = (self._random(size, rng) for _ in range(2))
            yield (
                (x, float(rng.choice(ends))),
                (other, float(rng.choice(ends))),
            )

    def _bases(self, size: float, rng: Rng) -> Iterator[AuditData]:
        """Zeros, duplicates, two opposite halves, random records."""
        ends, (high, low) = self._ends(size), self._loud(size)[0]
        alternating = np.arange(self.n) % 2
        zero = self._fit(np.zeros(self.p), size)
        yield AuditData(np.tile(zero, (self.n, 1)), np.full(self.n, ends[0]))
        yield AuditData(np.tile(high, (self.n, 1)), np.full(self.n, ends[-1]))
        halves = np.where(alternating[:, None], high, low)
        yield AuditData(halves, np.where(alternating, ends[-1], ends[0]))
        X = np.array([self._random(size, rng) for _ in range(self.n)])
        yield AuditData(X, rng.choice(ends, self.n))

    # --- records ----------------------------------------------------------------------

    def _range(self, size: float) -> tuple[float, float]:
        return (-size, size) if self.x is None else self.x

    def _ends(self, size: float) -> tuple[float, ...]:
        return (-size, size) if self.y is None else self.y

    def _loud(self, size: float) -> list[tuple[Array, Array]]:
        """Records at the ends of the range, each with its opposite."""
        low, high = self._range(size)
        middle = np.clip(0.0, low, high)
        place = np.arange(self.p)
        opposites = []
        for is_high in (
            place >= 0,
            place % 2 == 0,
            place < self.p / 2,
            place < self.p - 1,
        ):
            opposites.append(
                (np.where(is_high, high, low), np.where(is_high, low, high))
            )
        for axis in np.eye(self.p, dtype=bool)[:4]:
            end = np.where(axis, high, middle)
            opposites.append((end, np.where(axis, low, middle)))
        pairs = {}
        for record, opposite in opposites:
            pair = self._fit(record, size), self._fit(opposite, size)
            pairs[pair[0].tobytes() + pair[1].tobytes()] = pair
        return list(pairs.values())

    def _extreme_records(self) -> Iterator[Row]:
        """Every feature vector with every label, where at least one is extreme."""
        plain = [self._fit(np.zeros(self.p), 1.0), self._loud(1.0)[0][0]]
        extreme = []
        if self.x is None:
            signs = 1.0 - 2.0 * (np.arange(self.p) % 2)
            extreme = [
                np.full(self.p, number) for number in FINITE + NOT_FINITE
            ]
            if self.p > 1:
                extreme += [number * signs for number in (FINITE[0], np.inf)]
        labels = self._ends(1.0)
        extreme_labels: tuple[float, ...] = ()
        if self.y is None:
            labels = (*labels, 0.0)
            extreme_labels = FINITE + NOT_FINITE
        yield from itertools.product(extreme, labels + extreme_labels)
        yield from itertools.product(plain, extreme_labels)

    def _random(self, size: float, rng: Rng) -> Array:
        low, high = self._range(size)
        return self._fit(low + (high - low) * rng.random(self.p), size)

    def _fit(self, x: Array, size: float) -> Array:
        """Restrict a record to the range and the norm."""
        low, high = self._range(size)
        x = np.clip(x, low, high)
        if self.x is None:
            return x
        length, bound = (
            np.linalg.norm(x, NORMS[self.norm]),
            max(abs(low), abs(high)),
        )
        return x * min(1.0, bound / length) if length > 0 else x


def _said(record: Row) -> str:
    x = [f"{value:g}" for value in record[0][:PRINTED_FEATURES]]
    x += ["..."] if len(record[0]) > PRINTED_FEATURES else []
    return f"x = ({', '.join(x)}), y = {record[1]:g}"


# --- a run ----------------------------------------------------------------------------


class Clock:
    """CPU seconds of this process and of those it has waited for, and their end.

    A function that sleeps or waits takes none, so that the clock on the wall ends an
    audit too, after :data:`PATIENCE` times as many seconds.
    """

    def __init__(self, seconds: float = math.inf):
        self.most = seconds
        self._cpu = _cpu()
        self._wall = time.perf_counter()

    @property
    def cpu(self) -> float:
        """CPU seconds since the start."""
        return _cpu() - self._cpu

    @property
    def wall(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._wall

    @property
    def share(self) -> float:
        """Share of the time that is gone, by CPU or by the wall."""
        return max(self.cpu / self.most, self.wall / (PATIENCE * self.most))


def _cpu() -> float:
    children = os.times()
    return (
        time.process_time() + children.children_user + children.children_system
    )


class AuditedFit:
    """``fit`` as a function of data and noise.

    Parameters
    ----------
    fit : callable
        ``fit(X, y, seed)`` returns numbers: an array, several, or an object with
        ``coef_``. A third parameter called ``rng`` or ``generator`` gets a generator.
    """

    def __init__(self, fit: Fit):
        self.fit = fit
        self.runs = self.replayed = (
            0  # and draws that were taken from a script
        )
        self.clock = Clock()
        try:
            names = list(inspect.signature(fit).parameters)
        except (TypeError, ValueError):
            names = []
        self.wants_generator = len(names) > 2 and names[2] in GENERATORS

    def __call__(
        self,
        data: AuditData,
        seed: int,
        script: Sequence[Array] = (),
        is_kept: bool = True,
    ) -> RecordedRun:
        """Run once, on copies of the data, with noise of the script as far as it goes.

        Draws are recorded if they are to be kept.

        Raises TimeUpError if the time is over before it starts.
        """
        if self.clock.share > 1:
            raise TimeUpError
        self.runs += 1
        run = begin(seed, script, is_kept)
        given = default_rng(seed) if self.wants_generator else seed
        try:
            value = self.fit(data.X.copy(), data.y.copy(), given)
            if value is None:  # numpy would take it for NaN, on all records
                raise CannotAuditError(
                    "the output: expected numbers, found None"
                )
            run.output = numbers(value)
        except (CannotAuditError, KeyboardInterrupt):
            raise
        except BaseException as error:
            # other people's code may raise anything
            run.raised = told(error)
        self.replayed += run.replayed
        return run

    def repeats(self, data: AuditData) -> bool:
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

    Raises CannotAuditError if it holds something that is no number.
    """
    if hasattr(value, "coef_"):
        value = [value.coef_, getattr(value, "intercept_", ())]
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value.ravel() + 0.0
    if isinstance(value, dict):  # its keys are published too
        keys = sorted(value, key=repr)
        value = [*(value[key] for key in keys), *map(_of_key, keys)]
    if isinstance(value, list | tuple):
        return np.concatenate([np.empty(0), *map(numbers, value)])
    try:
        array = np.asarray(value)
        if array.dtype.kind == "c":
            array = np.stack([array.real, array.imag])
        return np.ravel(array.astype(float)) + 0.0  # -0.0 is 0.0
    except (TypeError, ValueError) as error:
        type_name = type(value).__name__
        raise CannotAuditError(
            f"the output: expected numbers, found {type_name}"
        ) from error


def _of_key(key: Any) -> Any:
    """A number that tells the key of a mapping from others."""
    return (
        key
        if isinstance(key, Real)
        else zlib.crc32(repr(key).encode()) / 2**32
    )


def load(place: str) -> Fit:
    """The function that ``module:name`` or ``path.py:name`` names.

    Raises CannotAuditError if there is no such module or function, or its module does
    not import.
    """
    module, _, name = place.rpartition(":")
    try:
        fit: Any = _imported(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # it may even exit
        text = f"{place}: {module} does not import: {told(error)}"
        raise CannotAuditError(text) from error
    for part in name.split("."):
        fit = getattr(fit, part, None)
    if not callable(fit):
        raise CannotAuditError(
            f"{place}: expected a function {name} in it, found none"
        )
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
