"""Comparisons of bounds, and a sensitivity, of Mangold et al. 2022 in numbers."""

from __future__ import annotations

import math

import numpy as np

from dperm.papers.shared.proofs import Argument


def imbalance(ratio: float, least: float, printed: float) -> Argument:
    """Section 3.4, unbalanced, where its hypotheses hold: one coordinate dominates.

    ``found`` is the largest factor between the two sides of an approximate equality.
    These equate the bounds of DP-CD over those of DP-SGD with powers of M_min / M_max
    or, if ``printed``, are the paper's steps to that. ``claimed`` allows a tenth.
    """
    M = np.array([ratio * least] + 9 * [least])
    L = np.array([3.0] + 9 * [3.0 / ratio])
    overall = float(np.linalg.norm(L))
    weighted = float(np.sqrt((L**2 / M).sum()))
    R_I = 3.0  # the first coordinate is known, the others are 1 away
    R_M = math.sqrt(least) * R_I
    mu_M = 1.0
    mu_I = least  # a Hessian diag(M)
    if printed:
        pairs = [(weighted**2, overall / M[0]), (R_M, least * R_I)]
    else:
        convex = weighted * R_M / (overall * R_I)
        strongly = weighted**2 / mu_M * mu_I / overall**2
        pairs = [(convex, ratio**-0.5), (strongly, 1 / ratio)]
    apart = math.exp(
        max(
            abs(math.log(ours / printed_factor))
            for ours, printed_factor in pairs
        )
    )
    return Argument(apart, 1.1, "factor between the two sides, on a quadratic")


def inexact(mu: float, strongly: float) -> Argument:
    """Remark 3.4: the precision reached, over the one cited from Tappenden et al. 2016.

    Appendix C.3 has p beta over sqrt(2 p R^2 beta) in the convex case and 2 p beta over
    p beta / mu in the strongly convex one. The paper claims sqrt(p beta / (2 R^2)) and
    mu / 2. Here p beta = mu and R = 1.
    """
    precision, claimed = (
        (2 * mu, mu / 2) if strongly else (mu / math.sqrt(2 * mu),) * 2
    )
    return Argument(precision, claimed, "precisions of Appendix C.3")


def sensitivity(lipschitz: float) -> Argument:
    """Lemma A.2: two records whose derivatives are L_j and -L_j."""
    return Argument(2 * lipschitz, lipschitz, "derivatives of opposite signs")
