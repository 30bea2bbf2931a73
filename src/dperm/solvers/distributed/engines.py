"""Engines, which send a message to every node and return the answers in node order.

Nodes load their columns from memory, or from a file that only they open.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from dperm.core.erm.problem import Problem
from dperm.solvers.distributed.columns import edges
from dperm.solvers.distributed.node import Message, Node, Part, Public, Share


@dataclass(frozen=True)
class InMemory:
    """A share in memory, for nodes of this process."""

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
    """The problem's columns in blocks of nearly equal size."""
    matrix = sparse.csc_array(problem.A)
    matrix.sort_indices()
    starts = edges(problem.p, nodes)
    for low, high in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        yield Share(matrix[:, low:high].copy(), problem.offset, low)


def in_memory(problem: Problem, nodes: int) -> list[InMemory]:
    """The shares of all nodes, in this process."""
    return [InMemory(share) for share in shares(problem, nodes)]


def in_files(problem: Problem, nodes: int, folder: Path) -> list[InFile]:
    """Write each node's share to its own file below ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _written(share, folder / f"node-{k}.npz")
        for k, share in enumerate(shares(problem, nodes))
    ]


def _written(share: Share, path: Path) -> InFile:
    matrix = share.matrix
    entries = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    np.savez(path, **entries, offset=share.offset, first=share.first)
    return InFile(str(path.resolve()))


log = logging.getLogger(__name__)

LOOKS, PAUSE = 100, 0.1  # checks for the loss of a worker, and seconds between them


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

    def __init__(self, parts: Sequence[Part], public: Public, seeds: Sequence[int]):
        self.nodes = [
            Node(part, public, seed) for part, seed in zip(parts, seeds, strict=True)
        ]
        first = self.nodes[0].offset
        if not all(np.array_equal(node.offset, first) for node in self.nodes):
            raise ValueError("parts: expected the offset of one problem in all of them")

    def exchange(self, content: bytes) -> Iterator[bytes]:
        """Each node answers in turn, when its answer is requested."""
        slopes = self.nodes[0].slopes(Message.unpack(content).numbers)
        return (node.reply(slopes) for node in self.nodes)

    def close(self) -> None:
        """Do nothing: no resources are held."""


Start = Callable[[Problem, Public, Sequence[int]], Engine]


def local(problem: Problem, public: Public, seeds: Sequence[int]) -> Engine:
    """Nodes of this process, one per seed, each with a block of the columns."""
    return Local(in_memory(problem, len(seeds)), public, seeds)


class WorkerLostError(RuntimeError):
    """A node could not be restored after its worker was lost."""


class Dask:
    """Each node is an actor on its own worker, as far as there are workers.

    A node whose worker is lost is started again on a remaining one. It reads its part
    again and answers all earlier messages a second time. Its noise comes from its seed,
    so that its answers are the same bytes, which is checked. Nothing new is released.

    Parameters
    ----------
    parts : sequence of Part
        Shares that the workers load; with files no column passes through this process.
    client : distributed.Client
        Connected to a scheduler with at least one worker.
    patience : float
        Seconds to wait for an answer before the node counts as lost.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        public: Public,
        seeds: Sequence[int],
        client: Any,
        patience: float = 60.0,
    ):
        self.client, self.patience = client, patience
        self.arguments = [
            (part, public, seed) for part, seed in zip(parts, seeds, strict=True)
        ]
        self.sent: list[bytes] = []
        self.answers: list[list[bytes]] = [[] for _ in parts]
        self.places = [""] * len(parts)  # address of each node's worker
        self.nodes = [self._start(k) for k in range(len(parts))]

    def exchange(self, content: bytes) -> list[bytes]:
        """Send a message to all nodes at once; a lost node is restored.

        Raises WorkerLostError if that fails.
        """
        futures = [self._ask(k, content) for k in range(len(self.nodes))]
        replies = [self._wait(future) for future in futures]
        for k, answer in enumerate(replies):
            if isinstance(answer, Exception):
                answer = self._revive(k, content, answer)
            self.answers[k].append(answer)
        self.sent.append(content)
        return [answers[-1] for answers in self.answers]

    def close(self) -> None:
        """Release the actors."""
        self.nodes.clear()

    def workers(self) -> list[str]:
        """Addresses of the workers the scheduler has."""
        return sorted(self.client.scheduler_info(n_workers=-1)["workers"])

    def _start(self, k: int) -> Any:
        """Node k as an actor, on the worker whose turn it is."""
        workers = self.workers()
        if not workers:
            raise WorkerLostError(f"node {k}: no worker is left to start it on")
        self.places[k] = workers[k % len(workers)]
        future = self.client.submit(
            Node, *self.arguments[k], actor=True, workers=self.places[k], pure=False
        )
        try:
            return future.result(timeout=self.patience)
        except Exception as error:  # a dying worker may raise anything
            raise WorkerLostError(
                f"node {k} cannot be started: {type(error).__name__}: {error}"
            ) from error

    def _ask(self, k: int, content: bytes) -> Any:
        """A future of the answer, or the error that prevents it."""
        try:
            return self.nodes[k].answer(content)
        except Exception as error:  # the connection is gone
            return error

    def _wait(self, future: Any) -> bytes | Exception:
        """The answer, or the error in its place."""
        if isinstance(future, Exception):
            return future
        try:
            return future.result(timeout=self.patience)
        except Exception as error:  # closed connection, time-out, error of the node
            return error

    def _revive(self, k: int, content: bytes, error: Exception) -> bytes:
        """Start node k again and let it answer all messages up to this one."""
        self._see_the_loss(k, error)
        log.warning("node %d was lost with its worker; it is started again", k)
        self.nodes[k] = self._start(k)
        for sent, before in zip(self.sent, self.answers[k], strict=True):
            if self._wait(self._ask(k, sent)) != before:
                raise WorkerLostError(
                    f"node {k} was lost, and its successor does not answer as it did"
                )
        answer = self._wait(self._ask(k, content))
        if isinstance(answer, Exception):
            raise WorkerLostError(f"node {k} was lost, and its successor too: {answer}")
        return answer

    def _see_the_loss(self, k: int, error: Exception) -> None:
        """Wait until the scheduler has dropped the worker; fail if it does not."""
        for _ in range(LOOKS):
            if self.places[k] not in self.workers():
                return
            time.sleep(PAUSE)
        raise WorkerLostError(
            f"node {k} does not answer, though its worker lives: "
            f"{type(error).__name__}: {error}"
        ) from error


class Cluster(Dask):
    """The Dask engine on its own cluster, or on the one Dask is configured for.

    ``DASK_SCHEDULER_ADDRESS`` names a running scheduler; without it one process per
    node is started here. Each node's columns are written to a separate file below
    Dask's ``temporary-directory``, which the workers must be able to read.
    """

    def __init__(self, problem: Problem, public: Public, seeds: Sequence[int]):
        import dask

        top = dask.config.get("temporary-directory", None)
        self.folder = tempfile.TemporaryDirectory(prefix="dperm-parts-", dir=top)
        self.cluster, client = _connected(len(seeds))
        try:
            parts = in_files(problem, len(seeds), Path(self.folder.name))
            super().__init__(parts, public, seeds, client)
        except BaseException:
            self._shut(client)
            raise

    def close(self) -> None:
        """Release the actors, the cluster if it was started here, then the files."""
        super().close()
        self._shut(self.client)

    def _shut(self, client: Any) -> None:
        client.close()
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
        n_workers=nodes, threads_per_worker=1, processes=True, dashboard_address=None
    )
    return cluster, Client(cluster)


ENGINES: dict[str, Start] = {"local": local, "dask": Cluster}
