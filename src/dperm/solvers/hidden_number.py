r"""Neighbours by adding or removing a record: the number of records is released first.

Of n records, m = n + noise is released. A method for neighbours that replace a record
then gets exactly m: the first m of them, or all and m - n records of zeros.

*Proof.* Let D' be D with one more record. The number moves by 1, so that Laplace noise
of scale 1 / e (discrete, or rounded afterwards) is e-private. Let m be fixed. If m > n,
the records of D and of D' differ in one: zeros in D, the record in D'. If m <= n, the
first m of D' may be those of D. Otherwise the record is among them, those behind it
move by one place, and the last falls out. In each case they differ, as multisets, by
replacing one at most.

The method gets the records in a random order (``order``), so that its law does not
depend on their own. Some methods cut records into batches as they stand, and a shift
would change every batch. The method is (epsilon, delta)-private under replacing one
record, for every m. Its noise, its settings and its cost may depend on m alone. So for
every set S of outcomes

.. math:: P(m, S) \le e^{e} P'(m)\, (e^{\epsilon} P'(S | m) + \delta),

in both directions, and the whole is (e + epsilon, delta)-private. The first release
needs no delta, so that nothing more is required of what follows it. ∎

n stays secret: it is not among the public information of a fit. Time and memory do
depend on it. A record of zeros has neither a constant for the intercept nor a label, so
that it adds nothing to a gradient; means over m are those over n, times n / m.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.random import PCG64, Generator, SeedSequence
from scipy import sparse

from dperm.core.privacy.ledger import Laplace
from dperm.core.privacy.mechanisms import STREAMS, laplace

SHARE = 0.02  # share of epsilon for the number of records
FEWEST = 2  # least number of records that a fit gets


def event(epsilon: float) -> Laplace:
    """The release of the number of records, for its share of epsilon."""
    unit = "1, the change of the number of records"
    return Laplace(1.0, 1 / (SHARE * epsilon), 1, unit, "Dwork and Roth 2014, 3.3")


def noisy(n: int, stated: Laplace, seed: int | None) -> int:
    """The number of records with noise, at least 2.

    Parameters
    ----------
    seed : int, optional
        Seed of the fit, for noise in doubles; None draws exact discrete noise (OpenDP).
    """
    if seed is None:
        found = _exactly(n, stated.scale)
    else:
        rng = Generator(PCG64(SeedSequence(seed, spawn_key=(len(STREAMS) + 1,))))
        found = round(n + float(laplace(rng, stated.scale)))
    return max(found, FEWEST)


def _exactly(n: int, scale: float) -> int:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    return int(dp.m.make_laplace(*space, scale=scale)(n))


def order(m: int, seed: int) -> np.ndarray:
    """A uniformly random order of m records, from a fit's seed; (m,)."""
    sequence = SeedSequence(seed, spawn_key=(len(STREAMS) + 2,))
    return Generator(PCG64(sequence)).permutation(m)


def resized(X: Any, y: Any, m: int) -> tuple[Any, np.ndarray, int]:
    """The first m records, or all and records of zeros; and the number of the latter.

    Parameters
    ----------
    X : array (n, p), sparse array or data frame
    y : array, shape (n,)
        Labels of records of zeros are missing.
    """
    y = np.asarray(y)
    more = max(m - len(y), 0)
    kind = float if y.dtype.kind in "iufb" else object
    y = np.append(y[:m].astype(kind), np.full(more, np.nan, dtype=kind))
    if isinstance(X, pd.DataFrame):
        return _frame(X, m, more), y, more
    if sparse.issparse(X):
        none = sparse.csr_array((more, X.shape[1]))
        return sparse.csc_array(sparse.vstack((X.tocsr()[:m], none))), y, more
    X = np.asarray(X)
    return np.concatenate((X[:m], np.zeros((more, *X.shape[1:]), X.dtype))), y, more


def _frame(X: pd.DataFrame, m: int, more: int) -> pd.DataFrame:
    """``resized`` for a frame; columns keep their types, with or without added rows.

    Columns of pandas' own numeric types become doubles, as some types have no 0.
    """
    kept = X.iloc[:m].reset_index(drop=True)
    made = kept.reindex(range(len(kept) + more))
    for k, kind in enumerate(X.dtypes):
        if pd.api.types.is_numeric_dtype(kind):
            column, own = kept.iloc[:, k], isinstance(kind, np.dtype)
            some = column if own else column.to_numpy(dtype=float, na_value=np.nan)
            made.isetitem(k, np.append(some, np.zeros(more, kind if own else float)))
    return made


def emptied(X: Any, more: int) -> Any:
    """X (n, p) with zeros in its last ``more`` records."""
    if not more:
        return X
    kept = np.arange(X.shape[0]) < X.shape[0] - more
    if sparse.issparse(X):
        return sparse.csc_array(sparse.diags_array(kept.astype(float)) @ X)
    return np.where(kept[:, None], X, 0.0)
