"""Engines: they carry a message to every node and the answers back, in node order."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from dperm.core.erm.problem import Problem
from dperm.solvers.distributed.messages import Message
from dperm.solvers.distributed.node import Node, Part, Public
from dperm.solvers.distributed.parts import in_memory

log = logging.getLogger(__name__)

LOOKS, PAUSE = 100, 0.1  # how often, and every how many seconds, a loss is looked for


class Engine(Protocol):
    """What the server needs of an engine."""

    def exchange(self, content: bytes) -> Iterable[bytes]:
        """Send a message to every node; their answers in node order."""
        ...

    def close(self) -> None:
        """Let go of the nodes."""
        ...


class Local:
    """All nodes in this process, where one finds what the message says for them all.

    Raises
    ------
    ValueError
        If the offsets of their parts differ: they are not of one problem.
    """

    def __init__(self, parts: Sequence[Part], public: Public, seeds: Sequence[int]):
        self.nodes = [
            Node(part, public, seed) for part, seed in zip(parts, seeds, strict=True)
        ]
        first = self.nodes[0].offset
        if not all(np.array_equal(node.offset, first) for node in self.nodes):
            raise ValueError("parts: expected the offset of one problem in all of them")

    def exchange(self, content: bytes) -> Iterator[bytes]:
        """Each node answers in turn, when its answer is asked for."""
        slopes = self.nodes[0].slopes(Message.unpack(content).numbers)
        return (node.reply(slopes) for node in self.nodes)

    def close(self) -> None:
        """Nothing to let go of."""


Start = Callable[[Problem, Public, Sequence[int]], Engine]


def local(problem: Problem, public: Public, seeds: Sequence[int]) -> Engine:
    """Nodes of this process, one a seed, that hold the problem's columns in blocks."""
    return Local(in_memory(problem, len(seeds)), public, seeds)


class WorkerLostError(RuntimeError):
    """A node could not be brought back after its worker was lost."""


class Dask:
    """Each node is an actor on a worker of its own, as far as there are workers.

    A node whose worker is lost is started again on one that is left: it reads its part
    again and answers all earlier messages a second time. Its noise comes from its seed,
    so its answers are the same bytes, which is checked; nothing new is released.

    Parameters
    ----------
    parts : sequence of Part
        What the workers load; files, so that no column passes through this process.
    public : Public
    seeds : sequence of int
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
        self.told: list[bytes] = []
        self.answers: list[list[bytes]] = [[] for _ in parts]
        self.places = [""] * len(parts)  # address of each node's worker
        self.nodes = [self._start(k) for k in range(len(parts))]

    def exchange(self, content: bytes) -> list[bytes]:
        """All nodes at work at once; a lost one is brought back.

        Raises
        ------
        WorkerLostError
            If that does not succeed.
        """
        asked = [self._ask(k, content) for k in range(len(self.nodes))]
        found = [self._wait(future) for future in asked]
        for k, answer in enumerate(found):
            if isinstance(answer, Exception):
                answer = self._revive(k, content, answer)
            self.answers[k].append(answer)
        self.told.append(content)
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
        except Exception as error:  # whatever a dying worker raises
            raise WorkerLostError(
                f"node {k} cannot be started: {type(error).__name__}: {error}"
            ) from error

    def _ask(self, k: int, content: bytes) -> Any:
        """A future of the answer, or the error that there is none."""
        try:
            return self.nodes[k].answer(content)
        except Exception as error:  # the connection is gone
            return error

    def _wait(self, future: Any) -> bytes | Exception:
        """The answer, or the error that came instead."""
        if isinstance(future, Exception):
            return future
        try:
            return future.result(timeout=self.patience)
        except Exception as error:  # closed connection, time-out, error of the node
            return error

    def _revive(self, k: int, content: bytes, error: Exception) -> bytes:
        """Start node k again and let it answer everything up to this message."""
        self._see_the_loss(k, error)
        log.warning("node %d was lost with its worker; it is started again", k)
        self.nodes[k] = self._start(k)
        for told, before in zip(self.told, self.answers[k], strict=True):
            if self._wait(self._ask(k, told)) != before:
                raise WorkerLostError(
                    f"node {k} was lost, and its successor does not answer as it did"
                )
        answer = self._wait(self._ask(k, content))
        if isinstance(answer, Exception):
            raise WorkerLostError(f"node {k} was lost, and its successor too: {answer}")
        return answer

    def _see_the_loss(self, k: int, error: Exception) -> None:
        """Wait until the scheduler has dropped the worker; an error if it does not."""
        for _ in range(LOOKS):
            if self.places[k] not in self.workers():
                return
            time.sleep(PAUSE)
        raise WorkerLostError(
            f"node {k} does not answer, though its worker lives: "
            f"{type(error).__name__}: {error}"
        ) from error
