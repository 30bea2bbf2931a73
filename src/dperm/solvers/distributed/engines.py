"""Engines, which send a message to every node and return the answers in node order.

Nodes have their columns in memory, or read them from a file that only they open.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from dperm.problems.problem import Problem
from dperm.solvers.distributed.columns import edges
from dperm.solvers.distributed.node import Message, Node, Public, Share


def shares(problem: Problem, nodes: int) -> Iterator[Share]:
    """The problem's columns in blocks of nearly equal size."""
    matrix = sparse.csc_array(problem.A)
    matrix.sort_indices()
    starts = edges(problem.p, nodes)
    for low, high in zip(
        starts[:-1].tolist(), starts[1:].tolist(), strict=True
    ):
        yield Share(matrix[:, low:high].copy(), problem.offset, low)


def written(share: Share, path: Path) -> Path:
    """Write a node's share to a file that its worker can read."""
    matrix = share.matrix
    arrays = {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
    }
    np.savez(path, **arrays, offset=share.offset, first=share.first)
    return path.resolve()


class FileNode(Node):
    """A node that reads its share from a file; nobody else opens it."""

    def __init__(self, path: Path, public: Public, seed: int):
        with np.load(path) as stored:
            arrays = (stored["data"], stored["indices"], stored["indptr"])
            shape = (len(stored["offset"]), len(stored["indptr"]) - 1)
            matrix = sparse.csc_array(arrays, shape=shape)
            share = Share(matrix, stored["offset"], int(stored["first"]))
        super().__init__(share, public, seed)


class Engine(Protocol):
    """Interface of an engine that the server uses."""

    def exchange(self, content: bytes) -> Iterable[bytes]:
        """Send a message to every node and return the answers in node order."""
        ...

    def close(self) -> None:
        """Release the nodes."""
        ...


class Local:
    """All nodes in this process; one node computes a message's slopes for all.

    Raises ValueError if the offsets differ: the parts are not those of one problem.
    """

    def __init__(
        self, shares: Iterable[Share], public: Public, seeds: Sequence[int]
    ):
        self.nodes = [
            Node(share, public, seed)
            for share, seed in zip(shares, seeds, strict=True)
        ]
        offset = self.nodes[0].offset
        if not all(np.array_equal(node.offset, offset) for node in self.nodes):
            raise ValueError(
                "parts: expected the offset of one problem in all of them"
            )

    def exchange(self, content: bytes) -> Iterator[bytes]:
        """Each node answers in turn, when its answer is requested."""
        slopes = self.nodes[0].slopes(Message.unpack(content).numbers)
        return (node.reply(slopes) for node in self.nodes)

    def close(self) -> None:
        """Do nothing: no resources are held."""


Start = Callable[[Problem, Public, Sequence[int]], Engine]


def local(problem: Problem, public: Public, seeds: Sequence[int]) -> Engine:
    """Nodes of this process, one per seed, each with a block of the columns."""
    return Local(shares(problem, len(seeds)), public, seeds)


class WorkerLostError(RuntimeError):
    """A node does not answer: the run ends, and its unit is computed again."""


class Dask:
    """Each node is an actor on its own Dask worker, as far as there are workers.

    ``DASK_SCHEDULER_ADDRESS`` names a running scheduler; without it one process per
    node is started here. Each node's columns are written to a file of their own below
    Dask's ``temporary-directory``, which the workers must be able to read, so that no
    column passes through the scheduler.

    Raises WorkerLostError if a node cannot be started.
    """

    patience = 60.0  #: seconds to wait for an answer

    def __init__(self, problem: Problem, public: Public, seeds: Sequence[int]):
        import dask

        top = dask.config.get("temporary-directory", None)
        self.folder = tempfile.TemporaryDirectory(
            prefix="dperm-parts-", dir=top
        )
        self.cluster, self.client = _connected(len(seeds))
        workers = sorted(self.client.scheduler_info(n_workers=-1)["workers"])
        futures = []
        for k, share in enumerate(shares(problem, len(seeds))):
            path = written(share, Path(self.folder.name) / f"node-{k}.npz")
            arguments = (FileNode, path, public, seeds[k])
            place = workers[k % len(workers)]
            future = self.client.submit(
                *arguments, actor=True, workers=place, pure=False
            )
            futures.append(future)
        self.nodes = self._found(futures)

    def exchange(self, content: bytes) -> list[bytes]:
        """Send a message to all nodes at once.

        Raises WorkerLostError if one does not answer.
        """
        return self._found([node.answer(content) for node in self.nodes])

    def _found(self, futures: Sequence[Any]) -> list[Any]:
        try:
            return [future.result(timeout=self.patience) for future in futures]
        except Exception as error:  # a dying worker may raise anything
            self.close()
            raise WorkerLostError(
                f"a node was lost: {type(error).__name__}: {error}"
            ) from error

    def close(self) -> None:
        """Release the nodes, the cluster if it was started here, then the files."""
        self.client.close()
        if self.cluster is not None:
            self.cluster.close()
        self.folder.cleanup()


def _connected(nodes: int) -> tuple[Any, Any]:
    """A new cluster (None if a scheduler is configured) and a client."""
    import dask
    from distributed import Client, LocalCluster

    address = dask.config.get("scheduler-address", None)
    if address:
        return None, Client(address)
    cluster = LocalCluster(
        n_workers=nodes,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
    )
    return cluster, Client(cluster)


ENGINES: dict[str, Start] = {"local": local, "dask": Dask}
