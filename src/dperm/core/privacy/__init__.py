"""Privacy: the ledger of releases, what it costs, and the noise that is drawn."""

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
from dperm.core.privacy.noisy_max import ChosenValue, NoisyMax

__all__ = [
    "ChosenValue",
    "Event",
    "Gaussian",
    "Laplace",
    "Ledger",
    "NoisyMax",
    "NonPrivate",
    "SampledGaussian",
    "calibrate",
    "epsilon",
    "gaussian",
    "streams",
    "true_epsilon",
]
