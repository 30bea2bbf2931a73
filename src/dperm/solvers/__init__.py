"""Solvers, one file per algorithm: options, number of steps, ledger, kernel.

A solver module offers

- ``Options``: a dataclass of the keys its YAML may hold under ``options``,
- ``steps(problem, passes, options)``: how many steps that many passes are,
- ``ledger(problem, count, noise_multiplier, options, calibration)``: its privacy, as
  data,
- ``Run(problem, lanes, streams, options, workers)``: a block of lanes under way, with
  ``advance(count)``, ``weights`` (L, p) and ``keep(mask)``,
- ``lane_bytes(problem)``: memory a lane needs, from which blocks are sized, and, where
  another size than the engine's is right, ``block_bytes(problem)``,
- ``CENTRED = True`` where it runs on a ``problems.centred`` matrix.

Nothing here knows of files, grids or seeds.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

OFFERED = ("Options", "steps", "ledger", "Run", "lane_bytes")
SPARSE_BLOCK = 1 << 30  # bytes of a block's lanes where A is sparse: noise is shared


@dataclass(frozen=True)
class Lanes:
    """Hyper-parameter settings that run side by side.

    Attributes
    ----------
    step : ndarray, shape (L,)
        Step size as a multiple of 1/M_j (coordinate steps) or 1/beta (record steps).
    clip : ndarray, shape (L,)
        Clipping threshold C; infinity only without noise.
    noise_multiplier : float
        Noise scale over replace-one sensitivity; 0 for the non-private method.
    calibration : str
        Which formulas the noise comes from, ``paper`` or ``strict``.
    """

    step: np.ndarray
    clip: np.ndarray
    noise_multiplier: float
    calibration: str = "paper"

    def take(self, index: Any) -> Lanes:
        """The lanes of an index array, mask or slice."""
        return Lanes(
            self.step[index], self.clip[index], self.noise_multiplier, self.calibration
        )

    def noise_scale(self, sensitivity: np.ndarray) -> np.ndarray:
        """Noise scale for a sensitivity; 0 where neither noise nor clip is."""
        if self.noise_multiplier == 0:
            return np.zeros_like(sensitivity)
        return self.noise_multiplier * sensitivity


FAMILIES = ("lanes", "frank_wolfe", "streams")


def places() -> dict[str, str]:
    """The algorithms of this package and the modules they are."""
    return {
        path.stem: f"{__name__}.{family}.{path.stem}"
        for family in FAMILIES
        for path in sorted((Path(__file__).parent / family).glob("*.py"))
        if "class Options" in path.read_text()
    }


def names() -> list[str]:
    """The algorithms of this package."""
    return sorted(places())


def load(algorithm: str) -> ModuleType:
    """The module of an algorithm: of this package, or another that can be imported.

    Raises
    ------
    ValueError
        If there is none, with the nearest known algorithm, or it is no solver.
    """
    own = algorithm not in names()
    path = places().get(algorithm, algorithm)
    parts = path.split(".")
    if parts[0] in sys.stdlib_module_names or parts[-1] == "__main__":
        raise ValueError(f"algorithm {algorithm!r}: expected a module of solvers")
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name is None or not path.startswith(error.name):
            raise
        near = difflib.get_close_matches(algorithm, names(), n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ValueError(
            f"algorithm {algorithm!r}: expected one of {', '.join(names())}, or a "
            f"module beside conf/ or installed{hint}"
        ) from None
    missing = [name for name in OFFERED if not hasattr(module, name)]
    if own and missing:
        raise ValueError(f"algorithm {algorithm!r}: has no {', '.join(missing)}")
    return module


def make_options(module: ModuleType, given: dict[str, Any]) -> Any:
    """The module's Options with the given values.

    Raises
    ------
    ValueError
        For an unknown key (with the nearest known one) or a refused value.
    """
    known = [field.name for field in fields(module.Options)]
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise ValueError(
                f"options.{key}: unknown; expected one of {', '.join(known)}{hint}"
            )
    return module.Options(**given)
