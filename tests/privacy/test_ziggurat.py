import numpy as np
import pytest
from numpy.random import PCG64, SFC64, Generator, Philox

from dperm.core.privacy import ziggurat
from dperm.core.privacy.mechanisms import MANY, gaussian


def pair(seed, words=0):
    """Two generators in one state, of which some halves of words were drawn."""
    both = [Generator(PCG64(seed)) for _ in range(2)]
    for rng in both:
        rng.integers(0, 5, words, dtype=np.int32)
    return both


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100, ziggurat.BLOCK + 1, 1 << 18])
@pytest.mark.parametrize("words", [0, 3])
def test_numbers_and_states_are_those_of_numpy(count, words):
    ours, numpys = pair(count, words)
    drawn, known = ziggurat.drawn(ours, count), numpys.standard_normal(count)
    assert drawn.tobytes() == known.tobytes()
    assert ours.bit_generator.state == numpys.bit_generator.state


def test_the_compared_numbers_reach_the_tail_and_its_rejections():
    numbers = Generator(PCG64(1)).standard_normal(ziggurat.CHECKED)
    assert (np.abs(numbers) > ziggurat.TAIL).sum() > 5
    words = Generator(PCG64(1)).bit_generator.random_raw(ziggurat.CHECKED)
    assert (ziggurat._convert(words, np.empty_like(numbers), *tables())[0]) < len(words)


def tables():
    return ziggurat.WIDTHS, ziggurat.SURE, ziggurat.HEIGHTS


@pytest.mark.parametrize("name", ["WIDTHS", "SURE", "HEIGHTS"])
def test_another_table_is_noticed_and_numpy_draws(name, monkeypatch):
    monkeypatch.setattr(ziggurat, name, np.flip(getattr(ziggurat, name)).copy())
    monkeypatch.setattr(ziggurat, "agrees", ziggurat.agrees.__wrapped__)
    ours, numpys = pair(4)
    assert not ziggurat.agrees()
    assert (gaussian(ours, MANY) == numpys.standard_normal(MANY)).all()


@pytest.mark.parametrize("source", [PCG64, SFC64, Philox])
@pytest.mark.parametrize("size", [MANY - 1, MANY, (3, MANY)])
def test_gaussian_noise_is_that_of_any_generator(size, source, monkeypatch):
    compiled, draw = [], ziggurat.drawn
    monkeypatch.setattr(
        ziggurat, "drawn", lambda *given: compiled.append(1) or draw(*given)
    )
    ours, numpys = Generator(source(5)), Generator(source(5))
    assert (gaussian(ours, size) == numpys.standard_normal(size)).all()
    assert bool(compiled) == (source is PCG64 and np.prod(size) >= MANY)


def test_a_generator_of_ones_own_draws_itself():
    class Zero(Generator):
        def standard_normal(self, size=None, *_, **__):
            return np.zeros(size)

    assert not gaussian(Zero(PCG64(6)), MANY).any()
