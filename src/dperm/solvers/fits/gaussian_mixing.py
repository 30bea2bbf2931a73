r"""Gaussian mixing: least squares on random mixtures of the records.

For t = (x / S, kappa y / S_y), clipped to C, *k* normal rows with covariance sum t t^T
+ eta I are released, as if the records were multiplied by a Gaussian matrix and noise
added. Least squares is solved on them (Sheffet 2019; Lev et al. 2025,
arXiv:2505.24603). The cost of k rows under replacing a record is exact
(:mod:`dperm.accountants.sketch`, with the proof): the covariance has to be at least
Gamma I, whatever part of it the records supply.

The smallest eigenvalue of sum t t^T is released first. Both data sets' eigenvalues lie
in [l, l + C^2], l that of the records they share. The Gaussian release, of sensitivity
C^2, is lowered by C^2 and by a margin that noise exceeds with probability delta / 10.
Except with that probability it is then a lower bound on l, and eta = max(0, Gamma -
bound).
The probability is charged to delta. (The authors add it to a release of half the noise
and split epsilon.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from dperm.accountants.sketch import GaussianSketch
from dperm.core.privacy.ledger import Event, Gaussian, Ledger
from dperm.core.solvers.options import positive, share
from dperm.solvers.fits import Fit, Steps
from dperm.solvers.fits.moments import floored, minimised, refuses
from dperm.solvers.fits.scaled import Scaled
from dperm.solvers.records import Records

__all__ = ["Options", "Run", "ledger", "refuses"]

DOUBT = 0.1  # share of delta
_SOURCE = "Lev et al. 2025, with the exact law under replacing a record"


@dataclass(frozen=True)
class Options:
    """Rows, bound on a record, the label's weight, and the eigenvalue's share."""

    #: k as a multiple of p + 1, or of log(20 / delta) if that is more
    rows: float = 2.5
    radius: float = 1.0  #: C as a multiple of sqrt(p + 1)
    weight: float = 1.0  #: kappa
    share: float = 0.1  #: of the squared budget, for the smallest eigenvalue

    def __post_init__(self) -> None:
        for key in ("rows", "radius", "weight"):
            positive(key, getattr(self, key))
        share("share", self.share)


def count_rows(at: Scaled, width: int, rows: float, doubted: int = 1) -> int:
    """Number of rows k, above ``width`` columns so that the sketch is regular."""
    least = np.log(20 * doubted / at.delta)
    return max(int(rows * max(width, least)), width + 2)


def releases(
    at: Scaled, R: float, noise: float, part: tuple[float, float], k: int, steps: int
) -> tuple[Event, Event]:
    """The smallest eigenvalue and ``steps`` sketches, with parts of the budget."""
    eigenvalue = Gaussian(
        R**2,
        R**2 * noise / float(np.sqrt(part[0])),
        1,
        "R^2, the replace-one change of the smallest eigenvalue of a sum of x x^T",
        _SOURCE,
    )
    sketch = GaussianSketch(
        sensitivity=R,
        # the loss of kT rows has deviation s^2 sqrt(kT), like mu of a Gaussian release
        scale=R * float((noise * np.sqrt(k * steps / part[1])) ** 0.5),
        count=steps,
        unit="R, the bound on a record; the scale is the root of the least covariance",
        source=_SOURCE,
        rows=k,
        doubt=DOUBT * at.delta,
    )
    return eigenvalue, sketch


def known(at: Scaled, R: float, found: np.ndarray, event: Event) -> np.ndarray:
    """Lower bound on the shared records' smallest eigenvalue, shape (L,).

    It fails with probability at most ``DOUBT`` delta.
    """
    margin = R**2 + float(norm.isf(DOUBT * at.delta)) * event.scale
    return np.maximum(found[0] - margin, 0.0)


def bound(at: Scaled, options: Options) -> float:
    """C, the bound on t."""
    return options.radius * float(np.sqrt(at.p + 1))


def ledger(at: Scaled, noise_multiplier: float, options: Options) -> Ledger:
    """The smallest eigenvalue, then one sketch."""
    k = count_rows(at, at.p + 1, options.rows)
    part = (options.share, 1 - options.share)
    events = releases(at, bound(at, options), noise_multiplier, part, k, 1)
    return Ledger(events, given=at.given)


class Run(Fit):
    """Minimisers on independent mixtures."""

    def steps(self) -> Steps:
        """The smallest eigenvalue, then the sketch."""
        at, options, p = self.at, self.options, self.at.p
        C, weight = bound(at, options), options.weight

        def smallest(V: Any, records: Records) -> float:
            return float(np.linalg.eigvalsh(records.moments(C, weight))[0])

        key = ("smallest moment", C, weight)
        found = yield at.statistic(C, smallest, C**2, key=key)
        eigenvalue, sketch = self.ledger.events
        below = known(at, C, found, eigenvalue)
        rows = sketch.rows  # type: ignore[attr-defined]
        whole = yield at.moments(C, weight).sketched(rows, below)
        Q = floored(whole[:, :p, :p], 1e-9 * at.n)
        q = whole[:, :p, p].T * (at.label / weight)
        self.u = minimised(at, Q, q, at.n, np.zeros_like(q))
