"""A user node of Algorithm 2: it keeps its columns and sends only noisy numbers."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dperm.privacy.noise import gaussian, signed_noisy_max, streams
from dperm.problems.losses import Loss
from dperm.solvers.distributed.bounds import clip_entries
from dperm.solvers.distributed.columns import Columns
from dperm.solvers.distributed.sketch import Sketch

_HEAD = struct.Struct("<II")  # number of indices, number of numbers
_INDEX = np.dtype("<i8")
_NUMBER = np.dtype("<f8")


@dataclass(frozen=True)
class Message:
    """A message between server and nodes; its length in bytes is the cost.

    Down: the aggregate q (m,) and the signed indices of the latest step, from which a
    node can compute x. Up: a node's signed index, and its sketched feature if the
    server does not have it yet. Numbers are little-endian, 8 bytes each.
    A signed index is +-(j + 1) for feature j, counted over all nodes from 0; its sign
    is that of the noisy gradient.
    """

    indices: np.ndarray
    numbers: np.ndarray

    def pack(self) -> bytes:
        """The message as bytes."""
        indices = np.ascontiguousarray(self.indices, dtype=_INDEX)
        numbers = np.ascontiguousarray(self.numbers, dtype=_NUMBER)
        head = _HEAD.pack(indices.size, numbers.size)
        return head + indices.tobytes() + numbers.tobytes()

    @classmethod
    def unpack(cls, content: bytes) -> Message:
        """The message that :meth:`pack` wrote.

        Raises ValueError if the bytes are cut short or too many.
        """
        if len(content) < _HEAD.size:
            raise ValueError(f"a message has at least {_HEAD.size} bytes")
        size, numbers = _HEAD.unpack_from(content)
        if len(content) != _HEAD.size + 8 * (size + numbers):
            raise ValueError(
                f"message of {len(content)} bytes announces {size} indices and "
                f"{numbers} numbers"
            )
        start = _HEAD.size + 8 * size
        return cls(
            np.frombuffer(content, _INDEX, size, _HEAD.size),
            np.frombuffer(content, _NUMBER, numbers, start),
        )


@dataclass(frozen=True)
class Public:
    """What every node knows before the first iteration; nothing here is private."""

    loss: Loss
    n: int  #: number of records
    #: sketch_length, sketch_seed: m and the seed of J
    sketch_length: int
    sketch_seed: int
    score_factor: float  #: factor that turns a gradient into a score
    #: index_scale, sketch_scale: scales of the Laplace noise of a score and of the
    #: Gaussian noise of a sketch
    index_scale: float
    sketch_scale: float
    #: entry_bound, label_bound: entries and labels are clipped to them
    entry_bound: float
    label_bound: float
    #: bound on |A_i x| over the constraint set; estimates are clipped to it
    prediction_bound: float


@dataclass(frozen=True)
class Share:
    """A node's part of a problem: columns (n, p_k), offset (n,), index of the first."""

    matrix: Any
    offset: np.ndarray
    first: int


@cache
def shared_sketch(n: int, m: int, seed: int) -> Sketch:
    """The sketch, built once per process."""
    return Sketch(n, m, seed)


class Node:
    """One user of Algorithm 2, lines 4 to 9, with its share of the data.

    The seed is that of its noise, which no other node has.
    """

    def __init__(self, share: Share, public: Public, seed: int):
        self.public = public
        self.first = share.first
        self.columns = Columns(clip_entries(share.matrix, public.entry_bound))
        bound = public.label_bound
        self.offset = np.clip(share.offset, -bound, bound)
        self.streams = streams(seed)
        self.sent: set[int] = set()

    def answer(self, content: bytes) -> bytes:
        """The answer to a server message: one iteration of this node."""
        return self.reply(self.slopes(Message.unpack(content).numbers))

    def reply(self, slopes: np.ndarray) -> bytes:
        """The answer, for slopes computed from the server's message."""
        scores = self.public.score_factor * self.gradient(slopes)
        # lines 7 and 8: the largest of the noisy scores of all +j and -j
        noise = self.streams.noise
        j, sign = signed_noisy_max(scores, self.public.index_scale, noise)
        feature = np.empty(0)
        if j not in self.sent:
            self.sent.add(j)
            feature = self._sketched(j)
        return Message(np.array([sign * (self.first + j + 1)]), feature).pack()

    def slopes(self, q: np.ndarray) -> np.ndarray:
        """Table V: phi'(n J^T q + offset) for every loss, estimates clipped; (n,)."""
        public = self.public
        sketch = shared_sketch(
            public.n, public.sketch_length, public.sketch_seed
        )
        estimates = public.n * sketch.predictions(q)
        np.clip(
            estimates,
            -public.prediction_bound,
            public.prediction_bound,
            out=estimates,
        )
        return public.loss.derivatives(estimates + self.offset)

    def gradient(self, slopes: np.ndarray) -> np.ndarray:
        """Line 6: the partial gradient A_k^T phi' / n, estimated from q; (p_k,)."""
        return self.columns.products(slopes) / self.public.n

    def sketched_without_noise(self, j: int) -> np.ndarray:
        """J a_j; never leaves the node. Shape (m,)."""
        public = self.public
        sketch = shared_sketch(
            public.n, public.sketch_length, public.sketch_seed
        )
        return sketch.feature(*self.columns.entries(j))

    def _sketched(self, j: int) -> np.ndarray:
        """Equation 16: J a_j + noise; shape (m,)."""
        noise = gaussian(self.streams.sampling, self.public.sketch_length)
        return (
            self.sketched_without_noise(j) + self.public.sketch_scale * noise
        )
