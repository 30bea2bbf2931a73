"""Privacy losses of single transcripts, for runs whose law depends on what came out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dperm.audit.measured import Measure
from dperm.audit.replay import Replay
from dperm.audit.selections import Selection
from dperm.audit.shifts import additive, is_bent, selects
from dperm.audit.subjects import Array


def losses(replay: Replay, seeds: Sequence[int]) -> Array:
    """Of the transcripts o of fresh runs on D, log P(o | D) / P(o | D'); one a seed.

    Not for runs that read secret random records.
    """
    return np.array([_loss(replay, seed) for seed in seeds])


def _loss(replay: Replay, seed: int) -> float:
    at = Measure(replay, seed, None)
    coupling, seen = at.coupling, at.coupling.seen
    if not coupling.possible:
        return math.inf
    total = 0.0
    for t in range(len(seen.views)):
        if selects(replay.subject, seen, t):
            total += _selection_loss(at, t)
        for place, _ in additive(replay.subject, seen, t):
            total += seen.draws[place].log_density()
            total -= coupling.script[place].log_density()
        if is_bent(replay.subject):
            total += replay.log_volume(1, seed, coupling.script, t)
            total -= replay.log_volume(0, seed, seen.draws, t)
    return total


def _selection_loss(at: Measure, t: int) -> float:
    seen, replay = at.coupling.seen, at.replay
    place, scripts = seen.draws_of(t)[0], (list(seen.draws), at.coupling.script)
    symbol = replay.subject.symbol(seen.views[t])
    one, two = (
        Selection(replay, which, at.seed, scripts[which], t, place).chances()
        for which in (0, 1)
    )
    return math.log(max(one.get(symbol, 0.0), 1e-300)) - math.log(
        max(two.get(symbol, 0.0), 1e-300)
    )
