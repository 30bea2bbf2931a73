"""What makes results the same bits on every processor, for the pipeline's processes.

Importing dperm sets nothing. The ``dperm`` command calls :func:`same_bits` before numpy
is imported, and its workers inherit what it sets:

- OpenBLAS and numpy use vectors of AVX2, so that sums have the same order on any
  processor that has them. Compiled kernels have the same bits with wider vectors
  (``numerics.compiled``).
- Numba compiles for that processor. It takes its tuning from the name, but its vectors
  from the processor.

A fit by ``dperm.fit`` repeats its bits on one machine without it.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

# Names that a version of numpy knows; others would be a warning. Before 2.4 a name
# stands for one set of instructions, then for a level.
WIDER = "X86_V4 AVX512_ICL AVX512_SPR"
WIDER_BEFORE = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL"
LEVELS = (2, 4)  # the first version of numpy with names of levels


def has_avx2() -> bool:
    """Whether this is Linux on a processor with AVX2 and fused multiply-add."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return False
    try:
        words = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        return False
    return {"avx2", "fma"} <= set(words)


def one_processor() -> dict[str, str]:
    """Environment variables with which results do not depend on the processor."""
    version = importlib.metadata.version("numpy").split(".")
    has_levels = (int(version[0]), int(version[1])) >= LEVELS
    return {
        "NUMBA_CPU_NAME": "haswell",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": WIDER if has_levels else WIDER_BEFORE,
    }


def same_bits() -> None:
    """Set these variables, unless they are set or the processor has no AVX2.

    It has an effect only before numpy and numba are imported.
    """
    if has_avx2():
        for name, text in one_processor().items():
            os.environ.setdefault(name, text)
