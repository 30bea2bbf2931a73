"""Numbers with 95 % intervals, and why there may be none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import total_ordering
from typing import Any

from dperm.plotting.tables import number as worded


class Missing(RuntimeError):  # noqa: N818  # a state of results, not a fault
    """A result that is not there: the claim is not run."""


class MissingRow(Missing):
    """A group without any row, in a table that exists."""


class Undefined(RuntimeError):  # noqa: N818
    """A result that is there and decides nothing, as where nothing was learnt."""


@total_ordering
@dataclass(frozen=True)
class Number:
    """An estimate and its 95 % interval; both ends are the value if none is known.

    Operations take two numbers as independent.
    """

    value: float
    low: float
    high: float
    #: the number of cells that a share counts; 0 for other numbers
    of: int = 0
    #: whether a part of it was measured, and its interval is not known
    bare: bool = field(default=False, compare=False)

    @classmethod
    def of_any(cls, value: Any) -> Number:
        """A number as it is, or a plain one without an interval."""
        if isinstance(value, cls):
            return value
        return cls(float(value), float(value), float(value))

    def __lt__(self, other: Number | float) -> bool:
        return self.value < Number.of_any(other).value

    @property
    def is_exact(self) -> bool:
        """Whether it has no interval."""
        return self.low == self.high

    def _beside(self, other: Number) -> Number:
        """The number, bare if it or the other one is."""
        return replace(self, bare=self.bare or other.bare)

    def __truediv__(self, other: Number | float) -> Number:
        """A ratio; half widths in logarithms add up, unless the divisor is exact.

        A numerator that may be 0 leaves no lower end, a divisor that may be 0 no upper
        one. Raises Idle if the divisor is not positive, or the numerator while the
        divisor has an interval.
        """
        other = Number.of_any(other)
        if not other.value > 0 or not (self.value > 0 or other.is_exact):
            raise Undefined(f"no ratio of {self.value:g} and {other.value:g}")
        ratio = self.value / other.value
        if other.is_exact:
            low = self.low / other.value
            high = self.high / other.value
            return Number(ratio, low, high, bare=self.bare)._beside(other)
        spread = math.exp(math.hypot(self._half_log(), other._half_log()))
        low = ratio / spread if self.low > 0 else 0.0
        high = ratio * spread if other.low > 0 else math.inf
        return Number(ratio, low, high, bare=self.bare)._beside(other)

    def _half_log(self) -> float:
        if self.low > 0:
            return math.log(self.high / self.low) / 2
        return (self.high - self.low) / 2 / self.value

    def __rtruediv__(self, other: float) -> Number:
        return Number.of_any(other) / self

    def __mul__(self, factor: float) -> Number:
        low, high = sorted([factor * self.low, factor * self.high])
        return Number(factor * self.value, low, high, bare=self.bare)

    __rmul__ = __mul__

    def __sub__(self, other: Number | float) -> Number:
        other = Number.of_any(other)
        difference = self.value - other.value
        if other.is_exact:
            low = self.low - other.value
            high = self.high - other.value
            return Number(difference, low, high, bare=self.bare)._beside(other)
        half = math.hypot(self.high - self.low, other.high - other.low) / 2
        low = difference - half
        high = difference + half
        return Number(difference, low, high, bare=self.bare)._beside(other)

    def __rsub__(self, other: float) -> Number:
        return Number.of_any(other) - self

    def __add__(self, other: Number | float) -> Number:
        return self - other * -1.0

    def __neg__(self) -> Number:
        return self * -1.0

    def __str__(self) -> str:
        if self.of:
            return f"{self.value * self.of:.0f} of {self.of}"
        if self.is_exact:
            return rounded(self.value)
        return f"{rounded(self.value)} [{rounded(self.low)}, {rounded(self.high)}]"


def rounded(value: float) -> str:
    """A number as text, for the reason of a verdict."""
    if not math.isfinite(value) or value == int(value):
        return f"{value:g}"
    return worded(value)
