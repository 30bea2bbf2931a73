"""What a guarantee takes as public, in the words that stand beside its epsilon.

A ledger prices noise. Constants that a solver reads off the data without noise are not
in that price: the epsilon holds *given* them. Neighbours differ by replacing a record,
so that n is public by the relation itself; everything else here moves with a record, or
is an assumption that double precision does not keep.
"""

from __future__ import annotations

from collections.abc import Iterable

N = "n"
SMOOTHNESS = "coordinate smoothness M_j"
GLOBAL_SMOOTHNESS = "global smoothness beta"
LIFTS = "lifts of M_j on sets of coordinates"
PARTITION = "partition by M_j"
IMPORTANCE = "probabilities of blocks by M_j"
FEATURE_BOUNDS = "feature bounds b_j"
GRADIENT = "largest entry of the gradient at 0"
DATA_BOUNDS = "largest entry and label"
RADIUS = "l1 norm of the solution"
LABEL_SCALE = "root mean square of labels"
STANDARDISATION = "standardisation of columns"
COLUMNS = "which columns are zero"
WHOLE = "which records are whole"
EXACT_MINIMA = "exactness of minima"  # no constant: a proof's assumption on arithmetic


def missing_values(rule: str | None) -> tuple[str, ...]:
    """What a rule for missing values (mean, median, drop) reads off all records."""
    if rule is None:
        return ()
    return (WHOLE if rule == "drop" else f"{rule} of columns",)


def united(*parts: Iterable[str]) -> tuple[str, ...]:
    """All names once, in the order they come in."""
    return tuple(dict.fromkeys(name for part in parts for name in part))


def moves_with_data(given: Iterable[str]) -> tuple[str, ...]:
    """The names of what an epsilon does not hold without: all but n."""
    return tuple(name for name in given if name != N)


def as_set(given: Iterable[str]) -> str:
    """The names as a set, for tables and messages."""
    return f"{{{', '.join(given)}}}"
