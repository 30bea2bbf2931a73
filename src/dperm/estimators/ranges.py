r"""Ranges of columns and labels, declared, and their centres and scales, released.

A column is clipped to its range [low, high] and mapped to t in [-1, 1]. The sums over
records of t and of t^2 of all columns are released together. They give each column's
mean and deviation, to which a fit centres and scales it.

*Sensitivity.* Replacing a record moves t from a to b and t^2 from a^2 to b^2. Squares
count c = 8/5 times. The squared distance is (a - b)^2 (1 + c^2 (a + b)^2). With s =
|a + b| it is at most (2 - s)^2 (1 + c^2 s^2), and this is at most 4: 4 less it is s (4
- s - c^2 s (2 - s)^2), whose last factor is 0.24 or more on [0, 2]. So k columns move
by :math:`2\sqrt k` at most, which opposite corners attain. A column that is not
centred, as zeros of sparse data must stay zeros, has t = x / max(|low|, |high|), and
the sum of c t^2 alone, which moves by c. Sums of a weight move by that multiple: a
real label's is as heavy as two of all columns, since its mean decides most. ∎

Where noise is larger than what means and squares of columns usually are, it moves what
is made of the release toward that, which is post-processing.

The release is a Gaussian mechanism with a share of the squared budget, by public
numbers alone, and composes exactly with what follows. A fit goes on as if columns of
mean 0 and scale 1 had been declared, so that no later cost depends on the release.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from dperm.privacy.events import Gaussian, Ledger
from dperm.problems import door
from dperm.solvers.exact_noise import Exact, sum_error
from dperm.solvers.full_batch.secret import Normal
from dperm.solvers.full_batch.secret import noisy as hidden
from dperm.solvers.full_batch.secret import seeded as seeded
from dperm.solvers.full_batch.secret import whole as whole

CLEAR = 40.0  # target of n over the noise of the sums
LEAST_SHARE = 0.005  # of the squared budget
# By whether labels are real: their squared weight over the number of columns, and the
# largest share of the squared budget.
LABEL_WEIGHTS = {False: (0.5, 0.15), True: (2.0, 0.4)}
MAX_END = 1e100  # largest size of an end, so that no quotient overflows
MIN_VARIANCE = 1e-12  # least variance of t, without noise and with much
MIN_NOISY_VARIANCE = 0.03
SQUARES = 1.6  # c, the factor of t^2
FEW_COLUMNS = 8  # whose squares are summed at once
CLEARLY = 8.0  # times a doubtful sum, what is usual is clear of the noise
# Middle and deviation of a usual column's mean of t, and of t^2.
MEAN = (0.0, 0.3)
SQUARE = (0.2, 0.2)


@dataclass(frozen=True)
class Ranges:
    """The map from k columns, or from labels, to what a solver sees.

    Columns are clipped to [low, high], of shape (k,). Then ``mean`` is subtracted from
    t and the rest is divided by ``deviation``; these are released.
    """

    low: np.ndarray
    high: np.ndarray
    centred: bool  #: whether columns may be centred
    weight: float = 1.0  #: of the sums in the joint release
    #: largest share of the squared budget that the release may take
    most: float = 0.15
    mean: Any = 0.0  #: of t, scalar or shape (k,)
    deviation: Any = 1.0  #: of t, scalar or shape (k,)

    @property
    def middle(self) -> np.ndarray:
        """What is 0 as t; shape (k,)."""
        return (self.low + self.high) / 2 * self.centred

    @property
    def idle(self) -> np.ndarray:
        """Columns of a single possible value, which is 0 as t; booleans of (k,)."""
        return (self.low == self.high) & (self.low == self.middle)

    @property
    def half(self) -> np.ndarray:
        """What is 1 as t, less the middle; shape (k,)."""
        largest = np.maximum(np.abs(self.low), np.abs(self.high))
        half = (self.high - self.low) / 2 if self.centred else largest
        return np.where(self.idle, 1.0, half)

    @property
    def centre(self) -> np.ndarray:
        """What is 0 for a solver, in the columns' own units; shape (k,)."""
        return self.middle + self.half * self.mean

    @property
    def scale(self) -> np.ndarray:
        """What is 1 for a solver, less the centre; shape (k,)."""
        return self.half * self.deviation

    def unit(self, X: Any, room: int = 0) -> Any:
        """Columns X (n, k), dense or sparse, as t in [-1, 1]; NaN stays NaN.

        Dense t are the first columns of an array with ``room`` more.
        """
        if sparse.issparse(X):
            units = sparse.csc_array(X, copy=True)
            # An entry may be a sum of parts, and is in its range.
            units.sum_duplicates()
            counts = np.diff(units.indptr)
            ends = (self.low, self.high, self.half)
            low, high, half = (np.repeat(side, counts) for side in ends)
            units.data = np.clip(
                np.clip(units.data, low, high) / half, -1.0, 1.0
            )
            return units
        *n, k = X.shape
        t = np.empty((*n, k + room))[..., :k]  # the one copy of the columns
        np.clip(X, self.low, self.high, out=t)
        t -= self.middle
        t /= self.half
        return np.clip(t, -1.0, 1.0, out=t)

    def standard(self, t: Any, own: bool = False) -> Any:
        """What a solver sees of t (n, k), dense or sparse; in place of its ``own``."""
        if sparse.issparse(t):
            return sparse.csc_array(t @ sparse.diags_array(1 / self.deviation))
        standardised = np.subtract(t, self.mean, out=t if own else None)
        standardised /= self.deviation
        return standardised


def of_label(
    low: Any, high: Any, centred: bool, p: int, is_real: bool = True
) -> Ranges:
    """The range of labels, real or of two classes, beside p columns."""
    ends = np.array([low, high], dtype=float).reshape(2, 1)
    heavy, max_share = LABEL_WEIGHTS[is_real]
    return Ranges(
        ends[0], ends[1], centred, math.sqrt(max(p, 2) * heavy), max_share
    )


def sums(t: Any, centred: bool) -> np.ndarray:
    """Sums of t (n, k) and of 1.6 t^2, or of the latter alone; shape (2 k,) or (k,).

    Finite t in [-1, 1].
    """
    if sparse.issparse(t):
        squares = np.asarray((SQUARES * t.multiply(t)).sum(axis=0)).ravel()
    else:  # some columns at a time, to hold no second copy of all
        blocks = np.array_split(t, max(t.shape[1] // FEW_COLUMNS, 1), axis=1)
        squares = np.concatenate(
            [(SQUARES * (u * u)).sum(axis=0) for u in blocks]
        )
    if not centred:
        return squares
    return np.concatenate((np.asarray(t.sum(axis=0)).ravel(), squares))


def ledger(
    groups: Sequence[Ranges], n: int, epsilon: float, delta: float
) -> Ledger:
    """The release of the sums of n records, for its share of the budget.

    The share of the squared budget is the least for which n is 40 times the noise of
    the sums, but at least 0.005, and at most 0.4 for real labels and else 0.15.
    """
    moved = _moved(groups)
    multiplier = whole(epsilon, delta)
    ideal = (CLEAR * moved * multiplier / n) ** 2
    share = np.clip(ideal, LEAST_SHARE, groups[-1].most)
    return stated(groups, multiplier / math.sqrt(share))


def stated(groups: Sequence[Ranges], noise_multiplier: float) -> Ledger:
    """The release of the sums with noise of that multiple of their sensitivity."""
    moved = _moved(groups)
    event = Gaussian(
        sensitivity=moved,
        scale=moved * noise_multiplier,
        count=1,
        unit="2 sqrt(k), the replace-one change of sums of t and 1.6 t^2 of k columns",
        source="proved in dperm.estimators.ranges",
    )
    return Ledger((event,))


def _moved(groups: Sequence[Ranges]) -> float:
    """How far replacing a record moves the sums."""
    factor = {True: 4.0, False: SQUARES**2}
    squares = (
        factor[group.centred] * group.weight**2 * len(group.low)
        for group in groups
    )
    return math.sqrt(sum(squares))


def released(
    groups: Sequence[Ranges],
    ts: Sequence[Any],
    release: Ledger,
    normal: Normal | Exact,
) -> tuple[list[Ranges], np.ndarray]:
    """The ranges with released means and deviations, and the noisy sums.

    ``ts`` has columns, and labels, as t, (n, k) each; ``release`` is by ``ledger`` or
    ``stated``. Raises UndeclaredError if that states a smaller sensitivity.
    """
    n = ts[0].shape[0]
    k = sum(t.shape[1] for t in ts)
    pairs = zip(groups, ts, strict=True)
    read = np.concatenate(
        [group.weight * sums(t, group.centred) for group, t in pairs]
    )
    size = sum(group.weight**2 * len(group.low) for group in groups)
    error = sum_error(n, k, math.sqrt((1 + SQUARES**2) * size))
    secret = hidden(read[:, None], _moved(groups), error=error)
    noisy = secret.released(iter(release.events), normal)[:, 0]
    informed = []
    remaining = noisy / n
    for group in groups:
        # deviation of a mean's noise
        off = release.events[0].scale / (n * group.weight)
        means, remaining = np.split(
            remaining, [len(group.low) * group.centred]
        )
        squares, remaining = np.split(remaining, [len(group.low)])
        mean: Any = 0.0
        if group.centred:
            mean = _shrunk(means / group.weight, off, *MEAN) * ~group.idle
        off /= SQUARES
        square = _shrunk(squares / (SQUARES * group.weight), off, *SQUARE)
        floor = np.clip(2 * off, MIN_VARIANCE, MIN_NOISY_VARIANCE)
        variance = np.clip(square - np.square(mean), floor, 1.0)
        informed.append(replace(group, mean=mean, deviation=np.sqrt(variance)))
    return informed, noisy


def doubts(
    groups: Sequence[Ranges],
    noisy: np.ndarray,
    release: Ledger,
    t: Any,
    is_real: bool,
) -> list[str]:
    """What the noisy sums show to be amiss; t (n, k) has its shape and format alone.

    Of dense columns: together they are within two deviations of the noise of never
    leaving their middles. Of labels of two classes: they are within two of never being
    the first. Nothing is said where the noise would hide usual columns, or the labels.
    A record of no numbers, or of no class, is in the middle, and has the second label.
    """
    scale = release.events[0].scale
    columns, *label = groups
    n, k = t.shape
    squares = noisy[k * columns.centred :][:k]
    off = 2 * scale * math.sqrt(k)
    is_clear = SQUARE[0] * SQUARES * n * k > CLEARLY * off
    is_dense = not sparse.issparse(t) and not columns.idle.all()
    if is_dense and is_clear and squares.sum() <= off:
        return ["X: columns hardly leave the middle of their ranges"]
    if label and not is_real and label[0].weight * n > CLEARLY * 2 * scale:
        first = label[0].weight * n - noisy[k * (1 + columns.centred)]
        if first <= 2 * scale:
            return ["y: hardly a label is of the first class"]
    return []


def _shrunk(noisy: Any, off: float, middle: float, spread: float) -> Any:
    """The posterior mean of a number with noise, by its deviation and a prior."""
    gain = spread**2 / (spread**2 + off**2)
    return np.clip(middle + gain * (noisy - middle), -1.0, 1.0)


# --- declarations ---------------------------------------------------------------------


def declared(
    name: str,
    bounds: Any,
    columns: Sequence[str] | int,
    centred: bool,
    is_sparse: bool,
) -> Ranges:
    """The ranges of columns, by name or number, as a user declares them.

    ``bounds`` is one pair (low, high) for all columns, a list of one for each, a tuple
    of two arrays with lower and upper ends, or a mapping from names to pairs. What has
    names itself is read by them: a series of pairs, two series of ends, and a frame
    with a row, or a column, for each column. ``name`` is the parameter that holds them.
    ``centred`` says whether there is an intercept.
    Raises ValueError for others, and where zeros of sparse columns are out of range.
    """
    k = columns if isinstance(columns, int) else len(columns)
    by_name = _named(name, bounds, columns)
    if by_name is not None:
        bounds = _by_name(name, by_name, columns)
    low, high = _ends(name, bounds, k)
    right = np.maximum(np.abs(low), np.abs(high)) <= MAX_END
    right &= (low == high) | (high - low >= 1 / MAX_END)
    if not right.all():
        wrong = int(np.argmin(right))
        which = (
            f"column {wrong + 1}"
            if isinstance(columns, int)
            else columns[wrong]
        )
        raise ValueError(
            f"{name}: expected low <= high, of a size up to {MAX_END:g}, found "
            f"({low[wrong]:g}, {high[wrong]:g}) for {which}"
        )
    if is_sparse and not ((low <= 0) & (high >= 0)).all():
        raise ValueError(
            f"{name}: a sparse X holds zeros, expected low <= 0 <= high"
        )
    return Ranges(low, high, centred and not is_sparse)


def _ends(name: str, bounds: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends, each of shape (k,).

    Two by two numbers are pairs in a list, ends in a tuple of arrays, and else unclear.
    """
    pairs = _numbers(bounds)
    is_list = isinstance(bounds, list)
    is_tuple = isinstance(bounds, tuple)
    is_ends = is_tuple and not isinstance(next(iter(bounds), None), tuple)
    if pairs.shape == (2,):
        return np.full(k, pairs[0]), np.full(k, pairs[1])
    if pairs.shape == (k, 2) and (is_list or k != 2):
        return pairs[:, 0], pairs[:, 1]
    if pairs.shape == (2, k) and not is_list and (is_ends or k != 2):
        return pairs[0], pairs[1]
    raise ValueError(
        f"{name}: expected (low, high), a list of {k} such pairs, or a tuple of two "
        f"arrays with {k} numbers each, found {door.shown(bounds)}"
    )


def _numbers(ends: Any) -> np.ndarray:
    """Ends as doubles; empty for what is not made of real numbers."""
    is_masked = (
        isinstance(ends, np.ma.MaskedArray) and np.ma.getmaskarray(ends).any()
    )
    try:
        with door.silent():
            read = np.asarray(ends)
            is_real = read.dtype.kind in "fiubO" and not is_masked
            return read.astype(float) if is_real else np.empty(0)
    except (TypeError, ValueError):
        return np.empty(0)


def _named(
    name: str, bounds: Any, columns: Sequence[str] | int
) -> Mapping[Any, Any] | None:
    """Pairs by name, of what has names itself; None if it has none."""
    pandas = sys.modules.get("pandas")
    if isinstance(bounds, Mapping):
        return bounds
    if pandas is None or isinstance(bounds, str):
        return _named_rows(name, bounds)
    is_pair = isinstance(bounds, tuple | list) and len(bounds) == 2
    if is_pair and all(isinstance(end, pandas.Series) for end in bounds):
        indexes = [end.index for end in bounds]
        if any(index.has_duplicates for index in indexes):
            raise ValueError(f"{name}: expected one row for each column")
        bounds = pandas.DataFrame({"low": bounds[0], "high": bounds[1]})
    is_frame = isinstance(bounds, pandas.DataFrame)
    if not is_frame and not isinstance(bounds, pandas.Series):
        return _named_rows(name, bounds)
    is_numbered = isinstance(bounds.index, pandas.RangeIndex)
    if is_frame and isinstance(columns, int):
        if is_numbered and bounds.shape == (
            columns,
            2,
        ):  # as an array of pairs
            return None
        raise ValueError(
            f"{name}: columns have no names, expected (low, high)"
        )
    titles = [] if isinstance(columns, int) else [*columns]
    if is_frame and {*map(str, bounds.columns)} == {*titles}:
        bounds = bounds.T
    if is_frame and bounds.shape[1] != 2:
        raise ValueError(
            f"{name}: expected a frame with a row (low, high) for each column, found "
            f"the shape {bounds.shape}"
        )
    if not is_frame and is_numbered and bounds.shape == (2,):
        return None  # one pair for all
    pairs = bounds.to_numpy().tolist()
    titles = [*map(str, bounds.index)]
    if len({*titles}) < len(titles):
        raise ValueError(f"{name}: expected one row for each column")
    return dict(zip(titles, pairs, strict=True))


def _named_rows(name: str, bounds: Any) -> Mapping[Any, Any] | None:
    """Pairs by name of a frame that is not of pandas, or an array with names."""
    is_array = isinstance(bounds, np.ndarray) and bounds.dtype.names is None
    if is_array or isinstance(bounds, list | tuple | str):
        return None
    if not door.is_frame(bounds):
        return None
    table = door.table(bounds, name)
    if table.values.shape[0] != 2:
        raise ValueError(
            f"{name}: expected two rows, lower ends and upper ends, found "
            f"{table.values.shape[0]}"
        )
    return dict(zip(table.names or (), table.values.T.tolist(), strict=True))


def _by_name(
    name: str, bounds: Mapping[Any, Any], columns: Sequence[str] | int
) -> list[Any]:
    """The pairs of the columns in their order."""
    if isinstance(columns, int):
        raise ValueError(
            f"{name}: columns have no names, expected (low, high)"
        )
    pairs = {str(title): pair for title, pair in bounds.items()}
    twice = [title for title, count in Counter(columns).items() if count > 1]
    twice += [
        title
        for title, count in Counter(map(str, bounds)).items()
        if count > 1
    ]
    absent = ", ".join(title for title in columns if title not in pairs)
    strange = ", ".join(title for title in pairs if title not in columns)
    if absent or strange or twice:
        problems = [f"no range of {absent}"] * bool(absent)
        problems += [f"no column {strange}"] * bool(strange)
        problems += [f"two are called {', '.join(twice)}"] * bool(twice)
        raise ValueError(
            f"{name}: {'; '.join(problems)}. Declare {template(columns)}"
        )
    for title in columns:
        if _numbers(pairs[title]).shape != (2,):
            raise ValueError(
                f"{name}: expected a pair (low, high) for {title}, found "
                f"{door.shown(pairs[title])}"
            )
    return [tuple(pairs[title]) for title in columns]


def template(columns: Sequence[str] | int) -> str:
    """Bounds to fill in, as Python."""
    if isinstance(columns, int):
        return (
            "bounds=(low, high), or a list of such pairs, one for each column"
        )
    pairs = ", ".join(f"{title!r}: (low, high)" for title in columns)
    return f"bounds={{{pairs}}}"
