"""Standard normal numbers: numpy's own, bit for bit, in a third of the time.

numpy makes them by the ziggurat of Marsaglia and Tsang (2000) and branches on the sign
of each, which no processor can predict. Here numpy's generator draws the same 64-bit
words, and a compiled loop turns eight at a time into numbers without a branch. The
generator ends in the same state. Another numpy may make other numbers, so the first
call compares both (:func:`agrees`).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numba.np.random import _constants as numpys
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from dperm.numerics.kernels import njit

BLOCK = 1 << 14  # words drawn at a time, which stay in the cache
CHECKED = 1 << 16  # numbers compared with numpy's: about 17 of the tail
EXACT: Any = {"cache": True, "nogil": True, "error_model": "numpy"}
PASTED: Any = {**EXACT, "inline": "always", "cache": False}

# Per strip: its width / 2^52, the part of it (of 2^52) below the curve in any case, and
# the curve's height.
WIDTHS = np.array(numpys.wi_double)
SURE = np.array(numpys.ki_double, dtype=np.uint64).astype(np.int64)
HEIGHTS = np.array(numpys.fi_double)
TAIL = float(numpys.ziggurat_nor_r)  # where the last strip's tail begins
INVERSE = float(numpys.ziggurat_nor_inv_r)
# An index without sign is not wrapped, so that the loop is fast.
ONE, EIGHT, NINE, LOW = (np.uint64(k) for k in (1, 8, 9, 255))
MANTISSA = np.uint64((1 << 52) - 1)
TWO_52 = np.uint64(1075 << 52)
SIGN = np.uint64(1 << 63)
TO_SIGN = np.uint64(55)


@njit(**PASTED)
def _candidate(word, widths, sure):
    """The number of a word, and the distance within its strip to where it is sure.

    The strip is in bits 0 to 7, the sign in bit 8, the place in bits 9 to 60.
    """
    place = (word >> NINE) & MANTISSA
    strip = word & LOW
    share = np.uint64(place | TWO_52).view(np.float64) - 4503599627370496.0
    size = np.float64(share * widths[strip]).view(np.uint64)
    x = np.uint64(size | ((word << TO_SIGN) & SIGN)).view(np.float64)
    return x, sure[strip] - 1 - np.int64(place)


@njit(**PASTED)
def _uniform(word):
    return float(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(**PASTED)
def _tail(words, index):
    """How far in the tail, and the place of the next word; -1 if words are missing."""
    while index + ONE < np.uint64(words.shape[0]):
        beyond = -INVERSE * math.log1p(-_uniform(words[index]))
        under = -math.log1p(-_uniform(words[index + ONE]))
        index += ONE + ONE
        if under + under > beyond * beyond:
            return beyond, index
    return -1.0, index


@njit(**EXACT)
def _convert(words, numbers, widths, sure, heights):
    """Fill out from the words; the numbers made and the words used.

    It stops before a number that needs more words than are left.
    """
    filled = np.uint64(0)
    used = np.uint64(0)
    count = np.uint64(numbers.shape[0])
    total = np.uint64(words.shape[0])
    while True:
        for _ in range(min(count - filled, total - used) // EIGHT):
            spare = 0  # negative if a number may lie above the curve
            for k in range(8):
                x, distance = _candidate(
                    words[used + np.uint64(k)], widths, sure
                )
                numbers[filled + np.uint64(k)] = x
                spare |= distance
            if spare < 0:
                break
            filled = filled + EIGHT
            used = used + EIGHT
        spare = 0
        while spare >= 0:
            if filled == count or used == total:
                return filled, used
            x, spare = _candidate(words[used], widths, sure)
            strip = words[used] & LOW
            following = used + ONE
            if spare < 0 and following == total:
                return filled, used
            if spare < 0 and strip != 0:
                height = heights[strip]
                height += (heights[strip - ONE] - height) * _uniform(
                    words[following]
                )
                following += ONE
                if height >= math.exp(-0.5 * x * x):
                    used = following
                    break
            elif spare < 0:
                beyond, following = _tail(words, following)
                if beyond < 0.0:
                    return filled, used
                negative = (words[used] >> NINE >> EIGHT) & ONE
                x = -(TAIL + beyond) if negative else TAIL + beyond
            numbers[filled] = x
            filled = filled + ONE
            used = following


def drawn(rng: Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
    """``rng.standard_normal(size)`` of a generator on PCG64."""
    numbers = np.empty(size)
    done = 0
    flat = numbers.reshape(-1)
    words = np.empty(0, dtype=np.uint64)
    while done < flat.size:
        # every number takes at least one word, so that none is drawn in vain
        fresh = rng.bit_generator.random_raw(min(BLOCK, flat.size - done))
        words = np.concatenate([words, fresh]) if words.size else fresh
        filled, used = _convert(words, flat[done:], WIDTHS, SURE, HEIGHTS)
        done = done + int(filled)
        words = words[int(used) :]
    return numbers


@functools.cache
def agrees() -> bool:
    """Whether numbers and states are the same bits as with numpy alone."""
    ours = Generator(PCG64(1))
    numpys = Generator(PCG64(1))
    same = np.array_equal(
        drawn(ours, CHECKED), numpys.standard_normal(CHECKED)
    )
    return same and ours.bit_generator.state == numpys.bit_generator.state
