"""Compiler options and vectorised functions that all compiled kernels share.

Numba's wheel has no vector mathematics, so ``np.exp`` in a loop runs one element at a
time. The polynomials below are plain arithmetic, which the compiler turns into vector
instructions. ``error_model="numpy"`` matters as much: the default checks each division
for zero and keeps the whole loop scalar.

No kernel has a fast-math flag: every operation is IEEE 754's, in the order of the
source, so that bits do not depend on how wide the processor's vectors are. The compiler
makes no vectors of a sum then. So entry i is added to one of ``RUNNING_SUMS`` running
sums, number i modulo ``RUNNING_SUMS``, in an inner loop that is vectorised; see
``dot``.

A kernel is one function, compiled with ``KERNEL``. The functions it calls are pasted
into it (``INLINE`` or ``PASTED``), so that the loops around them are vectorised.
"""

import math
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, is_jitted

from dperm.numerics.kernels import njit

KERNEL: Any = {"cache": True, "nogil": True, "error_model": "numpy"}
INLINE: Any = {**KERNEL, "inline": "always", "cache": False}  # by Numba
PASTED: Any = {
    **KERNEL,
    "forceinline": True,
}  # by LLVM, where it measured faster

RUNNING_SUMS = 32  # running sums of a sum, which four or eight registers hold
LAST_SUMS = 8  # of them, to which the last entries are added
BLOCK = 64  # entries of which the least score is found before its place
_INDEX = ir.IntType(32)
_WHOLE = 1.5 * 2.0**52 + 1023  # doubles of its size are whole numbers
_EXP_EVEN = tuple(1.0 / math.factorial(k) for k in range(10, -1, -2))
_EXP_ODD = tuple(1.0 / math.factorial(k) for k in range(9, 0, -2))
# artanh(s) = s (1 + s^2/3 + s^4/5 + ...), even and odd powers of s^2 separately: a
# longer loop would not be unrolled, and so not be vectorised.
_ATANH_EVEN = tuple(1.0 / (2 * k + 1) for k in range(14, -1, -2))
_ATANH_ODD = tuple(1.0 / (2 * k + 1) for k in range(15, 0, -2))


@intrinsic
def _power_of_two(typingctx, t):
    """2^k for a whole number k, given t = k + _WHOLE, whose last bits are k + 1023."""

    def codegen(context, builder, signature, args):
        bits = builder.bitcast(args[0], ir.IntType(64))
        return builder.bitcast(
            builder.shl(bits, bits.type(52)), ir.DoubleType()
        )

    return types.float64(types.float64), codegen


def _fused(typingctx, x, y, z):
    """The sum x y + z, rounded once; the compiler itself fuses nothing."""

    def codegen(context, builder, signature, args):
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


def _running(typingctx):
    """Pointer to ``RUNNING_SUMS`` running sums that are zero; ``fold`` adds them up."""

    def codegen(context, builder, signature, args):
        zeros = ir.ArrayType(ir.DoubleType(), RUNNING_SUMS)(None)
        location = cgutils.alloca_once(builder, zeros.type)
        builder.store(zeros, location)
        return builder.bitcast(location, ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(), codegen


def _fold(typingctx, sums):
    """Add the upper half of running sums to the lower one until one is left."""

    def codegen(context, builder, signature, args):
        sums_vector = _entries(
            builder,
            args[0],
            _INDEX(0),
            ir.VectorType(ir.DoubleType(), RUNNING_SUMS),
        )
        return builder.extract_element(
            _narrowed(builder, sums_vector, 1), _INDEX(0)
        )

    return types.float64(types.CPointer(types.float64)), codegen


def _summed(typingctx, x, y):
    """The sum of x[i] y[i] over contiguous x and y (n,), or of x where y is None.

    There are ``RUNNING_SUMS`` running sums, then ``LAST_SUMS`` for what is left, then
    one.
    """

    def codegen(context, builder, signature, args):
        array_types = [
            array_type
            for array_type in signature.args
            if array_type != types.none
        ]
        arrays = [
            context.make_array(array_type)(context, builder, arg)
            for array_type, arg in zip(array_types, args, strict=False)
        ]
        count = builder.extract_value(arrays[0].shape, 0)
        start = count.type(0)
        sums = ir.VectorType(ir.DoubleType(), RUNNING_SUMS)(None)
        for width in (RUNNING_SUMS, LAST_SUMS, 1):
            sums = _narrowed(builder, sums, width)
            accumulator = cgutils.alloca_once_value(builder, sums)
            stop = count.type(-width)
            stop = builder.and_(count, stop)
            with cgutils.for_range_slice(
                builder, start, stop, count.type(width)
            ) as index:
                terms = [
                    _entries(builder, a.data, index[0], sums.type)
                    for a in arrays
                ]
                terms.append(builder.load(accumulator))
                shaped = ir.FunctionType(sums.type, 3 * [sums.type])
                name = f"llvm.fma.v{width}f64"
                fma = cgutils.get_or_insert_function(
                    builder.module, shaped, name
                )
                is_plain_sum = len(terms) == 2
                if is_plain_sum:
                    after = builder.fadd(*terms)
                else:
                    after = builder.call(fma, terms)
                builder.store(after, accumulator)
            start = stop
            sums = builder.load(accumulator)
        return builder.extract_element(sums, _INDEX(0))

    for array_type in (x, y):
        if array_type != types.none and not (
            array_type.is_c_contig
            and getattr(array_type.dtype, "signed", True)
        ):
            raise TypeError(
                "dot: expected contiguous arrays of signed numbers"
            )
    return types.float64(x, y), codegen


def _lowest(typingctx, values, noise, start, factor, scale):
    """The least noisy score of ``BLOCK`` entries, in vectors.

    Entry j of ``values`` (n,) has two scores, factor values[j] + scale noise[2 j] and
    -factor values[j] + scale noise[2 j + 1]. The block begins at ``start``. A score
    that is not a number is no least one; if all are, the answer is infinite.
    """

    def codegen(context, builder, signature, args):
        arrays = [
            context.make_array(array_type)(context, builder, arg)
            for array_type, arg in zip(
                signature.args[:2], args[:2], strict=True
            )
        ]
        begin = args[2]
        factor, scale = args[3:]
        vector = ir.VectorType(ir.DoubleType(), LAST_SUMS)
        signs = [_repeated(builder, factor, LAST_SUMS)]
        signs.append(builder.fneg(signs[0]))
        scales = _repeated(builder, scale, LAST_SUMS)
        shaped = ir.FunctionType(vector, 3 * [vector])
        name = f"llvm.fma.v{LAST_SUMS}f64"
        fma = cgutils.get_or_insert_function(builder.module, shaped, name)
        lowest = _repeated(builder, ir.DoubleType()(math.inf), LAST_SUMS)
        for step in range(0, BLOCK, LAST_SUMS):
            place = builder.add(begin, begin.type(step))
            block = _entries(builder, arrays[0].data, place, vector)
            twice = builder.mul(place, place.type(2))
            pair_type = ir.VectorType(ir.DoubleType(), 2 * LAST_SUMS)
            drawn = _entries(builder, arrays[1].data, twice, pair_type)
            for side, sign in enumerate(signs):
                places = ir.VectorType(_INDEX, LAST_SUMS)(
                    [*range(side, 2 * LAST_SUMS, 2)]
                )
                side_noise = builder.shuffle_vector(drawn, drawn, places)
                noisy = builder.fmul(scales, side_noise)
                score = builder.call(fma, [sign, block, noisy])
                is_less = builder.fcmp_ordered("<", score, lowest)
                lowest = builder.select(is_less, score, lowest)
        return _least_entry(builder, lowest)

    argument_types = (values, noise, types.intp, types.float64, types.float64)
    return types.float64(*argument_types), codegen


def _repeated(builder, number, count):
    """A vector all of whose entries are a number."""
    vector = ir.VectorType(number.type, count)(ir.Undefined)
    filled = builder.insert_element(vector, number, _INDEX(0))
    places = ir.VectorType(_INDEX, count)([0] * count)
    return builder.shuffle_vector(filled, vector, places)


def _least_entry(builder, vector):
    """The least entry of a vector."""
    while (half := vector.type.count // 2) >= 1:
        places = ir.VectorType(_INDEX, half)
        low = builder.shuffle_vector(vector, vector, places([*range(half)]))
        high = builder.shuffle_vector(
            vector, vector, places([*range(half, 2 * half)])
        )
        is_less = builder.fcmp_ordered("<", high, low)
        vector = builder.select(is_less, high, low)
    return builder.extract_element(vector, _INDEX(0))


def _narrowed(builder, sums, width):
    """Running sums, a vector, folded until there are ``width``."""
    while (half := sums.type.count // 2) >= width:
        places = ir.VectorType(_INDEX, half)
        low = places([*range(half)])
        high = places([*range(half, 2 * half)])
        halves = (
            builder.shuffle_vector(sums, sums, side) for side in (low, high)
        )
        sums = builder.fadd(*halves)
    return sums


def _entries(builder, pointer, start, vector_type):
    """The entries of an array from a place on, as a vector of doubles."""
    pointer = builder.gep(pointer, [start])
    vector = ir.VectorType(pointer.type.pointee, vector_type.count)
    vector = builder.load(
        builder.bitcast(pointer, vector.as_pointer()), align=1
    )
    if isinstance(vector.type.element, ir.IntType):
        return builder.sitofp(vector, vector_type)
    return (
        vector
        if vector.type == vector_type
        else builder.fpext(vector, vector_type)
    )


fused: Any = intrinsic(_fused)
running: Any = intrinsic(_running)
fold: Any = intrinsic(_fold)
dot: Any = intrinsic(_summed)
lowest: Any = intrinsic(_lowest)


@njit(**INLINE)
def total(x):
    """The sum of a contiguous x (n,), in the order of ``dot``."""
    return dot(x, None)


@njit(**INLINE)
def exp(x, more=0.0):
    """e^x + more, e^x to a relative error of 3e-14; x is clamped to [-708, 709]."""
    x = min(max(x, -708.0), 709.0)
    t = fused(x, 1.4426950408889634, _WHOLE)  # x / log 2, rounded
    r = fused(_WHOLE - t, 0.6931471805599453, x)
    square = r * r
    even = 1.0 / 479001600.0
    odd = 1.0 / 39916800.0
    for c in _EXP_EVEN:
        even = fused(even, square, c)
    for c in _EXP_ODD:
        odd = fused(odd, square, c)
    p = fused(odd, r, even)
    return fused(p, _power_of_two(t), more)  # type: ignore[call-arg]


@njit(**INLINE)
def softplus(x):
    """log(1 + e^x), by log(1 + u) = 2 artanh(u / (2 + u)) with u = e^-|x|."""
    u = exp(-abs(x))
    s = u / (2.0 + u)
    square = s * s
    fourth = square * square
    even = 1.0 / 33.0
    for c in _ATANH_EVEN:
        even = fused(even, fourth, c)
    odd = 0.0
    for c in _ATANH_ODD:
        odd = fused(odd, fourth, c)
    return fused(2.0 * s, fused(square, odd, even), max(x, 0.0))


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

    Raises
    ------
    RuntimeError
        If Numba compiles nothing.
    """
    kernel = pieces.get(kernel, kernel)
    if not hasattr(kernel, "py_func"):
        raise RuntimeError(
            f"{kernel} is not compiled: unset NUMBA_DISABLE_JIT, under which "
            "kernels cannot be put together"
        )
    function = kernel.py_func
    called = {
        key: function.__globals__.get(key)
        for key in function.__code__.co_names
    }
    replaced = {
        key: filled(helper, name, pieces)
        for key, helper in called.items()
        if is_jitted(helper)
    }
    if all(replaced[key] is called[key] for key in replaced):
        return kernel
    scope = {**function.__globals__, **replaced}
    copy = FunctionType(function.__code__, scope, function.__name__)
    # The key of Numba's cache
    copy.__qualname__ = f"{function.__qualname__}_{name}"
    options = kernel.targetoptions
    return njit(**options, cache=options.get("inline") != "always")(copy)
