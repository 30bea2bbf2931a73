"""Noisy gradient descent: the whole clipped gradient, one Gaussian release a step."""

import numpy as np

from dperm.solver import Block, Gaussian, Ledger, Options, Records, gaussian

SPARSE = True  # A may be a sparse matrix


def steps(problem, passes, options):
    """A pass reads every record once, for one step."""
    return max(1, round(passes))


def ledger(problem, count, noise_multiplier, options, calibration="published"):
    """One release a step, of the mean of n gradients of norm C at most."""
    event = Gaussian(1.0, noise_multiplier, count, "2 C / n", "noisy_gd.py")
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
                gradient = self.records.gradient(w, self.clip[k]) / self.problem.n
                v = w - self.step[k] * (gradient + self.scale[k] * noise)
                w[:] = self.problem.penalty.prox(v, self.step[k])
