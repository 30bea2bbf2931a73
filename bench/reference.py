"""Compiling and calling the C references."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

FLAGS = ("-O3", "-march=native", "-ffast-math", "-fPIC", "-shared")


@functools.cache
def library() -> ctypes.CDLL:
    """Compile ``reference.c`` against numpy's random library and load it."""
    root = Path(np.get_include()).parents[1]
    source = Path(__file__).with_name("reference.c")
    built = Path(tempfile.mkdtemp()) / "reference.so"
    command = ["gcc", *FLAGS, str(source), "-o", str(built), f"-I{np.get_include()}",
               f"-I{sysconfig.get_path('include')}", f"-L{root}/random/lib",
               f"-L{root}/_core/lib", "-lnpyrandom", "-lnpymath", "-lm"]  # fmt: skip
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(built))


def call(name: str, *arguments: Any) -> None:
    """Call a reference.

    Generators and arrays are passed by address, None as no address, whole numbers as
    ptrdiff_t, and others as double.
    """
    getattr(library(), name)(*[_as_c(argument) for argument in arguments])


def address(generator: Generator) -> int:
    """Where numpy's C library finds a generator."""
    return int(generator.bit_generator.ctypes.bit_generator.value)


def _as_c(argument: Any) -> Any:
    if argument is None:
        return ctypes.c_void_p(None)
    if isinstance(argument, Generator):
        return ctypes.c_void_p(address(argument))
    if isinstance(argument, np.ndarray):
        assert argument.flags.forc, "C reads contiguous arrays"
        return ctypes.c_void_p(argument.ctypes.data)
    if isinstance(argument, (int, np.integer, np.bool_)):
        return ctypes.c_ssize_t(int(argument))
    return ctypes.c_double(argument)
