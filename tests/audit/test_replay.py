"""The tap notes every draw; chances of a selection against closed forms."""

import numpy as np
import pytest

from dperm.accountants import generalised_gaussian
from dperm.audit.replay import one_sided_chances, two_sided_chances
from dperm.audit.subjects import Draw, Tap, tapped
from dperm.core.privacy import mechanisms
from dperm.core.privacy.mechanisms import streams

SCORES = np.array([0.0, -0.7, -3.0])


def test_gumbel_noise_is_the_exponential_mechanism():
    weights = np.exp(SCORES)
    np.testing.assert_allclose(
        one_sided_chances(SCORES, "gumbel"), weights / weights.sum()
    )


@pytest.mark.parametrize("gap", [0.0, 0.3, 4.0])
def test_two_candidates_in_closed_form(gap):
    """The difference of two Laplace numbers."""
    scores = np.array([0.0, -gap])
    behind = 0.5 * np.exp(-gap)
    found = one_sided_chances(scores, "laplace")[1]
    assert found == pytest.approx(behind * (1 + gap / 2), rel=1e-9)


@pytest.mark.parametrize("kind", ["laplace", "gumbel"])
def test_three_candidates_against_counting(kind):
    rng = np.random.default_rng(2)
    noise = getattr(rng, kind)(size=(200_000, 3))
    counted = np.bincount((noise + SCORES).argmax(axis=1), minlength=3) / 200_000
    np.testing.assert_allclose(one_sided_chances(SCORES, kind), counted, atol=5e-3)


def test_noise_inside_an_absolute_value_against_counting():
    """Values 2 and 1: their thresholds above and below are what a run would show."""
    values = np.array([2.0, 1.0])
    up, down = np.array([0.0, 1.0]), np.array([0.0, -3.0])
    found = two_sided_chances(up, down, 0, "laplace")
    noise = np.random.default_rng(2).laplace(size=(200_000, 2))
    counted = np.abs(values + noise).argmax(axis=1).mean()
    assert found[1] == pytest.approx(counted, abs=5e-3)


# --- taps -----------------------------------------------------------------------------


CALLS = {
    "gaussian": lambda own: mechanisms.gaussian(own.noise, (2, 3)),
    "gumbel": lambda own: mechanisms.gumbel(own.noise, 3),
    "laplace": lambda own: mechanisms.laplace(own.noise, [1.0, 2.0]),
    "laplace rows": lambda own: mechanisms.laplace_rows(
        own.noise, own.sampling, (2, 3)
    ),
    "unit laplace": lambda own: mechanisms.unit_laplace(own.noise, (2, 3)),
    "generalised_gaussian": lambda own: generalised_gaussian.generalised_gaussian(
        own.noise, 3.0, (2, 3)
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_tap_notes_draws_and_changes_nothing(name):
    plain = CALLS[name](streams(5))
    with tapped(Tap()) as tap:
        seen = CALLS[name](streams(5))
    np.testing.assert_array_equal(plain, seen)
    kind = {"laplace rows": "laplace", "unit laplace": "laplace"}.get(name, name)
    assert [draw.kind for draw in tap.draws] == [kind]
    scale = np.array([1.0, 2.0]) if name == "laplace" else 1.0
    np.testing.assert_allclose(tap.draws[0].unit * scale, plain)
    np.testing.assert_array_equal(CALLS[name](streams(5)), plain)  # and is gone


def test_every_mechanism_is_heard():
    """A function of mechanisms that draws by itself must hand its numbers over."""
    drawing = {"gaussian", "laplace", "gumbel", "laplace_rows"}
    public = {
        name
        for name, value in vars(mechanisms).items()
        if callable(value) and getattr(value, "__module__", "") == mechanisms.__name__
    }
    others = {"Streams", "streams", "heard", "handed", "signed_noisy_max"}
    assert public - others == drawing | {"unit_laplace"}
    heard = {name.replace(" ", "_") for name in CALLS} - {"generalised_gaussian"}
    assert heard == public - others


def test_a_tap_patches_no_module():
    """The hook is the mechanisms' own: names that were imported before are heard."""
    before = {name: getattr(mechanisms, name) for name in ("gaussian", "laplace")}
    with tapped(Tap()) as tap:
        assert all(getattr(mechanisms, name) is f for name, f in before.items())
        own = {"draw": mechanisms.gaussian}  # where no module's names are looked up
        own["draw"](streams(0).noise, 3)
    assert [draw.kind for draw in tap.draws] == ["gaussian"]


def test_draws_of_other_threads_are_heard():
    from concurrent.futures import ThreadPoolExecutor

    with tapped(Tap()) as tap, ThreadPoolExecutor(1) as ahead:
        drawn = ahead.submit(mechanisms.gaussian, streams(0).noise, 3).result()
    np.testing.assert_array_equal(tap.draws[0].unit, drawn)


def test_a_script_is_handed_out_as_long_as_it_fits():
    script = [Draw("laplace", np.array([1.0, -1.0])), Draw("gaussian", np.zeros(3))]
    with tapped(Tap(script)) as tap:
        own = streams(0)
        first = mechanisms.laplace(own.noise, [2.0, 3.0])
        second = mechanisms.gaussian(own.noise, 2)  # three were scripted
        third = mechanisms.gaussian(own.noise, 3)
    np.testing.assert_array_equal(first, [2.0, -3.0])
    assert (second != 0).all() and (third != 0).all() and len(tap.draws) == 3
