"""What travels between server and nodes, as bytes: their length is the communication.

Down: the aggregate q (m,) and the signed indices that made the latest step, from which
whoever wants x can follow it. Up: a node's signed index, and its sketched feature if
the server does not have it yet. Numbers are little-endian, 8 bytes each.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

_HEAD = struct.Struct("<II")  # how many indices, how many numbers
_INDEX, _NUMBER = np.dtype("<i8"), np.dtype("<f8")


@dataclass(frozen=True)
class Message:
    """Signed indices and numbers.

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

        Raises
        ------
        ValueError
            If the bytes are cut short or too many.
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
