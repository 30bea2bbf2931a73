"""Lanes spread over threads; kernels release Python's global interpreter lock."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

_SLICES_PER_WORKER = 4  # so that a slow slice does not hold up the others for long


def spread(function: Callable, *arrays: np.ndarray, workers: int) -> None:
    """Call ``function(*slices)`` on slices of the arrays' first axis.

    The arrays have equal length; the function writes its results into one of them.
    """
    count = len(arrays[0])
    parts = min(count, workers * _SLICES_PER_WORKER) if workers > 1 else 1
    if parts <= 1:
        function(*arrays)
        return
    edges = np.linspace(0, count, parts + 1).astype(int)
    with ThreadPoolExecutor(workers) as pool:  # joblib's threads poll every 10 ms
        done = [
            pool.submit(function, *(a[low:high] for a in arrays))
            for low, high in itertools.pairwise(edges)
        ]
        for future in done:
            future.result()
