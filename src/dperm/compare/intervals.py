r"""Intervals of a private least-squares fit, from what it released and nothing else.

``moments`` releases the sum W of t t^T, t = (x, kappa y) over their scales and clipped,
with symmetric noise E of known scale s. Let v = (u, -1), its last entry over the weight
and the scale of labels, so that the normal equations are (W v)_x + n l2 u = 0, Q the
block of the features and H = Q + n l2. To first order

.. math:: \mathrm{Cov}(\hat u) = H^{-1} (\sigma^2 Q + \tfrac{s^2}{2} (|v|^2 I + v_x
          v_x^T)) H^{-1},

since the variance of an entry of E is s^2 on the diagonal and s^2 / 2 off it. The first
term is the sampling of records with errors of one variance; sigma^2 is v.W v / n, plus
what the fit took from the noise. All of it is post-processing: it costs nothing.

What is covered are the coefficients that the fit tends to with more records and without
noise: least squares over records that are clipped as the fit clips them.

Directions of features in which the released moments are below twice the edge of the
noise's spectrum are *weak*: the fit shrinks them by an unknown amount. Coefficients are
taken there to be of the size of the labels' scale, which makes intervals wider than
they claim. Their number is in ``attrs["weak"]`` of what ``intervals`` returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

WEAK = 2.0  # edges of the noise's spectrum


@dataclass(frozen=True)
class Spread:
    """What the weights of a fit vary by."""

    covariance: np.ndarray  #: shape (p, p); of the weights
    residual: float  #: variance of a label about its prediction
    weak: int = 0  #: directions that the noise hides

    def mapped(self, A: np.ndarray, size: float) -> Spread:
        """That of A w, where labels are ``size`` times as large."""
        return Spread(A @ self.covariance @ A.T, size**2 * self.residual, self.weak)

    def ends(
        self, centre: np.ndarray, variance: np.ndarray, level: float, names: Any = None
    ) -> pd.DataFrame:
        """Normal intervals of a level: columns ``estimate``, ``low`` and ``high``.

        Raises
        ------
        ValueError
            For a level outside (0, 1).
        """
        if not (isinstance(level, float) and 0 < level < 1):
            raise ValueError(f"level: expected a number in (0, 1), found {level!r}")
        half = stats.norm.isf((1 - level) / 2) * np.sqrt(variance)
        made = {"estimate": centre, "low": centre - half, "high": centre + half}
        found = pd.DataFrame(made, index=names)
        found.attrs["weak"] = self.weak
        return found


def spread(on: Any) -> Spread | None:
    """That of a contestant's last run of ``moments``; None of others or an L1 norm."""
    run = getattr(on, "last", None)
    released = getattr(run, "released", None)
    if run is None or released is None or not on.at.is_smooth:
        return None
    at, p, s = on.at, on.at.p, run.ledger.events[0].scale
    kappa = run.options.weight / at.label
    v = np.append(run.u[:, 0], -1 / kappa)
    Q, whole = run.floored[0], released[0]
    H = np.linalg.inv(Q + at.n * np.diag(at.l2[:, 0]))
    noise = s**2 / 2 * (v @ v * np.eye(p) + np.outer(v[:p], v[:p]))
    taken = float(np.trace(np.linalg.solve(Q, noise)))
    least = s * float(v @ v) / at.n  # the noise of the estimate itself
    residual = max(float(v @ whole @ v + taken) / max(at.n - p, 1), least)
    covariance = H @ (residual * Q + noise) @ H
    values, vectors = np.linalg.eigh(whole[:p, :p])
    weak = vectors[:, values < WEAK * s * np.sqrt(2 * p)]
    covariance += at.label**2 * weak @ weak.T
    return Spread(covariance / np.outer(at.S, at.S), residual, weak.shape[1])
