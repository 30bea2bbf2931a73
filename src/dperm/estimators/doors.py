"""Neighbours that attack the door: one record of every form in every container.

An attack is a pair of data sets that differ in one record. Nothing that a fit makes of
the other records before its first release may differ, nor whether it raises, what it
says, what it warns of and what it prints. What this module tries is a part of the audit
of estimators (:func:`faults`) and of the tests.
"""

from __future__ import annotations

import io
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from dperm.estimators.estimators import DPClassifier, DPLinear, DPRegressor

N, P = 12, 3
PLACES = (0, 5, N - 1)  # of the record that is replaced
TOLD = "41000"


class Loud:
    """An object that tells a secret whatever it is asked."""

    def _tell(self, *_: Any) -> Any:
        print(TOLD)
        raise RuntimeError(TOLD)

    __float__ = __int__ = __index__ = __complex__ = __bool__ = __len__ = _tell
    __iter__ = __getitem__ = __array__ = __hash__ = __eq__ = __lt__ = _tell
    __str__ = __repr__ = __format__ = __getattr__ = _tell
    __class__ = property(_tell)  # type: ignore[assignment]


class LoudType(type):
    """A type that tells a secret when it is compared or put into a mapping."""

    def _tell(cls, *_: Any) -> Any:
        print(TOLD)
        raise RuntimeError(TOLD)

    __hash__ = __eq__ = __instancecheck__ = __subclasscheck__ = _tell


class OfLoudType(metaclass=LoudType):
    """An object of such a type."""


class LoudNumber(float):
    """A number that tells a secret when it is read."""

    def __float__(self) -> float:
        raise RuntimeError(TOLD)


BROKEN = Fraction(1, 2)
object.__setattr__(BROKEN, "_denominator", 0)


def entries() -> list[Any]:
    """What may stand in the place of a number or a label."""
    plain = [
        None,
        True,
        0.5,
        -1,
        "abc",
        "0.5",
        "",
        "nan",
        "1e400",
        b"u",
        1j,
        10**400,
    ]
    numeric = [
        np.nan,
        np.inf,
        -np.inf,
        1e308,
        5e-324,
        Decimal("sNaN"),
        Decimal("0.5"),
    ]
    numeric += [
        Fraction(1, 2),
        BROKEN,
        np.float16(1),
        np.longdouble(1),
        np.uint64(2**63),
    ]
    times = [
        pd.NA,
        pd.NaT,
        pd.Timestamp("2020-01-01"),
        np.datetime64("2020-01-01"),
    ]
    nested = [
        [],
        [1],
        [1, 2],
        [[1]],
        (),
        (1,),
        {},
        {"a": 1},
        {1},
        range(10**18),
    ]
    arrays = [
        np.array(1.0),
        np.array([1.0]),
        np.zeros((2, 2)),
        np.array(["a"]),
    ]
    odd = [
        object,
        len,
        iter([1]),
        Loud(),
        OfLoudType(),
        LoudNumber(1.0),
        pd.Series([1]),
    ]
    return [*plain, *numeric, *times, *nested, *arrays, *odd]


def rows() -> list[Any]:
    """What may stand in the place of a row of ``P`` numbers."""
    short: list[Any] = [[1.0], [], (), None, [1.0] * (P + 1), np.zeros(P + 1)]
    texts = ["abc", b"abc", "x" * P, ["a"] * P, [None] * P, [[1.0]] * P]
    others = [
        {"a": 1.0, "b": 2.0, "c": 3.0},
        {1.0, 2.0, 3.0},
        1.0,
        np.zeros((P, 1)),
    ]
    odd = [
        Loud(),
        OfLoudType(),
        [Loud()] * P,
        np.full(P, "a"),
        np.full(P, np.nan),
    ]
    plain = [
        tuple(range(P)),
        np.arange(P),
        np.ones(P, np.float32),
        range(10**18),
        deque([1] * P),
    ]
    return [
        *short,
        *texts,
        *others,
        *odd,
        *plain,
        iter([1.0] * P),
        np.ma.zeros(P),
    ]


NUMBERS = (np.nan, np.inf, -np.inf, 1e308, 5e-324, -0.0, 7.0)


@dataclass(frozen=True)
class Attack:
    """Data that hold some record, and a neighbour in the same container."""

    name: str
    model: DPLinear
    data: tuple[Any, Any]  #: X and y
    neighbour: tuple[Any, Any]
    place: int  #: of the record in which they differ


@dataclass(frozen=True)
class Sight:
    """What a fit shows before its first release, but for one record."""

    outcome: str  #: that of the fit, with the words of an error
    said: tuple[str, ...]  #: warnings
    printed: str
    public: tuple[str, ...]
    others: tuple[np.ndarray, ...]  #: what the other records became

    def differs(self, other: Sight) -> str:
        """In what it differs from another; empty if in nothing."""
        for name in ("outcome", "said", "printed", "public"):
            if getattr(self, name) != getattr(other, name):
                return f"{name}: {getattr(self, name)!r}, {getattr(other, name)!r}"
        pairs = zip(self.others, other.others, strict=True)
        if not all(np.array_equal(*pair) for pair in pairs):
            return "what another record became"
        return ""


def seen(model: DPLinear, X: Any, y: Any, place: int) -> Sight:
    """What a fit shows of all records but that at a place, before it releases."""
    printed = io.StringIO()
    outcome, public = "fitted", ()
    others: tuple[np.ndarray, ...] = ()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with redirect_stdout(printed), redirect_stderr(printed):
            try:
                t, labels = model._cleaned(X, y)
                dense = t.toarray() if sparse.issparse(t) else t
                public = model._public
                others = tuple(
                    np.delete(part, place, axis=0) for part in (dense, *labels)
                )
            except Exception as error:  # whatever it is, it is compared
                outcome = f"{type(error).__name__}: {error}"
    said = tuple(f"{one.category.__name__}: {one.message}" for one in caught)
    return Sight(outcome, said, printed.getvalue(), public, others)


def attacks() -> Iterator[Attack]:
    """Pairs of neighbours: every container with every odd record that it can hold.

    The odd record is the first, one among the others, or the last.
    """
    for place in PLACES:
        yield from _attacks_at(place)


def _attacks_at(at: int) -> Iterator[Attack]:
    grid = np.arange(N * P, dtype=float).reshape(N, P) % 7 - 3
    sides = np.arange(N) % 2
    ends: dict[str, Any] = {"bounds": (-3, 3), "epsilon": 1.0, "delta": 1e-3}
    classifier = DPClassifier("dp_gd", classes=(0, 1), **ends)
    words = DPClassifier("dp_gd", classes=("no", "yes"), **ends)
    regressor = DPRegressor("dp_gd", label_bounds=(-3, 3), **ends)
    for name, build in GRIDS.items():
        yield from _replaced(
            f"X, {name}, entry", build, grid, entries(), classifier, at
        )
    for name, build_rows in ROWS.items():
        yield from _replaced_rows(name, build_rows, grid, classifier, at)
    for name, build in TYPED.items():
        yield from _replaced(
            f"X, {name}, entry", build, grid, NUMBERS, classifier, at
        )
    named = np.array(["no", "yes"])[sides]
    for name, build_labels in LABEL_BUILDERS.items():
        for model, labels in (
            (classifier, sides),
            (words, named),
            (regressor, grid[:, 0]),
        ):
            title = f"y of {type(model).__name__}, {name}"
            plain = build_labels(labels.tolist(), labels[at].item(), at)
            for number, entry in enumerate(entries()):
                odd = build_labels(labels.tolist(), entry, at)
                pair = (grid, plain), (grid, odd)
                yield Attack(f"{title}, {number} at {at}", model, *pair, at)
    for name, build_typed in TYPED_LABELS.items():
        plain = build_typed(grid[:, 0].copy(), 0.0, at)
        for entry in NUMBERS:
            odd = build_typed(grid[:, 0].copy(), entry, at)
            for model in (classifier, regressor):
                title = f"y of {type(model).__name__}, {name}, {entry} at {at}"
                yield Attack(title, model, (grid, plain), (grid, odd), at)


def faults(tried: Iterable[Attack]) -> list[str]:
    """The attacks of which a fit shows a difference, with what differs."""
    found = []
    for attack in tried:
        pair = (attack.data, attack.neighbour)
        sights = [seen(attack.model, *data, attack.place) for data in pair]
        difference = sights[0].differs(sights[1])
        if difference:
            found.append(f"{attack.name}: {difference}")
    return found


def _replaced(
    name: str,
    build: Callable[..., Any],
    grid: Any,
    odd: Any,
    model: DPLinear,
    at: int,
) -> Iterator[Attack]:
    labels = np.arange(N) % 2
    plain = build(grid.copy(), grid[at, 1].item(), at)
    for number, entry in enumerate(odd):
        neighbour = build(grid.copy(), entry, at)
        title = f"{name} {number} at {at}"
        yield Attack(title, model, (plain, labels), (neighbour, labels), at)


def _replaced_rows(
    name: str, build: Callable[..., Any], grid: Any, model: DPLinear, at: int
) -> Iterator[Attack]:
    labels = np.arange(N) % 2
    plain = grid.tolist()
    for number, row in enumerate(rows()):
        odd = grid.tolist()
        odd[at] = row
        title = f"X, {name}, row {number} at {at}"
        yield Attack(
            title, model, (build(plain), labels), (build(odd), labels), at
        )


# --- containers -----------------------------------------------------------------------


def _listed(grid: np.ndarray, entry: Any, at: int) -> list[list[Any]]:
    rows = grid.tolist()
    rows[at][1] = entry
    return rows


def _mapped(grid: np.ndarray, entry: Any, at: int) -> dict[str, list[Any]]:
    rows = _listed(grid, entry, at)
    return {
        name: [row[place] for row in rows] for place, name in enumerate("abc")
    }


def _object_array(grid: np.ndarray, entry: Any, at: int) -> np.ndarray:
    objects = grid.astype(object)
    objects[at, 1] = None
    objects.ravel()[at * P + 1 : at * P + 2] = _alone(entry)
    return objects


def _alone(entry: Any) -> np.ndarray:
    """An array (1,) of one object, whatever it is."""
    objects = np.empty(1, dtype=object)
    objects[0] = entry
    return objects


def _object_labels(labels: list[Any], entry: Any, at: int) -> np.ndarray:
    objects = np.empty(N, dtype=object)
    objects[:] = labels
    objects[at] = entry
    return objects


def _label_list(labels: list[Any], entry: Any, at: int) -> list[Any]:
    return [*labels[:at], entry, *labels[at + 1 :]]


def _typed(grid: np.ndarray, entry: float, at: int) -> np.ndarray:
    grid[at, 1] = entry
    return grid


def _typed_labels(labels: np.ndarray, entry: float, at: int) -> np.ndarray:
    labels[at] = entry
    return labels


def _masked(grid: np.ndarray, entry: float, at: int) -> np.ma.MaskedArray:
    masked = np.ma.masked_array(_typed(grid, entry, at))
    masked[at, 1] = np.ma.masked
    return masked


GRIDS: dict[str, Callable[..., Any]] = {
    "list of lists": _listed,
    "tuple of tuples": lambda *of: tuple(map(tuple, _listed(*of))),
    "deque of lists": lambda *of: deque(_listed(*of)),
    "list of object arrays": lambda *of: [*_object_array(*of)],
    "mapping of lists": _mapped,
    "array of objects": _object_array,
    "frame of objects": lambda *of: pd.DataFrame(
        _object_array(*of), dtype=object
    ),
}
ROWS: dict[str, Callable[..., Any]] = {
    "list": list,
    "tuple": tuple,
    "deque": deque,
}
TYPED: dict[str, Callable[..., Any]] = {
    "array": _typed,
    "array in Fortran's order": lambda *of: np.asfortranarray(_typed(*of)),
    "float32": lambda *of: _typed(*of).clip(-1e38, 1e38).astype(np.float32),
    "longdouble": lambda *of: _typed(*of).astype(np.longdouble),
    "big-endian": lambda *of: _typed(*of).astype(">f8"),
    "masked array": _masked,
    "frame": lambda *of: pd.DataFrame(_typed(*of), columns=[*"abc"]),
    "frame of Float64": lambda *of: pd.DataFrame(_typed(*of)).astype(
        "Float64"
    ),
    "sparse frame": lambda *of: pd.DataFrame(_typed(*of)).astype(
        "Sparse[float]"
    ),
    "list of arrays": lambda *of: [*_typed(*of)],
    "mapping of arrays": lambda *of: dict(
        zip("abc", _typed(*of).T, strict=True)
    ),
    "CSR array": lambda *of: sparse.csr_array(_typed(*of)),
    "CSC matrix": lambda *of: sparse.csc_matrix(_typed(*of)),
    "COO array": lambda *of: sparse.coo_array(_typed(*of)),
    "LIL array": lambda *of: sparse.lil_array(_typed(*of)),
    "DOK matrix": lambda *of: sparse.dok_matrix(_typed(*of)),
}
LABEL_BUILDERS: dict[str, Callable[..., Any]] = {
    "list": _label_list,
    "tuple": lambda *of: tuple(_label_list(*of)),
    "deque": lambda *of: deque(_label_list(*of)),
    "array of objects": _object_labels,
    "column of objects": lambda *of: _object_labels(*of)[:, None],
    "series of objects": lambda *of: pd.Series(
        _object_labels(*of), dtype=object
    ),
    "list of lists": lambda labels, *of: _label_list(
        [[x] for x in labels], *of
    ),
}
TYPED_LABELS: dict[str, Callable[..., Any]] = {
    "array": _typed_labels,
    "series": lambda *of: pd.Series(_typed_labels(*of)),
    "series of Float64": lambda *of: pd.Series(_typed_labels(*of)).astype(
        "Float64"
    ),
    "column": lambda *of: _typed_labels(*of)[:, None],
    "list": lambda *of: _typed_labels(*of).tolist(),
}
