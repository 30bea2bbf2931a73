"""Privacy: the ledger of releases, what it costs, and the noise that is drawn."""

from dperm.privacy.accounting import epsilon, true_epsilon
from dperm.privacy.calibration import Calibration, calibrate
from dperm.privacy.intervals import Interval, epsilon_interval, unconditional
from dperm.privacy.ledger import (
    Event,
    Gaussian,
    Laplace,
    Ledger,
    NonPrivate,
    SampledGaussian,
)
from dperm.privacy.mechanisms import Streams, gaussian, laplace, streams
from dperm.privacy.noisy_max import ChosenValue, NoisyMax
from dperm.privacy.smoothness import feature_bounds, private_smoothness

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
