import json
import math

import numpy as np
import pytest

from dperm.core.privacy.ledger import (
    BatchError,
    CountError,
    Event,
    Gaussian,
    Laplace,
    Ledger,
    LedgerError,
    SampledGaussian,
    ScaleError,
    SensitivityError,
    UnknownEventError,
)

UNIT = "2 C / n: replace-one change of a mean of gradients clipped to norm C"
EVENTS = (
    Gaussian(0.1, 1 / 3, 7, UNIT, "dpcd, Algorithm 1"),
    SampledGaussian(2.0, 0.1 + 0.2, 2_265_600, 1, 45_312, "2 C", "dpcd, Section 6"),
    Laplace(1.0, math.inf, 8, "b_j / n", "dpcd, Appendix F", published_sensitivity=2.0),
)


def test_json_round_trip_is_exact():
    ledger = Ledger(EVENTS)
    assert Ledger.from_dict(json.loads(json.dumps(ledger.to_dict()))) == ledger


def test_numpy_scalars_become_plain_values():
    event = SampledGaussian(
        np.float64(1.0), np.float32(2.0), np.int64(3), np.int64(1), np.int32(9), "", ""
    )
    plain = {type(value) for value in event.to_dict().values()}
    assert plain == {str, int, float}
    assert Event.from_dict(json.loads(json.dumps(event.to_dict()))) == event


def test_ledgers_add():
    first, second = Ledger(EVENTS[:1]), Ledger(EVENTS[1:])
    assert first + second == Ledger(EVENTS)
    assert first + Ledger() == first


def test_a_sum_takes_as_public_what_either_does():
    one, two = Ledger(given=("n", "a")), Ledger(given=("n", "b"))
    assert (one + two).given == ("n", "a", "b") and (two + one).given == ("n", "b", "a")


def test_noise_multiplier_and_sampling_rate():
    assert Gaussian(0.5, 2.0, 1, "", "").noise_multiplier == 4.0
    assert SampledGaussian(1.0, 1.0, 1, 3, 12, "", "").sampling_rate == 0.25


@pytest.mark.parametrize("kind", [Gaussian, Laplace])
@pytest.mark.parametrize(
    ("values", "error"),
    [
        ((1.0, -0.1, 1), ScaleError),
        ((1.0, math.nan, 1), ScaleError),
        ((0.0, 1.0, 1), SensitivityError),
        ((-1.0, 1.0, 1), SensitivityError),
        ((math.inf, 1.0, 1), SensitivityError),
        ((1.0, 1.0, 0), CountError),
    ],
)
def test_impossible_values_are_named(kind, values, error):
    with pytest.raises(error, match=r"must .*got"):
        kind(*values, "", "")
    assert issubclass(error, LedgerError)


@pytest.mark.parametrize("batch", [0, 11])
def test_batch_must_fit(batch):
    with pytest.raises(BatchError, match=r"population=10, got"):
        SampledGaussian(1.0, 1.0, 1, batch, 10, "", "")


def test_fractional_counts_are_refused():
    with pytest.raises(TypeError):
        Gaussian(1.0, 1.0, 2.5, "", "")  # type: ignore[arg-type]


def test_published_sensitivity_must_be_positive():
    with pytest.raises(SensitivityError, match="published_sensitivity"):
        Laplace(1.0, 1.0, 1, "", "", published_sensitivity=0.0)


def test_unknown_events_are_refused():
    with pytest.raises(UnknownEventError, match=r"'Gumbel'; known: .*Gaussian"):
        Event.from_dict({"event": "Gumbel", "scale": 1.0})


def test_events_are_frozen():
    with pytest.raises(AttributeError):
        EVENTS[0].scale = 0.0
