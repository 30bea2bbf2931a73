"""Lower bounds on epsilon from shifts of the noise, and a second accountant.

Both compose by dp_accounting, which shares no code with ours. A release on a pair of
data sets is ``gaussian`` or ``sampled`` Gaussian, ``laplace`` (the shifts of its
numbers) or ``pure`` (randomised response), up to rounding.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from scipy import stats

from dperm.accountants.noisy_max import NoisyMax
from dperm.accountants.perturbed_objective import PerturbedObjective
from dperm.audit.mechanism import DELTA, Array, Mechanism, Pair, Transcript
from dperm.audit.replay import SAME, Replay, Shift
from dperm.core.privacy.ledger import Event, Gaussian, Laplace, Ledger, SampledGaussian

STRETCH = 100  # times as many releases, of a tenth of the cost: accountants differ more
MOST = 3  # Laplace numbers of one release whose cells are multiplied
CELLS = 24  # of a Laplace number
DOUBT = 1e-2  # most chance that noise decides a selection, for it to be passed over
_GRID = 1e-4  # spacing of losses, or a share of the largest one of a release
_SHARE = 2000

Release = tuple[str, tuple[float, ...]]  # kind, and its numbers


def composed(
    releases: Iterable[Release], delta: float = DELTA, up: bool = False
) -> float:
    """A bound from below, or above, on the epsilon of independent releases."""
    from dp_accounting import get_epsilon_gaussian
    from dp_accounting.pld import privacy_loss_distribution as pld

    counts = Counter(releases)
    gaussian = [one for one in counts if one[0] == "gaussian"]
    mu = math.sqrt(sum(counts.pop(one) * one[1][0] ** 2 for one in gaussian))
    if not counts:
        return float(get_epsilon_gaussian(1 / mu, delta)) if mu else 0.0
    largest = max(sum(numbers[:MOST]) for _, numbers in counts)
    interval = max(_GRID, 8 * largest / _SHARE)
    grid = {"pessimistic_estimate": up, "value_discretization_interval": interval}
    dots = {"use_connect_dots": up, **grid}

    def distribution(kind: str, numbers: tuple[float, ...]) -> Any:
        if kind == "laplace" and len(numbers) == 1:
            return pld.from_laplace_mechanism(1 / numbers[0], **dots)
        if kind == "sampled":
            rate = {"sampling_prob": numbers[1]}
            return pld.from_gaussian_mechanism(1 / numbers[0], **rate, **dots)
        sides = response(numbers[0]) if kind == "pure" else cells(numbers)
        logs = [dict(enumerate(np.log(side))) for side in sides]
        return pld.from_two_probability_mass_functions(*logs, **grid, symmetric=False)

    parts = [distribution(*one).self_compose(many) for one, many in counts.items()]
    if mu:
        parts.append(pld.from_gaussian_mechanism(1 / mu, **dots))
    total = reduce(lambda one, two: one.compose(two), parts)
    return float(total.get_epsilon_for_delta(delta))


def response(pure: float) -> tuple[Array, Array]:
    """Chances of randomised response, the worst mechanism of a pure epsilon."""
    true = 1 / (1 + math.exp(-pure))
    return np.array([true, 1 - true]), np.array([1 - true, true])


def cells(shifts: Sequence[float]) -> tuple[Array, Array]:
    """Chances of the same cells of Laplace numbers that are moved, and that are not.

    Cells coarsen an output, which can only hide information.
    """
    one, two = np.ones(1), np.ones(1)
    for shift in shifts:
        edges = np.linspace(0.0, shift, CELLS)
        ends = [stats.laplace.cdf(edges - by) for by in (shift, 0.0)]
        each = [np.diff(np.concatenate([[0.0], end, [1.0]])) for end in ends]
        one, two = (np.outer(a, b).ravel() for a, b in zip((one, two), each))  # noqa: B905
    return one, two


# --- a second accountant --------------------------------------------------------------


def ledger_bounds(ledger: Ledger, delta: float = DELTA) -> tuple[float, float]:
    """Lower and upper bound on a ledger's epsilon by the second accountant.

    It knows some of the events: the upper bound is infinite where others, or sampling
    or Gumbel noise, are in the ledger, and the lower one leaves those out.
    """
    below, above, whole = list[Release](), list[Release](), True
    for event in ledger.events:
        low, high = _stated(event)
        count = event.selections if isinstance(event, NoisyMax) else event.count
        below += [low] * count if low else []
        above += [high] * count if high else []
        whole &= high is not None
    upper = composed(above, delta, up=True) if whole else math.inf
    return composed(below, delta), upper


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


def _stated(event: Event) -> tuple[Release | None, Release | None]:
    """An event's release at its stated sensitivity, from below and above, if known."""
    if not event.scale:
        return None, None
    size = 1 / event.noise_multiplier
    if isinstance(event, NoisyMax):
        # the worst of pure privacy; with Gumbel noise, losses have half of that range
        if event.noise == "gumbel":
            return ("pure", (size,)), None
        return (("pure", (2 * size,)),) * 2
    if isinstance(event, SampledGaussian):
        return ("sampled", (size, event.sampling_rate)), None
    if isinstance(event, Laplace):
        return (("laplace", (size,)),) * 2
    return (("gaussian", (size,)),) * 2 if isinstance(event, Gaussian) else (None, None)


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
    if len(m.selections) == len(m.ledger.events):
        return 0.0
    if m.hidden and not _others_are_alike(m, pair, seeds[0]):
        return 0.0
    histories, doubt, last = list[dict[tuple, Shift]](), 0.0, math.inf
    for seed in seeds:
        replay = Replay(m, pair, seed)
        coupling = replay.couple()
        if coupling.other is None:
            return math.inf
        chance, end = decided(replay, coupling.seen)
        doubt, last = max(doubt, chance), min(last, end)
        histories.append(dict(_numbered(coupling.shifts)))
    toll, found = 0.0, list[Release]()
    for place in histories[0]:
        same = [one[place] for one in histories if place in one]
        if place[0] >= last or len(same) < len(histories):
            continue
        event = same[0].event
        if isinstance(event, PerturbedObjective):
            toll += math.log1p(event.curvature / 4)
        found += _least(event, same)
    return max(composed(found, DELTA + doubt) - toll, 0.0)


def decided(replay: Replay, seen: Transcript) -> tuple[float, float]:
    """Chance that noise decides a selection, up to the view where it may well do so."""
    total = 0.0
    for t in range(len(seen.views)):
        if replay.m.selects(seen, t):
            chance = replay.upset(seen, t)
            if total + chance > DOUBT:
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


def _least(event: Event, shifts: Sequence[Shift]) -> Iterator[Release]:
    """The release with the least of some shifts; none where its law is not known."""
    size = min(shift.size for shift in shifts)
    if isinstance(event, SampledGaussian):
        yield "sampled", (size, event.sampling_rate)
    elif isinstance(event, Laplace):
        units = np.min([np.abs(shift.units) for shift in shifts], axis=0)
        moved = np.sort(units[units > SAME])[::-1]
        if moved.size:
            yield "laplace", tuple(map(float, moved[:MOST]))
    elif isinstance(event, Gaussian | PerturbedObjective) or (
        getattr(event, "order", 0) == 2
    ):
        yield "gaussian", (size,)


def _others_are_alike(m: Mechanism, pair: Pair, seed: int) -> bool:
    """Whether it makes no difference on D' which record is read."""
    n, script = len(pair.first.y), m.run(pair.first, seed).draws
    views = [
        np.concatenate(m.run(pair.second, seed, script, (pair.at + k) % n).views)
        for k in (0, 1, n - 1)
    ]
    return all(np.allclose(views[0], one, rtol=1e-12, atol=0) for one in views[1:])
