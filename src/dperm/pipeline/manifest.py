"""The manifest of a run, ``results/manifest.json``: what ran, when, and what it left.

Its keys are commit, date, machine, cores, versions; and ``files``, the SHA-256 of every
file of the scale that Git holds. Times are in Snakemake's benchmark files.
"""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path

from dperm.core.experiment import files as store
from dperm.core.experiment.locate import available

TOPS = ("results", "figures")
NAME = "manifest.json"
HELD = (".csv", ".html", ".md", ".png", ".txt")  # what Git holds; rows it does not


def write(scale: str, cores: int, began: float) -> Path:
    """Write the manifest of a run that began at a time in seconds.

    A file that is older than the run keeps the digest of the run that made it, so that
    a later run does not vouch for what was edited in between; then that run's commit
    stands before this one's.

    Parameters
    ----------
    scale : str
        The scale's folder, below results/ and figures/.
    """
    path = Path("results", scale, NAME)
    known = store.known_json(path) or {}
    before, now = known.get("files", {}), held(scale)
    kept = {name: before[name] for name, file in now.items()
            if name in before and file.stat().st_mtime < began}  # fmt: skip
    commits = [*(known["commit"].split(", ") if kept else ()), store.commit()]
    content = {
        "commit": ", ".join(dict.fromkeys(commits)),
        "versions": store.versions(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "cores": cores,
        "files": {
            name: kept.get(name) or store.file_digest(file)
            for name, file in now.items()
        },
    }
    store.write_json(path, content)
    return path


def held(scale: str) -> dict[str, Path]:
    """Files of a scale that Git holds, by their names."""
    folders = {*available("paper"), "audit", "report"}
    tops = [Path(top, scale) for top in TOPS]
    return {
        path.as_posix(): path
        for top in tops
        for path in sorted(top.rglob("[!.]*"))
        if path.suffix in HELD
        and (path.parent == top or path.relative_to(top).parts[0] in folders)
    }


def machine() -> str:
    """Class of the machine, for timings; it does not identify the machine."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
