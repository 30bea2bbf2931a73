"""Lower bounds on epsilon from shifts of the noise, and a second accountant.

Both compose by dp_accounting, which shares no code with ours.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dperm.audit.mechanism import DELTA, Mechanism, Pair, Transcript
from dperm.audit.replay import SAME, Replay, Shift
from dperm.privacy.events import (
    Event,
    Gaussian,
    Laplace,
    Ledger,
    SampledGaussian,
)
from dperm.privacy.mechanisms.noisy_max import NoisyMax
from dperm.privacy.mechanisms.perturbed_objective import PerturbedObjective

MAX_FLIP_CHANCE = 1e-2  # that noise decides a selection that is passed over
STRETCH = 100  # times as many releases, of a tenth of the cost: accountants differ more
_GRID = 1e-4  # spacing of losses, or a share of the largest one of a release
_SHARE = 2000


class PairRelease(NamedTuple):
    """A release on two neighbours, up to rounding."""

    law: str  #: gaussian, laplace, or pure: randomised response
    size: float  #: shift of one number over the noise's scale, or the pure epsilon
    rate: float = 1.0  #: chance that the record is read, of Gaussian noise


def composed(
    releases: Iterable[PairRelease], delta: float = DELTA, up: bool = False
) -> float:
    """A bound from below, or above, on the epsilon of independent releases."""
    from dp_accounting import get_epsilon_gaussian
    from dp_accounting.pld import privacy_loss_distribution as pld

    counts = Counter(releases)
    plain = [
        release
        for release in counts
        if release.law == "gaussian" and release.rate == 1
    ]
    mu = math.sqrt(
        sum(counts.pop(release) * release.size**2 for release in plain)
    )
    if not counts:
        return float(get_epsilon_gaussian(1 / mu, delta)) if mu else 0.0
    interval = max(_GRID, 8 * max(release.size for release in counts) / _SHARE)
    grid = {
        "pessimistic_estimate": up,
        "value_discretization_interval": interval,
    }
    dots = {"use_connect_dots": up, **grid}

    def distribution(release: PairRelease) -> Any:
        """dp-accounting's distribution of a release's privacy loss."""
        if release.law == "laplace":
            return pld.from_laplace_mechanism(1 / release.size, **dots)
        if release.law == "pure":
            lie = 2 / (1 + math.exp(release.size))
            return pld.from_randomized_response(lie, 2, **grid)
        rate = {"sampling_prob": release.rate}
        return pld.from_gaussian_mechanism(1 / release.size, **rate, **dots)

    distributions = []
    for release, many in counts.items():
        distributions.append(distribution(release).self_compose(many))
    if mu:
        distributions.append(pld.from_gaussian_mechanism(1 / mu, **dots))
    total = distributions[0]
    for further in distributions[1:]:
        total = total.compose(further)
    return float(total.get_epsilon_for_delta(delta))


# --- a second accountant --------------------------------------------------------------


def ledger_bounds(ledger: Ledger, delta: float = DELTA) -> tuple[float, float]:
    """Lower and upper bound on a ledger's epsilon by the second accountant.

    It knows some of the events: the upper bound is infinite where others, or sampling
    or Gumbel noise, are in the ledger, and the lower one leaves those out.
    """
    releases = list[PairRelease]()
    is_whole = True
    for event in ledger.events:
        release, exact = _stated(event)
        many = event.selections if isinstance(event, NoisyMax) else event.count
        releases += [release] * many if release else []
        is_whole &= exact
    upper = composed(releases, delta, up=True) if is_whole else math.inf
    return composed(releases, delta), upper


def stretched(ledger: Ledger) -> Ledger:
    """The ledger with more and quieter releases, where accountants differ more."""
    quieter = math.sqrt(STRETCH)
    events = (
        replace(  # type: ignore[type-var]
            event, count=STRETCH * event.count, scale=quieter * event.scale
        )
        for event in ledger.events
    )
    return replace(ledger, events=tuple(events))


def _stated(event: Event) -> tuple[PairRelease | None, bool]:
    """An event's release at its stated sensitivity, and whether it costs no more."""
    if not event.scale:
        return None, False
    size = 1 / event.noise_multiplier
    if isinstance(event, NoisyMax):
        # the worst of pure privacy; with Gumbel noise, losses have half of that range
        is_laplace = event.noise == "laplace"
        loss = 2 * size if is_laplace else size
        return PairRelease("pure", loss), is_laplace
    if isinstance(event, SampledGaussian):
        return PairRelease("gaussian", size, event.sampling_rate), False
    if isinstance(event, Laplace):
        return PairRelease("laplace", size), True
    is_gaussian = isinstance(event, Gaussian)
    return PairRelease("gaussian", size) if is_gaussian else None, is_gaussian


# --- a run on a pair ------------------------------------------------------------------


def run_epsilon(m: Mechanism, pair: Pair, seeds: Sequence[int]) -> float:
    """Lower bound on the epsilon of a run on a pair, as far as histories tell.

    Of every release counts the least shift after the histories of all seeds. Who knows
    the history can blur a release that moves further until it is one that moves by
    that (Gaussian and Laplace noise divide), so that releases cost at least what
    independent ones of the least shifts do. A selection is passed over where noise
    hardly ever decides it: the chance that it does is left to delta. Where it may,
    nothing after it counts. A perturbed objective costs what its linear term does, less
    the most that the minimiser's density may gain or lose besides, which one record's
    curvature bounds.
    """
    if m.hidden and not pair.alike:
        return 0.0
    if len(m.selections) == len(m.ledger.events):
        return 0.0
    histories = list[dict[tuple, Shift]]()
    doubt = 0.0
    end_step = math.inf
    toll = 0.0
    for seed in seeds:
        replay = Replay(m, pair, seed)
        coupling = replay.couple()
        if coupling.other is None:
            return math.inf
        chance, end = decided(replay, coupling.seen)
        doubt = max(doubt, chance)
        end_step = min(end_step, end)
        histories.append(dict(_numbered(coupling.shifts)))
    releases = list[PairRelease]()
    for place in histories[0]:
        same = [shifts[place] for shifts in histories if place in shifts]
        if place[0] < end_step and len(same) == len(histories):
            releases += _least(same)
            event = same[0].event
            if isinstance(event, PerturbedObjective):
                toll += math.log1p(event.curvature / 4)
    return max(composed(releases, DELTA + doubt) - toll, 0.0)


def decided(replay: Replay, seen: Transcript) -> tuple[float, float]:
    """Chance that noise decides a selection, up to the view where it may well do so."""
    total = 0.0
    for t in range(len(seen.views)):
        if replay.m.selects(seen, t):
            chance = replay.upset(seen, t)
            if total + chance > MAX_FLIP_CHANCE:
                return total, t
            total += chance
    return total, math.inf


def _numbered(shifts: Sequence[Shift]) -> Iterator[tuple[tuple, Shift]]:
    """Shifts by their view, their event, and their place among its like."""
    places: defaultdict[tuple, int] = defaultdict(int)
    for shift in shifts:
        key = shift.step, shift.event
        yield (*key, places[key]), shift
        places[key] += 1


def _least(shifts: Sequence[Shift]) -> Iterator[PairRelease]:
    """The release with the least of some shifts; none where its law is not known."""
    event = shifts[0].event
    size = min(shift.size for shift in shifts)
    if isinstance(event, Laplace):  # its numbers have independent noise
        units = np.min([np.abs(shift.units) for shift in shifts], axis=0)
        yield from (
            PairRelease("laplace", float(unit)) for unit in units[units > SAME]
        )
    elif isinstance(event, SampledGaussian):
        yield PairRelease("gaussian", size, event.sampling_rate)
    elif isinstance(event, Gaussian | PerturbedObjective) or (
        getattr(event, "order", 0) == 2
    ):
        yield PairRelease("gaussian", size)
