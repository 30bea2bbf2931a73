"""dperm: reproduction of papers on differentially private convex optimisation.

Importing the package imports no large library. It sets environment variables, unless
they are set already:

- The folder of Numba's cache is named by a digest of the sources with kernels. Numba
  does not notice an edit in a helper of another file and would run outdated code.
- OpenBLAS uses vectors of AVX2, so that sums have the same order, and results the same
  bits, on any processor that has them; and so does numpy if not imported yet. Compiled
  kernels have the same bits with wider vectors (``core.compiled``).
"""

import hashlib
import importlib
import os
import platform
import sys
from pathlib import Path
from typing import Any

__version__ = "2.0.0"


# Files and folders that define compiled functions.
KERNELS = (
    "core/compiled.py",
    "core/erm",
    "core/lanes",
    "core/privacy/ziggurat.py",
    "solvers",
)


def source_digest(*rooms: str) -> str:
    """SHA-256 of the Python files in these folders, or of all, in order of names."""
    here, digest = Path(__file__).parent, hashlib.sha256()
    for path in sorted(here.rglob("*.py")):
        name = path.relative_to(here)
        if not rooms or any(name.is_relative_to(room) for room in rooms):
            digest.update(f"{name}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def cache_folder() -> Path:
    """The user's folder of caches, by the system's convention."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local")
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(cache_folder() / "dperm" / source_digest(*KERNELS)[:16])
)

# Numba takes its tuning from the name, but its vectors from the processor.
ONE_PROCESSOR = {
    "NUMBA_CPU_NAME": "haswell",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",  # numpy 2.4's names
}


def has_avx2() -> bool:
    """Whether this is Linux on a processor with AVX2 and fused multiply-add."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return False
    try:
        known = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        return False
    return {"avx2", "fma"} <= set(known)


if has_avx2():
    for name, value in ONE_PROCESSOR.items():
        os.environ.setdefault(name, value)

# Names imported at their first use, because their modules import scikit-learn.
LAZY = {
    **dict.fromkeys(("DPClassifier", "DPRegressor", "fit"), "estimators"),
    **dict.fromkeys(("Budget", "BudgetError"), "guarantee"),
    "PrivateSearch": "search",
}


def __getattr__(name: str) -> Any:
    if name in LAZY:
        return getattr(importlib.import_module(f"dperm.compare.{LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
