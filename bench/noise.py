"""What noise costs: numpy's generators, and one that would change every number.

The prototype is used by nothing. A counter is mixed into 64 bits (SplitMix64; Steele,
Lea, Flood 2014), which the compiler turns into vector instructions because no number
depends on the one before; Laplace numbers come by inversion, normal ones by Box and
Muller, with logarithm, sine and cosine as polynomials. See ``docs/performance.md``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.random import PCG64, Generator, SeedSequence
from scipy import stats

from bench.shared import in_turns
from dperm.core.compiled import INLINE, KERNEL, _as_float

COUNT = 1 << 14  # numbers of a block: they stay in the cache
CHECKED, LEAST = 1 << 20, 1e-4  # numbers of a test of their law, and its p at least
PLAIN: Any = {**KERNEL, "cache": False, "fastmath": {"contract", "nsz"}}
GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SINE = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(7, -1, -1))
_COSINE = tuple((-1) ** k / math.factorial(2 * k) for k in range(7, -1, -1))
_ATANH = tuple(1.0 / (2 * k + 1) for k in range(8, -1, -1))


@intrinsic
def _as_bits(typingctx, value):
    """The 64 bits of a double, as an integer."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@njit(**INLINE)
def _log(x):
    """The logarithm of a positive normal double, to about 1e-15."""
    bits = _as_bits(x)
    exponent = ((bits >> 52) & 2047) - 1023
    m = _as_float((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000)
    above = m > 1.4142135623730951
    m = 0.5 * m if above else m
    s = (m - 1.0) / (m + 1.0)
    square, total = s * s, 0.0
    for c in _ATANH:
        total = total * square + c
    whole = float(exponent) + (1.0 if above else 0.0)
    return whole * 0.6931471805599453 + 2.0 * s * total


@njit(**PLAIN)
def uniforms(start, out):
    """Numbers in (0, 1) from a counter, 52 bits each."""
    for i in range(out.shape[0]):
        z = start + np.uint64(i + 1) * GAMMA
        z = (z ^ (z >> np.uint64(30))) * FIRST
        z = (z ^ (z >> np.uint64(27))) * SECOND
        z = z ^ (z >> np.uint64(31))
        bits = np.int64(z >> np.uint64(12)) | 0x3FF0000000000000
        out[i] = _as_float(bits) - 0.9999999999999999


@njit(**PLAIN)
def laplaces(start, out):
    """Laplace numbers of scale 1."""
    uniforms(start, out)
    for i in range(out.shape[0]):
        x = out[i] - 0.5
        size = -_log(max(1.0 - 2.0 * abs(x), 2.3e-16))
        out[i] = size if x >= 0.0 else -size


@njit(**PLAIN)
def normals(start, out):
    """Standard normal numbers, an even count of them."""
    uniforms(start, out)
    half = out.shape[0] // 2
    for i in range(half):
        radius = math.sqrt(-2.0 * _log(out[i]))
        quarters = 4.0 * out[half + i]
        whole = np.floor(quarters + 0.5)
        t = (quarters - whole) * 1.5707963267948966
        square, sine, cosine = t * t, 0.0, 0.0
        for c in _SINE:
            sine = sine * square + c
        for c in _COSINE:
            cosine = cosine * square + c
        sine, turn = sine * t, np.int64(whole)
        odd = (turn & 1) == 1
        x, y = (sine, cosine) if odd else (cosine, sine)
        out[i] = radius * (-x if ((turn + 1) & 2) != 0 else x)
        out[half + i] = radius * (-y if (turn & 2) != 0 else y)


def table() -> list[list]:
    """Nanoseconds a number, numpy's and the prototype's."""
    rng, out = Generator(PCG64(SeedSequence(1))), np.empty(COUNT)
    start = np.uint64(1)
    pairs = (
        ("uniform", lambda: rng.random(out=out), uniforms),
        ("Laplace", lambda: rng.laplace(size=COUNT), laplaces),
        ("exponential", lambda: rng.standard_exponential(out=out), None),
        ("normal", lambda: rng.standard_normal(out=out), normals),
    )
    rows = []
    for name, known, kernel in pairs:
        calls = [known] if kernel is None else [known, lambda k=kernel: k(start, out)]
        spent = [seconds / COUNT * 1e9 for seconds in in_turns(*calls)]
        rows.append([name, *spent, *([math.nan] * (2 - len(spent)))])
    return rows


def laws() -> list[list]:
    """P values of Kolmogorov and Smirnov's test of a million numbers of each law."""
    known = {"uniform": uniforms, "laplace": laplaces, "norm": normals}
    rows = []
    for law, kernel in known.items():
        out = np.empty(CHECKED)
        kernel(np.uint64(7), out)
        p = float(stats.kstest(out, law).pvalue)
        rows.append([law, p, "as it should be" if p > LEAST else "not that law"])
    return rows
