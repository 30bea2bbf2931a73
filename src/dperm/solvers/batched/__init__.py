"""Solvers of a composite problem: many settings advance in a batch.

A solver is a module with

- ``Options``, a dataclass of the keys under ``options`` in its YAML,
- ``steps(problem, passes, options) -> int``, the steps of a number of passes, at least
  1,
- ``ledger(problem, count, noise_multiplier, options, calibration) -> Ledger``, the
  releases of ``count`` steps, listed before anything runs,
- ``bytes_per_setting(problem) -> int``, the memory of one setting, by which blocks are
  sized,
- ``Run(problem, settings, streams, options, workers, total)``, a batch before its first
  step, with the methods of :class:`Block`.

The solvers of this package derive their Run from :class:`Run`, which lays settings out
in tiles, spreads them over threads, draws ahead, and drops settings. They state the
constants of a setting, what it holds beside its weights, what steps draw, and a
compiled kernel.

Optional in a module: ``SPARSE = True`` where A may be a sparse matrix, and
``refuses(options, smooth) -> str``, the obstacle, if any, on a problem whose penalty is
``smooth`` (a ridge at most) or not.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dperm.numerics.parallel import spread
from dperm.privacy.accountants import PUBLISHED
from dperm.privacy.noise import Streams, gaussian
from dperm.problems.problem import Problem
from dperm.solvers.batched.columns import compiled, matrix

_VECTOR = 8  # settings one instruction advances


@dataclass(frozen=True)
class BatchedSettings:
    """Hyper-parameter settings that run together."""

    #: shape (L,); step size as a multiple of 1/M_j (coordinate steps) or 1/beta (record
    #: steps)
    step: np.ndarray
    clip: (
        np.ndarray
    )  #: shape (L,); clipping threshold C; infinity only without noise
    #: noise scale over replace-one sensitivity; 0 for the non-private method
    noise_multiplier: float
    #: accountant that set the noise, such as ``published`` or ``tight``
    calibration: str = PUBLISHED

    def take(self, index: Any) -> BatchedSettings:
        """The settings selected by an index array, mask or slice."""
        return replace(self, step=self.step[index], clip=self.clip[index])

    def noise_scale(self, sensitivity: np.ndarray) -> np.ndarray:
        """Noise scale for a sensitivity; without noise 0, even for an infinite one."""
        if self.noise_multiplier == 0:
            return np.zeros_like(sensitivity)
        return self.noise_multiplier * sensitivity


def share(M: np.ndarray) -> np.ndarray:
    """C_j / C = sqrt(M_j / sum M), shape (p,) (Mangold et al. 2022, Section 5.1)."""
    return np.sqrt(M / M.sum())


def sum_sensitivity(clip: np.ndarray) -> np.ndarray:
    """Replace-one sensitivity 2 C of a sum of vectors of norm at most C."""
    return 2.0 * clip


def mean_sensitivity(clip: np.ndarray, n: int) -> np.ndarray:
    """Replace-one sensitivity 2 C / n of a mean of n vectors of norm at most C."""
    return sum_sensitivity(clip) / n


class Block:
    """A batch under way: what the engine asks of it, and a base for runs in numpy."""

    names: tuple[str, ...] = (
        "weights",
    )  #: the arrays whose rows are settings
    weights: np.ndarray  #: shape (L, p)

    @property
    def released(self) -> np.ndarray:
        """Everything released of each setting in the last step, shape (L, k).

        It holds all values published with noise, and what follows from them: often the
        weights alone. A solver that selects appends the one-hot vector of its choice.
        """
        return self.weights

    def advance(self, count: int) -> None:
        """Take ``count`` more steps in every setting; splitting them changes no bit."""
        raise NotImplementedError

    def keep(self, mask: np.ndarray) -> None:
        """Drop the settings outside the mask."""
        for name in self.names:
            setattr(self, name, getattr(self, name)[mask])


class Run(Block):
    """Settings in tiles, advanced by a compiled kernel.

    Settings lie side by side in tiles (tile, row, setting), padded with idle settings,
    so that data and noise are read once for a tile. ``constants`` holds the rows of
    :meth:`setting_constants`; in ``tiles`` the first p rows are weights, and the others
    those of :meth:`start`. A kernel changes ``tiles`` in place; it is called with

        A, what ``draw`` returned, (n, p), (l1, l2, lower, upper), constants, tiles.

    Parameters
    ----------
    problem : Problem
    settings : Settings
    streams : Streams
    options : the solver's
    workers : int
        Threads; the bits do not depend on them.
    total : int
        Length of the whole run in steps.
    """

    kernel: Any  #: a compiled function, see above
    width = 1  #: settings of a tile, at most
    by_rows = False  #: whether the kernel reads A by rows
    #: random numbers that a step draws; 0: all steps are drawn at once
    step_draws = 0
    draws = 1 << 19  #: numbers that are drawn at a time

    def __init__(
        self,
        problem: Problem,
        settings: BatchedSettings,
        streams: Streams,
        options: Any,
        workers: int = 1,
        total: int = 0,
    ):
        self.problem = problem
        self.options = options
        self.workers = workers
        self.streams = streams
        self.total = total
        self.done = self.drawn = (
            0  # steps taken, and steps whose noise is drawn
        )
        self.size = len(settings.step)
        self.set_up(settings)
        rows = np.stack(self.setting_constants(settings), axis=1)
        self.constants = _tiled(rows, self.width)
        start = np.concatenate((np.zeros(problem.p), self.start()))
        count, _, width = self.constants.shape
        self.tiles = np.empty((count, len(start), width))
        self.tiles[:] = start[:, None]

    # --- what a solver states ---------------------------------------------------------

    def set_up(self, settings: BatchedSettings) -> None:
        """Settle what depends on the problem and the options, such as the width."""

    def setting_constants(
        self, settings: BatchedSettings
    ) -> tuple[np.ndarray, ...]:
        """Constants of the settings, (L,) each; a kernel finds them by their place."""
        raise NotImplementedError

    def start(self) -> np.ndarray:
        """What a setting holds beside its weights, before its first step."""
        return np.empty(0)

    def draw(self, count: int) -> tuple[Any, ...]:
        """What the kernel is told of the next ``count`` steps, noise included.

        It may run in another thread, while the kernel takes the steps before.
        """
        raise NotImplementedError

    def until_event(self) -> int:
        """Steps up to the next event that lies between two kernels' calls; 0: none."""
        return 0

    def at_event(self) -> None:
        """That event; it changes the tiles in place."""

    # --- what the engine asks ---------------------------------------------------------

    @property
    def weights(self) -> np.ndarray:  # type: ignore[override]
        """Weights of the settings, shape (L, p)."""
        return self.rows(slice(self.problem.p))

    def rows(self, chosen: slice) -> np.ndarray:
        """Some rows of the tiles, setting by setting; shape (L, k)."""
        return _untiled(self.tiles[:, chosen], self.size)

    def keep(self, mask: np.ndarray) -> None:
        """Drop the settings outside the mask."""
        stacks = (self.constants, self.tiles)
        survivors = [_untiled(tiles, self.size)[mask] for tiles in stacks]
        self.size = int(mask.sum())
        self.constants, self.tiles = (
            _tiled(stack, self.width) for stack in survivors
        )

    def advance(self, count: int) -> None:
        """Take ``count`` more steps in every setting; splitting them changes no bit."""
        end = self.done + count
        while self.done < end:
            event = self.until_event()
            size = min(end - self.done, event or count)
            self.take(size)
            self.done += size
            if size == event:
                self.at_event()

    def take(self, count: int) -> None:
        """Take steps without an event, drawing for the next ones while settings run."""
        block_size = (
            max(1, self.draws // self.step_draws) if self.step_draws else count
        )
        sizes = [
            min(block_size, count - low) for low in range(0, count, block_size)
        ]
        if len(sizes) == 1 or self.workers == 1:
            for size in sizes:
                self.call(self.kernel, self._drawn(size))
            return
        with ThreadPoolExecutor(1) as ahead:
            following = ahead.submit(self._drawn, sizes[0])
            for size in [*sizes[1:], 0]:
                drawn = following.result()
                if size:
                    following = ahead.submit(self._drawn, size)
                self.call(self.kernel, drawn)

    def _drawn(self, count: int) -> tuple[Any, ...]:
        drawn = self.draw(count)
        self.drawn += count
        return drawn

    def call(self, kernel: Any, drawn: tuple[Any, ...]) -> None:
        """Call a kernel on all tiles, spread over the threads."""
        problem = self.problem
        penalty = problem.penalty
        psi = (penalty.l1, penalty.l2, penalty.lower, penalty.upper)
        arguments = (
            matrix(problem, self.by_rows),
            *drawn,
            (problem.n, problem.p),
            psi,
        )
        ready = compiled(problem, kernel, self.tiles.shape[2])

        def run(*tiles: np.ndarray) -> None:
            """Call the kernel on some tiles."""
            ready(*arguments, *tiles)

        spread(run, self.constants, self.tiles, workers=self.workers)

    def noise(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """Standard normal noise, which all settings share."""
        return gaussian(self.streams.noise, shape)


def _tiled(values: np.ndarray, widest: int) -> np.ndarray:
    """Lay values (L, m) out as (tile, m, setting), padded with idle settings.

    Tiles are equally wide, ``widest`` settings at most, and whole vectors of settings;
    a few settings in one tile are not padded.
    """
    size = len(values)
    vector = _VECTOR if widest > 1 and size > _VECTOR // 2 else 1
    count = -(-size // widest)
    width = -(-size // max(count, 1) // vector) * vector
    padded = np.pad(values, ((0, count * width - size), (0, 0)))
    padded = padded.reshape(count, width, values.shape[1])
    return np.ascontiguousarray(padded.transpose(0, 2, 1))


def _untiled(tiles: np.ndarray, size: int) -> np.ndarray:
    """The values (L, m) that ``_tiled`` laid out, copied."""
    return tiles.transpose(0, 2, 1).copy().reshape(-1, tiles.shape[1])[:size]
