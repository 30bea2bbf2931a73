"""Privacy: the ledger of releases, what it costs, and the noise that is drawn."""

from dperm.accountants.intervals import Interval, epsilon_interval, unconditional
from dperm.accountants.smoothness import feature_bounds, private_smoothness
from dperm.core.privacy.accounting import epsilon, true_epsilon
from dperm.core.privacy.calibration import Calibration, calibrate
from dperm.core.privacy.ledger import (
    Event,
    Gaussian,
    Laplace,
    Ledger,
    NonPrivate,
    SampledGaussian,
)
from dperm.core.privacy.mechanisms import Streams, gaussian, laplace, streams
from dperm.core.privacy.noisy_max import ChosenValue, NoisyMax

__all__ = [
    "Calibration",
    "ChosenValue",
    "Event",
    "Gaussian",
    "Interval",
    "Laplace",
    "Ledger",
    "NoisyMax",
    "NonPrivate",
    "SampledGaussian",
    "Streams",
    "calibrate",
    "epsilon",
    "epsilon_interval",
    "feature_bounds",
    "gaussian",
    "laplace",
    "private_smoothness",
    "streams",
    "true_epsilon",
    "unconditional",
]
