"""Ledgers of several events; what one kind of event refuses beyond the contract."""

import pytest

from dperm.privacy.events import (
    Event,
    Gaussian,
    Laplace,
    Ledger,
    LedgerError,
    NonPrivate,
    SampledGaussian,
    as_set,
    missing_values,
    moves_with_data,
)
from dperm.privacy.mechanisms.generalised_gaussian import GeneralisedGaussian
from dperm.privacy.mechanisms.noisy_max import NoisyMax, TopK
from dperm.privacy.mechanisms.perturbed_objective import PerturbedObjective
from dperm.privacy.mechanisms.sketch import GaussianSketch

EVENTS = (
    Gaussian(0.1, 1 / 3, 7, "2 C / n", "dpcd, Algorithm 1"),
    SampledGaussian(
        2.0, 0.1 + 0.2, 2_265_600, "2 C", "dpcd, Section 6", 1, 45_312
    ),
    NonPrivate(3, "a vertex", "Algorithm 1"),
)


def test_a_sum_has_the_events_of_both_and_takes_as_public_what_either_does():
    first, second = Ledger(EVENTS[:1]), Ledger(EVENTS[1:])
    assert first + second == Ledger.from_dict(Ledger(EVENTS).to_dict())
    assert first + Ledger() == first
    one, two = Ledger(given=("n", "a")), Ledger(given=("n", "b"))
    assert (one + two).given == ("n", "a", "b") and (two + one).given == (
        "n",
        "b",
        "a",
    )
    assert one.assuming("c", "a").given == ("c", "a", "n")


def test_what_is_public_is_named():
    assert moves_with_data(("n", "mean of labels")) == ("mean of labels",)
    assert missing_values(None) == ()
    assert missing_values("drop") == ("which records are whole",)
    assert missing_values("median") == ("median of columns",)
    assert as_set(("n", "a")) == "{n, a}"


def test_a_release_without_noise_is_written_without_its_constants():
    assert EVENTS[2].to_dict() == {
        "event": "NonPrivate", "count": 3, "unit": "a vertex", "source": "Algorithm 1"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (
            lambda: SampledGaussian(1.0, 1.0, 1, "", "", 0, 10),
            "population=10, got 0",
        ),
        (
            lambda: SampledGaussian(1.0, 1.0, 1, "", "", 11, 10),
            "population=10, got",
        ),
        (
            lambda: Laplace(1.0, 1.0, 1, "", "", 0.0),
            "published_sensitivity must",
        ),
        (lambda: NonPrivate(0, "", ""), "count must"),
        (
            lambda: NoisyMax(1.0, 1.0, 1, "", "", "normal"),
            "known: laplace, gumbel",
        ),
        (
            lambda: NoisyMax(1.0, 1.0, 1, "", "", published_pure=0.0),
            "published_pure",
        ),
        (lambda: TopK(1.0, 1.0, 1, "", "", "laplace"), "expected gumbel"),
        (lambda: TopK(1.0, 1.0, 1, "", "", k=0), "k must"),
        (
            lambda: GeneralisedGaussian(1.0, 1.0, 1, "", "", 1.5, 1.0),
            "order must",
        ),
        (
            lambda: GeneralisedGaussian(1.0, 1.0, 1, "", "", 3.0, 0.0),
            "kappa must",
        ),
        (
            lambda: PerturbedObjective(1.0, 1.0, 1, "", "", 0.0),
            "curvature must",
        ),
        (lambda: GaussianSketch(1.0, 1.0, 1, "", "", rows=0), "rows must"),
        (lambda: GaussianSketch(1.0, 1.0, 1, "", "", doubt=1.0), "doubt must"),
        (
            lambda: Event.from_dict({"event": "Gumbel"}),
            "'Gumbel'; known: .*Gaussian",
        ),
    ],
)
def test_impossible_events_are_refused_by_name(make, match):
    with pytest.raises(LedgerError, match=match):
        make()
