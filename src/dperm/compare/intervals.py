r"""Intervals of a private least-squares fit, computed from its releases alone.

``moments`` releases the sum W of t t^T, t = (x, kappa y) over their scales and clipped,
with symmetric noise E of known scale s. Let v = (u, -1), its last entry over the weight
and the scale of labels, so that the normal equations are (W v)_x + n l2 u = 0, Q the
block of the features and H = Q + n l2. To first order

.. math:: \mathrm{Cov}(\hat u) = H^{-1} (\sigma^2 Q + \tfrac{s^2}{2} (|v|^2 I + v_x
          v_x^T)) H^{-1},

since the variance of an entry of E is s^2 on the diagonal and s^2 / 2 off it. The first
term is the sampling of records with errors of one variance; sigma^2 is v.W v / n, plus
what the fit took from the noise. All of it is post-processing and costs nothing.

``dp_gram`` releases a sum Q of x x^T with noise of scale s, and gradients with noise of
scale g. With a step of one, the metric turns the noise of the last gradient into the
error A = g^2 H^{-2}, and keeps a part of the earlier error:

.. math:: \mathrm{Cov}(\hat u) = A + H^{-1} (\sigma^2 Q + \tfrac{s^2}{2} (\mathrm{tr}(A)
          I + A)) H^{-1}.

It releases no residuals. So sigma^2 is the mean square of the labels by their scale,
which makes intervals too wide where the features explain much of the labels.

The intervals cover the coefficients to which the fit tends with more records and no
noise: least squares over records that are clipped as the fit clips them. ``dp_gram``
clips features and gradients separately, so its intervals need clips that few records
meet. With the default clips they covered the coefficient of a column with spikes in
0.37 of 30 fits (epsilon 3). A setting below ``LEAST`` is refused.

Directions of features in which the released moments are below twice the edge of the
noise's spectrum are *weak*: the fit shrinks them by an unknown amount. There the size
of coefficients is taken to be that of the labels' scale, which makes intervals too
wide. The number of such directions is in ``attrs["weak"]`` of the intervals.

Intervals of DP-GD from the spread of its iterates (Brown et al. 2024, arXiv:2402.13531)
are not offered. Means of ten parts of the last half of 400 or 1600 steps covered 0.1 to
0.9 of the coefficients of real data, because the steps do not settle weak directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from dperm.solvers.fits import Steps, dp_gram
from dperm.solvers.fits.moments import floored

#: for dp_gram: enough steps to forget the start, and clips that few records meet
LEAST = {"steps": 5, "radius": 3.0, "clip": 5.0}
WEAK = 2.0  # multiple of the edge of the noise's spectrum


@dataclass(frozen=True)
class Spread:
    """Variances of the weights of a fit."""

    covariance: np.ndarray  #: of the weights, shape (p, p)
    residual: float  #: variance of a label about its prediction
    weak: int = 0  #: directions that the noise hides

    def mapped(self, A: np.ndarray, size: float) -> Spread:
        """The spread of A w, where labels are ``size`` times as large."""
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


class _Kept(dp_gram.Run):
    """A run that keeps the first matrix sent to it."""

    def steps(self) -> Steps:
        steps = super().steps()
        wanted, self.released = next(steps), None
        while wanted is not None:
            sent = yield wanted
            self.released = sent if self.released is None else self.released
            try:
                wanted = steps.send(sent)
            except StopIteration:
                return


def recorded(on: Any) -> None:
    """Make a contestant's runs keep what ``spread`` needs."""
    if getattr(on, "module", None) is dp_gram:
        on.module = SimpleNamespace(**{**vars(dp_gram), "Run": _Kept})


def spread(on: Any) -> Spread | None:
    """The spread of a contestant's last run; None where there are no intervals."""
    run = getattr(on, "last", None)
    released = getattr(run, "released", None)
    if run is None or released is None or not on.at.is_smooth:
        return None
    if not isinstance(run, _Kept):
        return _of_moments(run)
    wide = all(getattr(run.options, key) >= least for key, least in LEAST.items())
    return _of_metric(run) if wide and run.options.step == 1 else None


def _of_moments(run: Any) -> Spread:
    at, p, s = run.at, run.at.p, run.ledger.events[0].scale
    kappa = run.options.weight / at.label
    v, whole = np.append(run.u[:, 0], -1 / kappa), run.released[0]
    Q = run.floored[0]
    noise = s**2 / 2 * (v @ v * np.eye(p) + np.outer(v[:p], v[:p]))
    taken = float(np.trace(np.linalg.solve(Q, noise)))
    least = s * float(v @ v) / at.n  # the noise of the estimate itself
    residual = max(float(v @ whole @ v + taken) / max(at.n - p, 1), least)
    return _joined(at, whole[:p, :p], s, Q, residual, noise)


def _of_metric(run: Any) -> Spread:
    at, p, (s, g) = run.at, run.at.p, [event.scale for event in run.ledger.events]
    Q = floored(run.released, max(s * np.sqrt(2 * p), 1e-9 * at.n))[0]
    H = np.linalg.inv(Q + at.n * np.diag(at.l2[:, 0]))
    A = g**2 * H @ H
    noise = g**2 * np.eye(p) + s**2 / 2 * (np.trace(A) * np.eye(p) + A)
    return _joined(at, run.released[0], s, Q, at.label**2, noise)


def _joined(
    at: Any, raw: Any, s: float, Q: Any, residual: float, noise: np.ndarray
) -> Spread:
    """H^-1 (residual Q + noise) H^-1, and the weak directions of the raw moments."""
    H = np.linalg.inv(Q + at.n * np.diag(at.l2[:, 0]))
    covariance = H @ (residual * Q + noise) @ H
    values, vectors = np.linalg.eigh(raw)
    weak = vectors[:, values < WEAK * s * np.sqrt(2 * at.p)]
    covariance += at.label**2 * weak @ weak.T
    return Spread(covariance / np.outer(at.S, at.S), residual, weak.shape[1])
