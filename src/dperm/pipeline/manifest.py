"""The manifest of a run, ``results/manifest.json``: what ran, when, and what it left.

Its keys are commit, date, machine, cores, versions; ``jobs``, what each job cost, as
its meter says (``dperm.pipeline.launch``); ``wall_seconds`` and ``cpu_seconds``, their
sums by paper and for the audit; ``run``, what the operating system counted for the last
run and all its processes; and ``files``, the SHA-256 of every file of the scale that
Git holds.
"""

from __future__ import annotations

import datetime
import os
import platform
import resource
import time
from pathlib import Path
from typing import Any

from dperm.core.experiment import files as store
from dperm.core.experiment.locate import available
from dperm.pipeline import meter

TOPS = ("results", "figures")
NAME = "manifest.json"
SECONDS = ("wall_seconds", "cpu_seconds")
HELD = (".csv", ".html", ".md", ".png", ".txt")  # what Git holds; rows it does not
LEFT_OUT = ("explorer.html",)  # made anew by `dperm report`, too large for Git


def write(scale: str, cores: int, began: float, server: float = 0.0) -> Path:
    """Write the manifest of a run that began at a time in seconds.

    A file that is older than the run keeps the digest of the run that made it, so that
    a later run does not vouch for what was edited in between; then that run's commit
    stands before this one's. The costs of jobs that did not run stay too.

    Parameters
    ----------
    scale : str
        The scale's folder, below results/, figures/ and logs/.
    server : float
        CPU seconds of the server of warm workers, without its jobs.
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
    jobs = {**known.get("jobs", {}), **meter.read(Path("logs", scale))}
    content["jobs"] = jobs
    for key in SECONDS:
        content[key] = _sums(jobs, key)
    content["run"] = _run(began, server)
    store.write_json(path, content)
    return path


def costs(scale: str) -> dict[str, dict[str, Any]]:
    """What the jobs of a scale cost in the last run that ran them, by their names."""
    known = store.known_json(Path("results", scale, NAME)) or {}
    return known.get("jobs", {})


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


def _sums(jobs: dict[str, Any], key: str) -> dict[str, float]:
    """Sums of one cost of the jobs of each paper, and of the audit."""
    sums = dict.fromkeys((*available("paper"), "audit"), 0.0)
    for name, cost in jobs.items():
        for part in {*name.split("/")} & {*sums}:
            sums[part] += cost[key]
    return {name: round(seconds, 1) for name, seconds in sums.items() if seconds}


def _run(began: float, server: float) -> dict[str, float]:
    """What this process and all that it waited for cost, and how much is its own."""
    own, others = (
        resource.getrusage(which)
        for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    snakemake = own.ru_utime + own.ru_stime
    return {
        "cpu_seconds": round(snakemake + others.ru_utime + others.ru_stime, 1),
        "server_cpu_seconds": round(server, 1),
        "snakemake_cpu_seconds": round(snakemake, 1),
        "wall_seconds": round(time.time() - began, 1),
    }


def machine() -> str:
    """Class of the machine, for timings; it does not identify the machine."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
