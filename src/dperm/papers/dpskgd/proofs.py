"""Formulas of Maranjyan et al. 2024 that do not follow from the steps around them."""

from __future__ import annotations

import math

from dperm.papers.shared.proofs import Argument


def halving(convexity: float, steepest: float, inverted: float) -> Argument:
    """Appendix E.2: K inner steps halve the excess, except for the noise.

    ``steepest`` is the largest M_j / p_j; ``inverted`` takes K from the text of Theorem
    4.2, which inverts this ratio.
    """
    condition = steepest / convexity
    product = steepest * convexity
    inner = 2 * (1 + (1 / product if inverted else condition))
    return Argument(
        (1 + condition) / inner, 0.5, "what a round leaves of the excess"
    )


def convex_length(radius: float, noise: float) -> Argument:
    """Appendix E.1: the K that minimises R^2 / K + 12 K Sigma^2.

    ``noise`` is Sigma sqrt(log(1/delta)) / (n epsilon).
    """
    inner = radius / noise
    printed_side = radius**2 / inner + 12 * inner * noise**2
    least_side = 2 * math.sqrt(12) * radius * noise
    return Argument(
        printed_side,
        least_side,
        "the right-hand side at the printed K and at the best",
    )


def dominating_block(steepest: float, within: float) -> Argument:
    """Section 4.3.1: ‖L‖ in M^-1 of a dominating term L^2 / M_max is about L / M_max.

    For every L they differ by a factor sqrt(M_max), which must be at most ``within``.
    """
    apart = math.sqrt(max(steepest, 1 / steepest))
    return Argument(
        apart, within, "L / sqrt(M_max) and L / M_max, one over the other"
    )
