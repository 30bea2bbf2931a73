"""The privacy ledger: the list of a solver's releases, written before it runs.

An event is one kind of noisy release, repeated ``count`` times. Sensitivities are
REPLACE-ONE sensitivities: how far the released quantity can move when one record is
exchanged for another. Sensitivity and scale share one unit, which the event names, so
that the cost of a release depends only on their ratio, the noise multiplier.

The cost of an event is computed elsewhere (:mod:`dperm.privacy.accounting`), by
one small function per kind of event and accountant.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

RELATION = "replace_one"

# What a guarantee takes as public. An accountant prices noise only. It does not charge
# for constants that a solver reads off the data without noise: the epsilon holds given
# them. Neighbours differ by replacing a record, so that n is public by the relation
# itself. Everything else here changes with a record, or is an assumption that double
# precision does not satisfy.
N = "n"
SMOOTHNESS = "coordinate smoothness M_j"
GLOBAL_SMOOTHNESS = "global smoothness beta"
LIFTS = "lifts of M_j on sets of coordinates"
PARTITION = "partition by M_j"
IMPORTANCE = "probabilities of blocks by M_j"
FEATURE_BOUNDS = "feature bounds b_j"
GRADIENT = "largest entry of the gradient at 0"
DATA_BOUNDS = "largest entry and label"
RADIUS = "l1 norm of the solution"
LABEL_SCALE = "root mean square of labels"
STANDARDISATION = "standardisation of columns"
LABEL_MEAN = "mean of labels"
ZERO_COLUMNS = "which columns are zero"
COMPLETE_RECORDS = "which records are whole"
# Not a constant but an assumption of a proof
EXACT_MINIMA = "exactness of minima"


def missing_values(rule: str | None) -> tuple[str, ...]:
    """Names of what a rule for missing values (mean, median, drop) takes as public."""
    if rule is None:
        return ()
    return (COMPLETE_RECORDS if rule == "drop" else f"{rule} of columns",)


def united(*groups: Iterable[str]) -> tuple[str, ...]:
    """All names once, in the order of their first occurrence."""
    return tuple(dict.fromkeys(itertools.chain(*groups)))


def moves_with_data(names: Iterable[str]) -> tuple[str, ...]:
    """All names except n: what an epsilon assumes beyond the relation itself."""
    return tuple(name for name in names if name != N)


def as_set(names: Iterable[str]) -> str:
    """The names in braces, for tables and messages."""
    return f"{{{', '.join(names)}}}"


class LedgerError(ValueError):
    """An invalid ledger or event; the message names the field and what it must be."""


class UnsupportedEventError(TypeError):
    """An event for which an accountant has no formula."""


def require_positive(name: str, value: float) -> None:
    """Raise LedgerError unless a value is positive and finite."""
    if not (value > 0 and math.isfinite(value)):
        raise LedgerError(f"{name} must be positive and finite, got {value}")


def require_one(name: str, value: int) -> None:
    """Raise LedgerError unless a number of things is at least 1."""
    if value < 1:
        raise LedgerError(f"{name} must be at least 1, got {value}")


# numpy scalars compare equal but cannot be written as JSON
_PLAIN: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "int": operator.index,
}


@dataclass(frozen=True)
class Event:
    """Base class of all events; each kind of release is a frozen dataclass.

    Attributes
    ----------
    sound : bool
        Whether a bound on its cost can be proved at all.

    Raises
    ------
    LedgerError
        If a value is out of its range.
    """

    types: ClassVar[dict[str, type[Event]]] = {}
    sound = True

    #: largest change of the released quantity when one record is replaced, in `unit`
    sensitivity: float
    scale: float  #: scale of the noise, in `unit`; 0 releases without noise
    count: int  #: number of releases, which may be adaptive
    unit: str  #: unit of sensitivity and scale
    source: str  #: where the release is defined: paper and place

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Event.types[cls.__name__] = cls

    def __post_init__(self) -> None:
        for attribute in fields(self):
            number = getattr(self, attribute.name)
            type_name = str(
                getattr(attribute.type, "__name__", attribute.type)
            )
            plain = _PLAIN.get(type_name.removesuffix(" | None"))
            if plain and number is not None:
                object.__setattr__(self, attribute.name, plain(number))
        require_positive("sensitivity", self.sensitivity)
        require_one("count", self.count)
        if not 0 <= self.scale < math.inf:
            raise LedgerError(
                f"scale must be finite and not negative, got {self.scale}"
            )

    @property
    def noise_multiplier(self) -> float:
        """Noise scale in units of the sensitivity (a pure number)."""
        return self.scale / self.sensitivity

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain values, its kind under ``event``."""
        numbers = {
            attribute.name: getattr(self, attribute.name)
            for attribute in fields(self)
            if attribute.init
        }
        return {"event": type(self).__name__, **numbers}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Event:
        """Return the event that :meth:`to_dict` wrote.

        Raises LedgerError if ``values["event"]`` names no kind of event.
        """
        arguments = dict(values)
        event_type = Event.types.get(arguments.pop("event", ""))
        if event_type is None:
            names = ", ".join(sorted(Event.types))
            raise LedgerError(f"event {values.get('event')!r}; known: {names}")
        return event_type(**arguments)


@dataclass(frozen=True)
class Gaussian(Event):
    r"""Gaussian mechanism, :math:`h(D) + N(0, s^2 I)`.

    The :math:`\ell_2` norm of *h* moves by at most :math:`\Delta` (`sensitivity`), the
    noise has standard deviation *s* (`scale`). With :math:`\sigma = s/\Delta`, the
    privacy curve of *k* adaptive releases is exactly that of distinguishing
    :math:`N(0, 1)` from :math:`N(\mu, 1)` with :math:`\mu = \sqrt{k}/\sigma`:

    .. math:: \delta(\epsilon) = \Phi(\mu/2 - \epsilon/\mu)
              - e^\epsilon \Phi(-\mu/2 - \epsilon/\mu)

    (Balle and Wang 2018, arXiv:1805.06530, Theorem 8; Dong, Roth and Su 2019,
    arXiv:1905.02383, Corollary 3.3). The Rényi curve is :math:`k\alpha/(2\sigma^2)`
    (Mironov 2017, arXiv:1702.07476, Corollary 3).
    """


@dataclass(frozen=True)
class SampledGaussian(Event):
    r"""Gaussian mechanism on a batch of *b* of *n* records, drawn without replacement.

    `sensitivity` is that of the batch's sum: :math:`2C` for gradients clipped to norm
    *C*. With :math:`q = b/n` and :math:`\sigma = s/\Delta`, one release obeys in both
    directions, for :math:`\epsilon \ge 0`,

    .. math:: \delta(\epsilon) \le q\, \delta_\sigma
              \big(\log(1 + (e^\epsilon - 1)/q)\big)

    where :math:`\delta_\sigma` is the Gaussian's curve with :math:`\mu = 1/\sigma`
    (Balle, Barthe and Gaboardi 2018, arXiv:1807.01647, Theorem 11: a batch that holds
    the replaced record differs in one record from one that does not). It is the curve
    of :math:`(1-q) N(0, \sigma^2) + q N(1, \sigma^2)` against :math:`N(0, \sigma^2)`.
    The formula of the papers is that pair's Rényi curve, which belongs to Poisson
    sampling and to adding or removing a record (Mironov, Talwar and Zhang 2019,
    arXiv:1908.10530, Section 3.3).
    """

    batch: int
    population: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.batch <= self.population:
            raise LedgerError(
                f"batch must lie in 1..population={self.population}, got {self.batch}"
            )

    @property
    def sampling_rate(self) -> float:
        """Chance q = batch / population that a given record is in the batch."""
        return self.batch / self.population


@dataclass(frozen=True)
class Laplace(Event):
    r"""Laplace mechanism, one number at a time: :math:`h(D) + \mathrm{Lap}(s)`.

    *h* moves by at most :math:`\Delta` (`sensitivity`), the noise has density
    :math:`e^{-|x|/s}/(2s)` (`scale`). With :math:`a = \Delta/s` one release is
    *a*-differentially private (Dwork and Roth 2014, Theorem 3.6); exactly,

    .. math:: \delta(\epsilon) = \max(0, 1 - e^{(\epsilon - a)/2}).

    `published_sensitivity` is the sensitivity in the paper's own accounting, where that
    is not the smallest one (None: the same).
    """

    published_sensitivity: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.published_sensitivity is not None:
            require_positive(
                "published_sensitivity", self.published_sensitivity
            )


@dataclass(frozen=True)
class NonPrivate(Event):
    """A release without noise: its epsilon is infinite under every accountant.

    An empty ledger, in contrast, states that nothing is released, and costs 0.
    """

    sensitivity: float = field(default=1.0, init=False)
    scale: float = field(default=0.0, init=False)


@dataclass(frozen=True)
class Ledger:
    """All releases of a run, in any order: the events compose adaptively."""

    events: tuple[
        Event, ...
    ] = ()  #: the releases; empty if nothing is released
    #: What the guarantee takes as public (:mod:`dperm.privacy.events`). No
    #: accountant charges for it: the epsilon holds given these.
    given: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(self.events))
        object.__setattr__(self, "given", united(self.given))

    def __add__(self, other: Ledger) -> Ledger:
        """Return the ledger of both runs on the same data."""
        given = united(self.given, other.given)
        return Ledger(self.events + other.events, given)

    def assuming(self, *given: str) -> Ledger:
        """Return the ledger with these taken as public too, listed first."""
        return replace(self, given=united(given, self.given))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON holds exactly."""
        events = [event.to_dict() for event in self.events]
        return {"given": list(self.given), "events": events}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Ledger:
        """Return the ledger that :meth:`to_dict` wrote.

        Raises LedgerError if it holds an event of an unknown kind.
        """
        events = tuple(Event.from_dict(event) for event in values["events"])
        return cls(events, tuple(values.get("given", ())))
