"""A function for every way in which a module can hold a source of noise."""

import functools
import random
import secrets
from random import gauss

import numpy as np
import numpy.random as numbers
from numpy.random import RandomState as State
from numpy.random import default_rng, laplace
from numpy.random import default_rng as make
from scipy import stats

GENERATOR = np.random.default_rng(3)
OLD = np.random.RandomState(3)
PYTHON = random.Random(4)
SEVERAL = [np.random.default_rng(1)]
FIXED = (np.random.default_rng(1),)


class Slotted:
    """Holds generators made at import, in a slot and in its class."""

    __slots__ = ("rng",)
    shared = np.random.default_rng(8)

    def __init__(self):
        self.rng = np.random.default_rng(5)


HOLDER = Slotted()


def enclosed():
    """A draw of a generator in a closure."""
    rng = np.random.default_rng(9)
    return lambda seed: rng.laplace()


def by_default(seed, maker=default_rng):
    return maker(seed).laplace()


def by_keyword(seed, *, rng=GENERATOR):
    return rng.laplace()


SOURCES = {  # whose draws are replayed
    "name": lambda seed: default_rng(seed).laplace(),
    "alias": lambda seed: make(seed).laplace(),
    "old function": lambda seed: laplace(),
    "module": lambda seed: numbers.laplace(),
    "class": lambda seed: State(seed).laplace(),
    "global": lambda seed: GENERATOR.laplace(),
    "old global": lambda seed: OLD.laplace(),
    "default": by_default,
    "keyword": by_keyword,
    "slot": lambda seed: HOLDER.rng.laplace(),
    "class attribute": lambda seed: Slotted.shared.laplace(),
    "list": lambda seed: SEVERAL[0].laplace(),
    "tuple": lambda seed: FIXED[0].laplace(),
    "closure": enclosed(),
    "partial": functools.partial(
        lambda seed, rng: rng.laplace(), rng=np.random.default_rng(9)
    ),
    "scipy": lambda seed: stats.norm.rvs(),
    "random": lambda seed: gauss(0, 1),
    "random.Random": lambda seed: PYTHON.normalvariate(0, 1),
    "random.Random()": lambda seed: random.Random().expovariate(1),
}
FOLLOWED = {  # which follow the seed, but whose law is not known
    "uniform": lambda seed: random.random(),
    "system": lambda seed: random.SystemRandom().random(),
    "secrets": lambda seed: float(secrets.randbelow(10**9)),
}
