"""Where nodes find their columns: in memory, or in a file that only they open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from dperm.core.erm.columns import edges
from dperm.core.erm.problem import Problem
from dperm.solvers.distributed.node import Share


@dataclass(frozen=True)
class InMemory:
    """A share that is there already, for nodes of this process."""

    share: Share

    def load(self) -> Share:
        """The share itself."""
        return self.share


@dataclass(frozen=True)
class InFile:
    """A share in a ``.npz`` file that the node's worker can read."""

    path: str

    def load(self) -> Share:
        """Read the file."""
        with np.load(self.path) as kept:
            entries = (kept["data"], kept["indices"], kept["indptr"])
            shape = (len(kept["offset"]), len(kept["indptr"]) - 1)
            matrix = sparse.csc_array(entries, shape=shape)
            return Share(matrix, kept["offset"], int(kept["first"]))


def shares(problem: Problem, nodes: int) -> Iterator[Share]:
    """The problem's columns in blocks of equal size, as far as p allows."""
    matrix = sparse.csc_array(problem.A)
    matrix.sort_indices()
    starts = edges(problem.p, nodes)
    for low, high in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        yield Share(matrix[:, low:high].copy(), problem.offset, low)


def in_memory(problem: Problem, nodes: int) -> list[InMemory]:
    """The shares of all nodes, in this process."""
    return [InMemory(share) for share in shares(problem, nodes)]


def in_files(problem: Problem, nodes: int, folder: Path) -> list[InFile]:
    """Write each node's share to a file of its own below ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _written(share, folder / f"node-{k}.npz")
        for k, share in enumerate(shares(problem, nodes))
    ]


def _written(share: Share, path: Path) -> InFile:
    matrix = share.matrix
    np.savez(
        path, data=matrix.data, indices=matrix.indices, indptr=matrix.indptr,
        offset=share.offset, first=share.first,
    )  # fmt: skip
    return InFile(str(path.resolve()))
