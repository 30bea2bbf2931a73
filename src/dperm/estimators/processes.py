"""Processes that have a budget open, so that no child of theirs fits uncounted.

A process leaves a file of its name in the folder for temporary files while it has a
budget open. A fit looks for the files of the processes above its own, whether they
started it by fork, spawn, joblib or a shell. A file's name has the time at which its
process began, so that the file of a process that was killed means nothing.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

FIELDS = (
    1,
    19,
)  # of /proc/<process>/stat after the name: parent, time of start


def mark() -> None:
    """Say that this process has a budget open."""
    _file(os.getpid()).touch()


def unmark() -> None:
    """Say that this process has no budget open."""
    _file(os.getpid()).unlink(missing_ok=True)


def marked() -> bool:
    """Whether this process says that it has a budget open."""
    return _file(os.getpid()).exists()


def marked_parent() -> int:
    """The nearest process above this one that has a budget open; 0 if none has."""
    process = os.getppid()
    while process > 1:
        if _file(process).exists():
            return process
        process = _origin(process)[0]
    return 0


def origin() -> tuple[int, str]:
    """The number of this process, and a name that no later one has."""
    return os.getpid(), _file(os.getpid()).name


def _file(process: int) -> Path:
    owner = os.getuid() if hasattr(os, "getuid") else 0
    name = f"dperm-budget-{owner}-{process}-{_origin(process)[1]}"
    return Path(tempfile.gettempdir()) / name


def _origin(process: int) -> tuple[int, str]:
    """The parent of a process and its time of start; nothing without /proc."""
    try:
        line = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0, ""
    words = line.rpartition(")")[2].split()
    parent, start = (words[place] for place in FIELDS)
    return int(parent), start
