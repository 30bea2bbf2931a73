"""Compiler options and vectorised functions that all compiled kernels share.

Numba's wheel has no vector mathematics, so ``np.exp`` in a loop runs one element at a
time. The polynomials below are plain arithmetic, which the compiler turns into vector
instructions. ``error_model="numpy"`` matters as much: the default checks each division
for zero and keeps the whole loop scalar. The fast-math flags preserve infinities and
NaN, so that a diverged run is noticed.

A kernel is one function, compiled with ``KERNEL``. The functions it calls are pasted
into it (``INLINE`` or ``PASTED``). A call of a compiled helper would be linked
differently when freshly compiled and when loaded from the cache, and the last bits of
sums would differ.
"""

import math
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import ir
from numba import jit, njit, types
from numba.extending import intrinsic, is_jitted

KERNEL: Any = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
}
# Arithmetic in the order of the source, for kernels whose bits must not depend on
# whether a lane is computed in a vector or in the remainder of a loop.
ORDERED: Any = {**KERNEL, "fastmath": {"nsz"}}
INLINE: Any = {**KERNEL, "inline": "always", "cache": False}  # by Numba
PASTED: Any = {**KERNEL, "forceinline": True}  # by LLVM, where it measured faster

_EXP_SERIES = tuple(1.0 / math.factorial(k) for k in range(12, -1, -1))
# artanh(s) = s (1 + s^2/3 + s^4/5 + ...), even and odd powers of s^2 separately: a
# longer loop would not be unrolled, and so not be vectorised.
_ATANH_EVEN = tuple(1.0 / (2 * k + 1) for k in range(14, -1, -2))
_ATANH_ODD = tuple(1.0 / (2 * k + 1) for k in range(15, 0, -2))
_LOG2_HIGH = 6.93145751953125e-1  # log 2 in two parts, the first with few digits
_LOG2_LOW = 1.42860682030941723212e-6


@intrinsic
def _as_float(typingctx, bits):
    """The double whose bits are the given 64-bit integer."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def _fenced(typingctx, x):
    """x, hidden from the optimiser, which must not rearrange it with its users."""

    def codegen(context, builder, signature, args):
        kind = ir.DoubleType()
        fence = builder.module.declare_intrinsic("llvm.arithmetic.fence", [kind])
        return builder.call(fence, args)

    return types.float64(types.float64), codegen


@intrinsic
def _unmerged(typingctx, x, y):
    """The sum x + y, never merged with a surrounding sum; a product may be fused."""

    def codegen(context, builder, signature, args):
        return builder.fadd(*args, flags=("contract", "nsz"))

    return types.float64(types.float64, types.float64), codegen


@njit(**INLINE)
def apart(x):
    """x, rounded before its use, so that a product is not fused with a later sum."""
    return _fenced(x)  # type: ignore[call-arg]


@njit(**INLINE)
def plus(x, y):
    """The sum x + y; ``plus_apart`` where it must not merge with a kernel's own sum."""
    return x + y


@njit(**INLINE)
def plus_apart(x, y):
    """The sum x + y, which the compiler never merges with a surrounding sum."""
    return _unmerged(x, y)  # type: ignore[call-arg]


@njit(**INLINE)
def exp(x):
    """e^x to a relative error of about 1e-14; x is clamped to [-708, 709]."""
    x = min(max(x, -708.0), 709.0)
    k = np.floor(x * 1.4426950408889634 + 0.5)
    r = (x - k * _LOG2_HIGH) - k * _LOG2_LOW
    p = 1.0 / 6227020800.0
    for c in _EXP_SERIES:
        p = p * r + c
    return p * _as_float((np.int64(k) + 1023) << 52)  # type: ignore[call-arg]


@njit(**INLINE)
def softplus(x):
    """log(1 + e^x), by log(1 + u) = 2 artanh(u / (2 + u)) with u = e^-|x|."""
    u = exp(-abs(x))
    s = u / (2.0 + u)
    square = s * s
    fourth = square * square
    even = 1.0 / 33.0
    for c in _ATANH_EVEN:
        even = even * fourth + c
    odd = 0.0
    for c in _ATANH_ODD:
        odd = odd * fourth + c
    return plus(max(x, 0.0), 2.0 * s * (even + square * odd))


@njit(**INLINE)
def clamp(x, bound):
    """The point of [-bound, bound] nearest to x; -bound if x is not a number.

    Every comparison with NaN is false. So the result is bounded even where a record
    overflows, as the sensitivity requires.
    """
    raised = x if x > -bound else -bound
    return raised if raised < bound else bound


def filled(kernel: Any, name: str, pieces: Mapping[Any, Any]) -> Any:
    """A copy of a kernel whose placeholder functions are replaced by others.

    Placeholders in its helpers are replaced too. The copy has its own file in Numba's
    cache, and nothing is dispatched at run time.

    Parameters
    ----------
    kernel : compiled function
    name : str
        Suffix of the copy's name; one name must always come with the same pieces.
    pieces : mapping of compiled functions
        Placeholder to its replacement, which may itself call placeholders.

    Returns
    -------
    compiled function
        The kernel itself, if neither it nor a helper calls a placeholder.
    """
    kernel = pieces.get(kernel, kernel)
    function = kernel.py_func
    called = {key: function.__globals__.get(key) for key in function.__code__.co_names}
    replaced = {
        key: filled(other, name, pieces)
        for key, other in called.items()
        if is_jitted(other)
    }
    if all(replaced[key] is called[key] for key in replaced):
        return kernel
    scope = {**function.__globals__, **replaced}
    copy = FunctionType(function.__code__, scope, function.__name__)
    copy.__qualname__ = f"{function.__qualname__}_{name}"  # the key of Numba's cache
    options = kernel.targetoptions
    return jit(**options, cache=options.get("inline") != "always")(copy)
