"""Noise mechanisms; all noise for study is drawn here.

Each purpose has its own stream, so that no draw depends on the block sizes of another:
*k* numbers drawn at once are the *k* numbers drawn one by one.

The numbers are doubles from seeded generators: for study only. Anyone who knows the
seed can subtract the noise. Even without it, the low bits of a floating-point sum
reveal the data (Mironov 2012, "On significance of the least significant bits for
differential privacy"). Models to be published are fitted with ``release=True``, whose
noise is discrete, exact and drawn elsewhere (:mod:`dperm.solvers.exact_noise`).

Every draw passes through :func:`deliver`, where a listener can record it or substitute
other numbers (:func:`listening`). An audit observes any solver this way. A draw
advances its generator `rng`; `size` is the shape, filled in row-major order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

STUDY = (
    "This noise is made of seeded doubles: for study, not for release (Mironov 2012).\n"
    "To publish a model, use dperm.fit(..., release=True), whose noise is exact."
)


STREAMS = ("sampling", "noise", "smoothness")


class Streams:
    """Independent generators of one run, each made at its first use.

    Most runs do not use all of them, and making them takes as long as a short run.
    Generators that are ``given`` by name are used; others are made from the seed.
    """

    sampling: Generator  #: choice of records or coordinates
    noise: Generator  #: noise of the optimisation
    smoothness: Generator  #: noise of the private smoothness constants

    def __init__(self, seed: int = 0, **given: Generator):
        self.seed = seed
        vars(self).update(given)

    def __getattr__(self, name: str) -> Generator:
        """Make a generator at its first use."""
        if name not in STREAMS:
            raise AttributeError(name)
        child = SeedSequence(self.seed, spawn_key=(STREAMS.index(name),))
        generator = Generator(PCG64(child))
        setattr(self, name, generator)
        return generator

    def __iter__(self) -> Iterator[Generator]:
        return (getattr(self, name) for name in STREAMS)

    def replaced(self, **others: Any) -> Streams:
        """A copy with other generators; the original must not be used any more."""
        return Streams(**(vars(self) | others))


def streams(seed: int) -> Streams:
    """Return the generators of a run: PCG64, from the children of one SeedSequence.

    Raises ValueError if the seed, which may be of any size, is negative.

    Examples
    --------
    >>> int(streams(0).sampling.integers(0, 1000))
    802
    """
    if seed < 0:
        raise ValueError(
            f"seed: expected one that is not negative, found {seed}"
        )
    return Streams(seed=seed)


def seeds_of(seed: int, count: int) -> list[int]:
    """``count`` seeds, all derived from one."""
    seeds: list[int] = SeedSequence(seed).generate_state(count, "u8").tolist()
    return seeds


# Maps the law of noise, the numbers in units of its scale, and the order of its norm
# (2 unless generalised Gaussian) to the numbers to use, of the same shape.
Listener = Callable[[str, NDArray[np.float64], float], NDArray[np.float64]]

_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Pass every draw of any module, in any thread, to a listener, in order.

    The law of a draw is gaussian, laplace, gumbel or generalised_gaussian.
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def deliver(
    law: str, unit: NDArray[np.float64], order: float = 2.0
) -> NDArray[np.float64]:
    """The numbers to use for a draw of unit scale: these, or the listener's."""
    return _listeners[-1](law, unit, order) if _listeners else unit


MIN_COMPILED = 4096  # numbers that are drawn faster by compiled code


def gaussian(
    rng: Generator, size: int | tuple[int, ...]
) -> NDArray[np.float64]:
    """Return standard normal noise, in units of the Gaussian mechanism's scale.

    The numbers are numpy's. An audit's generator, of another class, draws by itself.
    """
    draw: Callable[..., NDArray[np.float64]] = rng.standard_normal
    count = math.prod(size) if isinstance(size, tuple) else size
    if count >= MIN_COMPILED and type(rng) is Generator:
        from dperm.privacy import ziggurat  # a compiler, which few draws need

        if type(rng.bit_generator) is PCG64 and ziggurat.agrees():
            draw = partial(ziggurat.drawn, rng)
    normal = draw(size)
    return deliver("gaussian", normal)


def laplace(rng: Generator, scale: ArrayLike) -> NDArray[np.float64]:
    """Return one Laplace number per scale, density exp(-|x|/scale) / (2 scale).

    The generator advances by the same amount for all scales, and 0 gives 0. Raises
    ValueError if a scale is negative (from numpy).
    """
    scales = np.asarray(scale, dtype=float)
    if not _listeners:
        return np.asarray(rng.laplace(loc=0.0, scale=scales))
    unit = np.asarray(rng.laplace(loc=0.0, scale=np.ones_like(scales)))
    return np.asarray(scales * deliver("laplace", unit))


def gumbel(rng: Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
    """Return standard Gumbel noise, distribution function exp(-exp(-x))."""
    return deliver("gumbel", -np.log(rng.standard_exponential(size)))


def laplace_rows(
    rng: Generator, signs: Generator, shape: tuple[int, int]
) -> NDArray:
    """Return Laplace noise of unit scale, four times as fast as by inversion.

    The absolute values are exponential numbers of ``rng``, the signs whole 64-bit words
    per row of another stream, so that the numbers do not depend on how rows are cut
    into blocks.
    """
    rows, columns = shape
    drawn = rng.standard_exponential(shape)
    words = signs.bit_generator.random_raw(rows * -(-columns // 64))
    raw = words.astype("<u8", copy=False).reshape(rows, -1).view(np.uint8)
    flipped = np.unpackbits(raw, axis=1, bitorder="little")[:, :columns]
    # a negation under a mask takes 9 ns each
    drawn *= 1 - 2 * flipped.view(np.int8)
    return deliver("laplace", drawn)


def unit_laplace(
    rng: Generator, size: int | tuple[int, ...]
) -> NDArray[np.float64]:
    """Return Laplace noise of scale 1: exponential numbers with random signs.

    Four times as fast as :func:`laplace`, which matters where every candidate of a
    selection needs a draw.
    """
    noise = rng.standard_exponential(size)
    flat = noise.reshape(-1)
    bits = np.frombuffer(rng.bytes(-(-flat.size // 8)), dtype=np.uint8)
    flat *= 1 - 2 * np.unpackbits(bits, count=flat.size).view(np.int8)
    return deliver("laplace", noise)


def signed_noisy_max(
    scores: NDArray[np.float64], scale: float, rng: Generator
) -> tuple[int, int]:
    """Report noisy max over +score and -score of every coordinate, scores (p,).

    Each of the 2 p candidates has its own Laplace noise of that scale. Returns the
    coordinate that is chosen and its sign, +1 or -1.
    """
    noise = scale * unit_laplace(rng, (2, scores.size))
    up = scores + noise[0]
    down = noise[1] - scores
    j = int(up.argmax())
    k = int(down.argmax())
    return (j, 1) if up[j] >= down[k] else (k, -1)
