"""Names of the methods, norms and kinds of noise, as figures and tables show them."""

from __future__ import annotations

import math

LABELS = {
    "noisy_sfw": "NoisySFW",
    "noisy_sfw_all": "NoisySFW, all records",
    "poly_sfw": "PolySFW",
    "phased_sgd": "PhasedSGD",
    "sco_dp_sgd": "DP-SGD, one pass",
    "sco_dp_fw": "DP-FW, full batches",
    "sco_mirror_descent": "DP mirror descent, full batches",
}
NOISE = {"paper": "published noise", "strict": "strict noise", "none": "no noise"}


def norm(p: float) -> str:
    """The p of a norm, for titles."""
    return "\N{INFINITY}" if math.isinf(p) else f"{p:g}"
