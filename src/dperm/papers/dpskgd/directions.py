"""Whether a ratio of bounds has the direction of what was measured."""

from __future__ import annotations

import math

CONTROL = "control: one law twice, tuned twice"
DECIDED = 1.02  # a predicted ratio nearer to 1 than this is no prediction


def agrees(predicted: float, verdict: str) -> str:
    """Whether a ratio of bounds has the direction of a decided comparison."""
    if verdict == "undecided" or math.isnan(predicted):
        return ""
    if 1 / DECIDED < predicted < DECIDED:
        return "says nothing"
    return "yes" if (predicted < 1) == (verdict == "helps") else "no"
