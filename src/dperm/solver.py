"""What the author of a solver imports: releases, noise, bases of runs, sums of records.

A solver is a module of one's own with the names that its family asks for, as
``docs/howto/algorithm.md`` shows. All that it needs of this package is here; other
modules may change between two versions.
"""

from __future__ import annotations

from dperm.privacy.events import (
    Event,
    Gaussian,
    Laplace,
    Ledger,
    NonPrivate,
    SampledGaussian,
)
from dperm.privacy.noise import (
    Streams,
    gaussian,
    gumbel,
    laplace,
    unit_laplace,
)
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem
from dperm.solvers.batched import (
    BatchedSettings,
    Block,
    mean_sensitivity,
    sum_sensitivity,
)
from dperm.solvers.frank_wolfe import FrankWolfe
from dperm.solvers.frank_wolfe import Noise as FrankWolfeNoise
from dperm.solvers.full_batch import Fit, Steps, too_wide
from dperm.solvers.full_batch.moments import floored, minimised
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.full_batch.secret import Secret
from dperm.solvers.options import at_least, one_of, positive, share
from dperm.solvers.records import Records
from dperm.solvers.single_pass import Options, Stream, Target, TargetNoise

# What one name imports is in the keys of solvers that use it
IN_KEYS = "names"

__all__ = [
    "BatchedSettings",
    "Block",
    "Event",
    "Fit",
    "FrankWolfe",
    "FrankWolfeNoise",
    "Gaussian",
    "Laplace",
    "Ledger",
    "NonPrivate",
    "Options",
    "Penalty",
    "Problem",
    "Records",
    "SampledGaussian",
    "Scaled",
    "Secret",
    "Steps",
    "Stream",
    "Streams",
    "Target",
    "TargetNoise",
    "at_least",
    "floored",
    "gaussian",
    "gumbel",
    "laplace",
    "mean_sensitivity",
    "minimised",
    "one_of",
    "positive",
    "share",
    "sum_sensitivity",
    "too_wide",
    "unit_laplace",
]
