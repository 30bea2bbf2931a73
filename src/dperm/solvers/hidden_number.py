r"""Neighbours by adding or removing a record: the number of records is released first.

Of n records, m = n + noise is released, and a method for neighbours that replace a
record gets exactly m: the first m of them, or all and m - n records of zeros.

*Proof.* Let D' be D and one record more. The number moves by 1, so that Laplace noise
of scale 1 / e (discrete, or rounded afterwards) is e-private. Let m be given. If m > n
the records of D and of D' differ in one: zeros in the one, the record in the other. If
m <= n the first m of D' are those of D, or one of them is replaced by the record and
those behind it move by a place, so that the last falls out. Either way they differ, as
multisets, by replacing one. The method gets them in an order that is drawn (``order``),
so that its law does not depend on theirs: some methods cut records into batches as they
stand, each of which a shift would change. It is (epsilon, delta)-private under
replacing one, for every m, of which alone its noise, its settings and its price may
depend. So for every set S of outcomes

.. math:: P(m, S) \le e^{e} P'(m)\, (e^{\epsilon} P'(S | m) + \delta),

both ways, and the whole is (e + epsilon, delta)-private: the first release is so
without a delta, which is why no more is asked of what follows it. ∎

Nobody is told n: what a fit takes as public no longer names it. Time and memory do
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

SHARE = 0.02  # of epsilon
FEWEST = 2  # records that a fit gets


def event(epsilon: float) -> Laplace:
    """The release of the number of records, within an epsilon that others share."""
    unit = "1, the change of the number of records"
    return Laplace(1.0, 1 / (SHARE * epsilon), 1, unit, "Dwork and Roth 2014, 3.3")


def noisy(n: int, stated: Laplace, seed: int | None) -> int:
    """The number of records with noise, at least 2.

    Parameters
    ----------
    seed : int, optional
        Of the fit, for noise of doubles; none draws exact discrete noise from OpenDP.
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
    """An order of m records, each as likely, by a fit's seed; (m,)."""
    sequence = SeedSequence(seed, spawn_key=(len(STREAMS) + 2,))
    return Generator(PCG64(sequence)).permutation(m)


def resized(X: Any, y: Any, m: int) -> tuple[Any, np.ndarray, int]:
    """The first m records, or as many and records of nothing; and how many those are.

    Parameters
    ----------
    X : array (n, p), sparse array or data frame
    y : array, shape (n,)
        Labels of records of nothing are missing.
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
    """Of a frame; the kinds of its columns stay, whether or not rows are added.

    Those of pandas' own types of numbers become doubles, some of which have no 0.
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
    """X (n, p) with zeros in its last records."""
    if not more:
        return X
    kept = np.arange(X.shape[0]) < X.shape[0] - more
    if sparse.issparse(X):
        return sparse.csc_array(sparse.diags_array(kept.astype(float)) @ X)
    return np.where(kept[:, None], X, 0.0)
