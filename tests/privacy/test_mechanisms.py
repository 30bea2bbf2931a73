"""Noise and its streams; numpy's normal numbers in a third of the time."""

import numpy as np
import pytest
from numpy.random import PCG64, SFC64, Generator, Philox, SeedSequence
from scipy import stats

from dperm.privacy import ziggurat
from dperm.privacy.mechanisms.generalised_gaussian import generalised_gaussian
from dperm.privacy.noise import (
    MIN_COMPILED,
    gaussian,
    laplace,
    laplace_rows,
    streams,
)

# Rows of each mechanism, from the streams of noise and of sampling.
DRAWN = {
    "integers": lambda one, rows: one.noise.integers(0, 20_640, (rows, 1)),
    "gaussian": lambda one, rows: gaussian(one.noise, (rows, 4)),
    "laplace": lambda one, rows: laplace(one.noise, np.ones((rows, 4))),
    "laplace_rows": lambda one, rows: laplace_rows(
        one.noise, one.sampling, (rows, 70)
    ),
    "generalised": lambda one, rows: generalised_gaussian(
        one.noise, 3.0, (rows, 5)
    ),
}
LAWS = {
    "gaussian": stats.norm,
    "laplace": stats.laplace,
    "laplace_rows": stats.laplace,
}


@pytest.mark.parametrize("name", LAWS)
def test_noise_has_unit_scale(name):
    """Scale passed as the location would give no noise at all."""
    drawn, law = DRAWN[name](streams(2), 20_000).ravel(), LAWS[name]
    assert stats.kstest(drawn, law.cdf).pvalue > 0.01
    assert stats.kstest(1.05 * drawn, law.cdf).pvalue < 1e-3


@pytest.mark.parametrize("block", [1, 7, 64, 999])
@pytest.mark.parametrize("name", DRAWN)
def test_blocks_draw_what_one_call_draws(name, block):
    own, sizes = streams(4), [block] * (1000 // block) + [1000 % block]
    parts = [DRAWN[name](own, rows) for rows in sizes if rows]
    np.testing.assert_array_equal(
        np.concatenate(parts), DRAWN[name](streams(4), 1000)
    )


def test_laplace_noise_is_what_its_stream_gives_times_its_scales():
    own, other = streams(2).smoothness, streams(2).smoothness
    scales = np.repeat([0.0, 0.5, 20.0], 100)
    unit, drawn = laplace(other, np.ones(300)), laplace(own, scales)
    np.testing.assert_allclose(drawn, scales * unit)
    assert own.random() == other.random()
    with pytest.raises(ValueError, match="scale"):
        laplace(own, -1.0)


def test_huge_seeds_are_accepted_and_negative_ones_refused():
    assert 0 <= streams(2**127 + 1).noise.random() < 1
    with pytest.raises(ValueError, match="negative"):
        streams(-1)


def test_streams_are_the_children_of_one_seed_sequence_made_when_asked_for():
    children = SeedSequence(9).spawn(3)
    for child, one in zip(children, streams(9), strict=True):
        np.testing.assert_array_equal(
            Generator(PCG64(child)).random(5), one.random(5)
        )
    own, other = streams(9), Generator(PCG64(1))
    noise = own.noise
    assert own.noise is noise and set(vars(own)) == {"seed", "noise"}
    with pytest.raises(AttributeError):
        own.nose  # noqa: B018
    made = own.replaced(sampling=other)
    assert made.sampling is other and made.noise is noise
    assert made.smoothness.random() == streams(9).smoothness.random()


# --- normal numbers by the ziggurat ---------------------------------------------------


def pair(seed, words=0):
    """Two generators in one state, of which some halves of words were drawn."""
    both = [Generator(PCG64(seed)) for _ in range(2)]
    for rng in both:
        rng.integers(0, 5, words, dtype=np.int32)
    return both


@pytest.mark.parametrize(
    "count", [0, 1, 7, 8, 9, 100, ziggurat.BLOCK + 1, 1 << 18]
)
@pytest.mark.parametrize("words", [0, 3])
def test_numbers_and_states_are_those_of_numpy(count, words):
    ours, numpys = pair(count, words)
    drawn, known = ziggurat.drawn(ours, count), numpys.standard_normal(count)
    assert drawn.tobytes() == known.tobytes()
    assert (
        np.abs(known) > ziggurat.TAIL
    ).sum() > 5 or count < ziggurat.CHECKED
    assert ours.bit_generator.state == numpys.bit_generator.state


@pytest.mark.parametrize("name", ["WIDTHS", "SURE", "HEIGHTS"])
def test_another_table_is_noticed_and_numpy_draws(name, monkeypatch):
    monkeypatch.setattr(
        ziggurat, name, np.flip(getattr(ziggurat, name)).copy()
    )
    monkeypatch.setattr(ziggurat, "agrees", ziggurat.agrees.__wrapped__)
    ours, numpys = pair(4)
    assert not ziggurat.agrees()
    assert (
        gaussian(ours, MIN_COMPILED) == numpys.standard_normal(MIN_COMPILED)
    ).all()


@pytest.mark.parametrize("source", [PCG64, SFC64, Philox])
@pytest.mark.parametrize(
    "size", [0, MIN_COMPILED - 1, MIN_COMPILED, (3, MIN_COMPILED)]
)
def test_gaussian_noise_is_that_of_any_generator(size, source, monkeypatch):
    compiled, draw = [], ziggurat.drawn
    monkeypatch.setattr(
        ziggurat, "drawn", lambda *given: compiled.append(1) or draw(*given)
    )
    ours, numpys = Generator(source(5)), Generator(source(5))
    assert (gaussian(ours, size) == numpys.standard_normal(size)).all()
    assert bool(compiled) == (
        source is PCG64 and np.prod(size) >= MIN_COMPILED
    )


def test_a_generator_of_ones_own_draws_itself():
    class Zero(Generator):
        def standard_normal(self, size=None, *_, **__):
            return np.zeros(size)

    assert not gaussian(Zero(PCG64(6)), MIN_COMPILED).any()
