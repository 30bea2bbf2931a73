"""Arrays on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dperm.data.arrays import array_parts


def save_arrays(folder: Path, X: Any, y: np.ndarray) -> None:
    """Write X (n, p), dense in its own order or as CSC parts, and y (n,) as .npy."""
    for name, part in (*array_parts(X).items(), ("y", y)):
        np.save(folder / f"{name}.npy", part)


def load_arrays(folder: Path) -> tuple[Any, np.ndarray]:
    """Read what ``save_arrays`` wrote.

    Returns
    -------
    X : ndarray or scipy CSC array, shape (n, p)
    y : ndarray, shape (n,)

    Raises
    ------
    OSError, ValueError, EOFError
        If a file is missing or damaged.
    """
    y = _load(folder, "y")
    if not (folder / "X_shape.npy").exists():
        return _load(folder, "X"), y
    parts = [_load(folder, f"X_{name}") for name in ("data", "indices", "indptr")]
    shape = tuple(int(size) for size in _load(folder, "X_shape"))
    return sparse.csc_array(tuple(parts), shape=shape), y


def _load(folder: Path, name: str) -> np.ndarray:
    return np.load(folder / f"{name}.npy", mmap_mode=None, allow_pickle=False)
