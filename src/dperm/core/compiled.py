"""What every compiled kernel shares: the compiler's options and vectorised functions.

Numba's wheel carries no vector mathematics, so ``np.exp`` in a loop runs one element at
a time. The polynomials below are plain arithmetic, which the compiler turns into vector
instructions. ``error_model="numpy"`` matters as much: the default checks each division
for zero and keeps the whole loop scalar. The fast-math flags leave infinities and NaN
alone, so that a diverged run is seen.

A kernel is one function, ``KERNEL``; what it calls is pasted into it, ``INLINE`` or
``PASTED``. A kernel that called a compiled helper would link it one way when freshly
compiled and another when loaded from the cache, and the last bits of its sums would
differ.
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
# Arithmetic as it is written, for kernels whose bits must not depend on whether the
# compiler made a lane part of a vector or of what is left over.
ORDERED: Any = {**KERNEL, "fastmath": {"nsz"}}
INLINE: Any = {**KERNEL, "inline": "always", "cache": False}  # by Numba
PASTED: Any = {**KERNEL, "forceinline": True}  # by LLVM; which is faster was measured

_EXP_SERIES = tuple(1.0 / math.factorial(k) for k in range(12, -1, -1))
# artanh(s) = s (1 + s^2/3 + s^4/5 + ...), even and odd powers of s^2 apart: a longer
# loop would not be unrolled, and so not be vectorised.
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
    """x, which the compiler takes for a number of which it knows nothing."""

    def codegen(context, builder, signature, args):
        kind = ir.DoubleType()
        fence = builder.module.declare_intrinsic("llvm.arithmetic.fence", [kind])
        return builder.call(fence, args)

    return types.float64(types.float64), codegen


@intrinsic
def _unmerged(typingctx, x, y):
    """X + y, which the compiler merges with no sum around it; it may fuse a product."""

    def codegen(context, builder, signature, args):
        return builder.fadd(*args, flags=("contract", "nsz"))

    return types.float64(types.float64, types.float64), codegen


@njit(**INLINE)
def apart(x):
    """x, rounded before anything is done with it: its product is fused with no sum."""
    return _fenced(x)  # type: ignore[call-arg]


@njit(**INLINE)
def plus(x, y):
    """X + y; where a kernel must not merge it with its own sum, ``plus_apart``."""
    return x + y


@njit(**INLINE)
def plus_apart(x, y):
    """X + y, which the compiler merges with no sum around it."""
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

    Every comparison with NaN is false. So whatever a record overflows to, what is left
    of it is bounded, which is all that a sensitivity needs.
    """
    raised = x if x > -bound else -bound
    return raised if raised < bound else bound


def filled(kernel: Any, name: str, pieces: Mapping[Any, Any]) -> Any:
    """A kernel that calls other functions in place of some that it leaves open.

    Its helpers are filled as well. The code is that of the kernel, in a file of its own
    in Numba's cache; nothing is decided while it runs.

    Parameters
    ----------
    kernel : compiled function
    name : str
        What the pieces belong to; kernels filled under one name have the same pieces.
    pieces : mapping of compiled functions
        What is called in place of each open function; it may call open ones itself.

    Returns
    -------
    compiled function
        The kernel itself, if neither it nor a helper calls an open function.
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
    copy.__qualname__ = f"{function.__qualname__}_{name}"  # Numba's cache goes by it
    options = kernel.targetoptions
    return jit(**options, cache=options.get("inline") != "always")(copy)
