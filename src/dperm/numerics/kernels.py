"""Compiled kernels in a cache of their own.

Numba does not notice an edit in a helper of another file and would run outdated code.
So the folder of the cache is named by a digest of the sources with kernels. Numba's own
settings stay as they are, for a user's own functions too. Where ``NUMBA_CACHE_DIR`` is
set, the cache lies there. Where no folder can be written, kernels are kept in a
temporary one, or compiled in each process; that is no warning and no error.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, config

# Files and folders that define compiled functions.
KERNELS = (
    "numerics/compiled.py",
    "problems",
    "solvers/batched",
    "privacy/ziggurat.py",
    "solvers",
)


def source_digest(*rooms: str) -> str:
    """SHA-256 of the Python files in these folders, or of all, in order of names."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    paths = [package / room for room in rooms] or [package]
    files = [path for path in paths if path.is_file()]
    for path in paths:
        files += path.rglob("*.py")
    for path in sorted(files):
        name = path.relative_to(package)
        digest.update(f"{name}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def cache_folder() -> Path:
    """The user's folder of caches, by the system's convention."""
    if sys.platform == "win32":
        return Path(
            os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local"
        )
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@functools.cache
def kernel_folder() -> str:
    """The folder of compiled kernels; empty if none can be written."""
    chosen = getattr(config, "CACHE_DIR", "")
    if chosen:
        folder = Path(chosen)
        return str(folder) if _is_writable(folder) else _temporary()
    with suppress(OSError, RuntimeError):  # a user without a home
        folder = cache_folder() / "dperm" / source_digest(*KERNELS)[:16]
        if _is_writable(folder):
            return str(folder)
    return _temporary()


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _temporary() -> str:
    """A folder that is removed at the end of the process; empty if there is none."""
    try:
        folder = tempfile.mkdtemp(prefix="dperm-kernels-")
    except OSError:
        return ""
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# its name in older releases of Numba has an underscore
OLD_NAME = "_UserProvidedCacheLocator"
Locator: Any = getattr(
    caching, OLD_NAME.lstrip("_"), getattr(caching, OLD_NAME, None)
)


class KernelLocator(Locator):  # type: ignore[misc]
    """Places the files of a kernel in ``kernel_folder``."""

    def __init__(self, py_func: Any, py_file: str):
        super().__init__(py_func, py_file)
        below = self.get_suitable_cache_subpath(py_file)
        self._cache_path = os.path.join(kernel_folder(), below)  # noqa: PTH118

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """The locator of a function of a file."""
        return cls(py_func, py_file)


class KernelFiles(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """How a compiled kernel is written and read."""

    _locator_classes = [KernelLocator]


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """The cache of one kernel; a file that cannot be read or written counts as none."""

    _impl_class = KernelFiles

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled code of a signature, or None."""
        with suppress(OSError):
            return super().load_overload(sig, target_context)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled code of a signature."""
        with suppress(OSError):
            super().save_overload(sig, data)


def njit(*, cache: bool = False, **options: Any) -> Callable[[Any], Any]:
    """As ``numba.njit``, with a cache of ours."""
    decorate = numba.jit(**{**options, "nopython": True})

    def compiled(function: Any) -> Any:
        """The compiled function, with our cache where it may be written."""
        kernel = decorate(function)
        if cache and kernel_folder():
            kernel._cache = KernelCache(kernel.py_func)
        return kernel

    return compiled
