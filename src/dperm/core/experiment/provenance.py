"""Where a result came from: commit, versions, machine."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from dperm import __version__


@functools.cache
def commit() -> str:
    """The commit of the source tree, ``+`` if it was changed since; or the version."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return f"v{__version__}"

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "conf")
    return (git("rev-parse", "--short=12", "HEAD") or "none") + ("+" if changed else "")


@functools.cache
def versions() -> str:
    """Versions that matter for the numbers."""
    packages = ("numpy", "scipy", "numba", "dp-accounting")
    found = [f"python {platform.python_version()}", f"dperm {__version__}"]
    return ", ".join(found + [f"{name} {version(name)}" for name in packages])


def machine() -> str:
    """Class of the machine, for timings; nothing that identifies it."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
