"""The manifest of a run, ``results/manifest.json``: what ran, when, and what it left.

Its keys are commit, date, machine, cores, versions; ``wall_seconds`` and
``cpu_seconds`` of the jobs of each paper and of the audit, from Snakemake's benchmark
files; and ``files``, the SHA-256 of every file of the scale that Git holds.
"""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from dperm.core.experiment import files as store
from dperm.core.experiment.locate import available

TOPS = ("results", "figures")
NAME = "manifest.json"
# Keys of seconds, each by paper, to the columns of Snakemake's benchmark files.
SECONDS = {"wall_seconds": "s", "cpu_seconds": "cpu_time"}
HELD = (".csv", ".html", ".md", ".png", ".txt")  # what Git holds; rows it does not
LEFT_OUT = ("explorer.html",)  # made anew by `dperm report`, too large for Git


def write(scale: str, papers: Iterable[str], cores: int, began: float) -> Path:
    """Write the manifest of a run that began at a time in seconds.

    A file that is older than the run keeps the digest of the run that made it, so that
    a later run does not vouch for what was edited in between; then that run's commit
    stands before this one's. The seconds of papers of which nothing ran stay too.

    Parameters
    ----------
    scale : str
        The scale's folder, below results/, figures/ and logs/.
    """
    path = Path("results", scale, NAME)
    known = store.known_json(path) or {}
    before, now = known.get("files", {}), held(scale)
    kept = {name: before[name] for name, file in now.items()
            if name in before and file.stat().st_mtime < began}  # fmt: skip
    commits = [*(known["commit"].split(", ") if kept else ()), store.commit()]
    content: dict[str, Any] = {
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
    spent = _spent(Path("logs", scale), {*papers, "audit"})
    for key, column in SECONDS.items():
        content[key] = {**known.get(key, {}), **spent[column].round(1).to_dict()}
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
        and path.name not in LEFT_OUT
        and (path.parent == top or path.relative_to(top).parts[0] in folders)
    }


def _spent(logs: Path, names: set[str]) -> pd.DataFrame:
    """Seconds of the jobs of papers, or of the audit, by name; NA of a short job."""
    empty = pd.DataFrame(columns=["name", *SECONDS.values()], dtype=float)
    rows = [
        pd.read_csv(path, sep="\t").tail(1).assign(name=name)
        for path in logs.rglob("*.tsv")
        for name in names & {*path.relative_to(logs).with_suffix("").parts}
    ]
    table = pd.concat(rows) if rows else empty
    return table.groupby("name")[[*SECONDS.values()]].sum()


def machine() -> str:
    """Class of the machine, for timings; it does not identify the machine."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
