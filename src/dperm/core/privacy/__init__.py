"""Privacy: the ledger of releases, its cost, calibration, and the noise drawn."""

from dperm.core.privacy.accounting import epsilon, true_epsilon
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import (
    Event,
    Gaussian,
    Laplace,
    Ledger,
    NonPrivate,
    SampledGaussian,
)
from dperm.core.privacy.mechanisms import gaussian, streams

__all__ = [
    "Event",
    "Gaussian",
    "Laplace",
    "Ledger",
    "NonPrivate",
    "SampledGaussian",
    "calibrate",
    "epsilon",
    "gaussian",
    "streams",
    "true_epsilon",
]
