"""Noisy gradient descent: the whole clipped gradient, one Gaussian release a step."""

from dataclasses import dataclass

import numpy as np

from dperm.privacy import Gaussian, Ledger, gaussian
from dperm.solvers.batched import Block
from dperm.solvers.records import Records

SPARSE = True  # A may be a sparse matrix


@dataclass(frozen=True)
class Options:
    """Nothing to choose."""


def steps(problem, passes, options):
    """A pass reads every record once, for one step."""
    return max(1, round(passes))


def ledger(problem, count, noise_multiplier, options, calibration="paper"):
    """One release a step, of the mean of n gradients of norm C at most."""
    unit, source = "2 C / n, the replace-one change of the mean", "noisy_gd.py"
    event = Gaussian(1.0, noise_multiplier, count, unit, source)
    return Ledger((event,), given=("global smoothness beta",))  # of the step


def bytes_per_setting(problem):
    """Margins (n) and weights (p) of one setting."""
    return 8 * (problem.n + problem.p)


class Run(Block):
    """Settings under way: row l of ``weights`` belongs to step[l] and clip[l]."""

    names = ("step", "clip", "scale", "weights")

    def __init__(self, problem, settings, streams, options, workers=1, total=0):
        self.problem, self.noise, self.clip = problem, streams.noise, settings.clip
        self.records = Records(problem)
        self.step = settings.step / problem.global_smoothness
        self.scale = settings.noise_scale(2.0 * settings.clip / problem.n)
        self.weights = np.zeros((len(settings.step), problem.p))

    def advance(self, count):
        """Take so many steps; all settings share one noise vector a step."""
        for _ in range(count):
            noise = gaussian(self.noise, self.problem.p)
            for k, w in enumerate(self.weights):
                move = self.gradient(w, self.clip[k]) + self.scale[k] * noise
                self.weights[k] = self.prox(w - self.step[k] * move, self.step[k])

    def gradient(self, w, clip):
        """Mean of the records' gradients, each clipped to norm C."""
        return self.records.gradient(w, clip) / self.problem.n

    def prox(self, v, step):
        """Soft threshold, shrink, project."""
        penalty = self.problem.penalty
        v = v - np.clip(v, -step * penalty.l1, step * penalty.l1)
        return np.clip(v / (1.0 + step * penalty.l2), penalty.lower, penalty.upper)
