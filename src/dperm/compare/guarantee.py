"""What a fit cost, and what that takes as public: the value of ``epsilon_``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from dperm.accountants.intervals import epsilon_interval
from dperm.core.privacy.accounting import Interval
from dperm.core.privacy.ledger import Ledger, moves_with_data, united


@dataclass(frozen=True)
class Guarantee:
    """An epsilon, as an interval whose ends are both proved.

    Attributes
    ----------
    ledger : Ledger
        What the fit released.
    delta : float
    given : tuple of str
        What is public: n, by the relation itself, and what was read off the data
        without being paid for.
    """

    ledger: Ledger
    delta: float
    given: tuple[str, ...]

    def assuming(self, *names: str) -> Guarantee:
        """The same with more taken as public."""
        return replace(self, given=united(self.given, names))

    @cached_property
    def interval(self) -> Interval:
        """Both ends; found when asked for."""
        return epsilon_interval(self.ledger, self.delta)

    @property
    def low(self) -> float:
        """Some mechanism with these releases costs at least that."""
        return self.interval.low

    @property
    def high(self) -> float:
        """Every mechanism with these releases costs at most that."""
        return self.interval.high

    @property
    def unconditional(self) -> bool:
        """Whether nothing is taken as public that moves with a record."""
        return not moves_with_data(self.given)

    @property
    def relation(self) -> str:
        """Of neighbouring data sets: one record replaced."""
        return self.ledger.relation

    def __str__(self) -> str:
        return (
            f"epsilon in [{self.low:.6g}, {self.high:.6g}] at delta {self.delta:.3g}, "
            f"one record replaced, given {', '.join(self.given)}"
        )

    __repr__ = __str__
