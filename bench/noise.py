"""What noise costs: numpy's numbers, and the same ones where compiled code draws them.

See :mod:`dperm.core.privacy.ziggurat`.
"""

from __future__ import annotations

from functools import partial

from numpy.random import PCG64, Generator, SeedSequence

from bench.shared import in_turns
from dperm.core.privacy import ziggurat

COUNT = 1 << 14  # numbers of a block: they stay in the cache
HEAD = ("law", "numpy", "ours")


def table() -> list[list]:
    """Nanoseconds a number."""
    rng = Generator(PCG64(SeedSequence(1)))
    laws = (rng.random, rng.laplace, rng.standard_exponential, rng.standard_normal)
    calls = [*(partial(law, size=COUNT) for law in laws)]
    ours = partial(ziggurat.drawn, rng, COUNT)
    *others, last, own = (seconds / COUNT * 1e9 for seconds in in_turns(*calls, ours))
    names = ("uniform", "Laplace", "exponential")
    rows: list[list] = [[*row, None] for row in zip(names, others, strict=True)]
    return [*rows, ["normal", last, own]]
