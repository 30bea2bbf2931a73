"""The manifest of a run, ``results/manifest.json``: what ran, when, and what it left.

Its keys are commit, date, machine, cores, versions; ``jobs``, what each job cost, as
its meter says (``dperm.experiments.launch``); ``wall_seconds`` and ``cpu_seconds``,
their sums by paper and for the audit; ``run``, what the operating system counted for
the full run and all its processes; ``files``, the SHA-256 of every file of the scale
that Git holds; and ``later``, the files that were made otherwise after that run, with
the commit and day of each.

Only a full run replaces the record: all papers, with the costs of every job. A stage
that writes a file with other content than recorded notes this file alone. A run of a
part adds costs of papers that have none, and changes no others.
"""

from __future__ import annotations

import datetime
import logging
import os
import platform
import resource
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dperm.config.locate import available
from dperm.experiments import meter
from dperm.storage import files as store
from dperm.workflow.jobs import STAGES, Jobs

log = logging.getLogger(__name__)
TOPS = ("results", "figures")
NAME = "manifest.json"
SECONDS = ("wall_seconds", "cpu_seconds")
TRACKED = (
    ".csv",
    ".html",
    ".md",
    ".png",
    ".txt",
)  # what Git holds; rows it does not
LEFT_OUT = ("explorer.html",)  # made anew by `dperm report`, too large for Git
COUNTED = ("solve/", "sweep/", "timing/")  # jobs of a scale that take time
CURE = "`git checkout` it, or delete it and run `dperm all`"
CURE_MISSING = "`git checkout` it, run `dperm all`, or verify with --partial"
CURE_UNKNOWN = "delete it, or make it by its `dperm` command"
CURE_CHANGED = "`git checkout` it, or delete it and make it again by `dperm`"
KEY_TYPES = {  # of a manifest, and the types of their values
    "commit": str,
    "files": dict,
    "wall_seconds": dict,
    "cpu_seconds": dict,
    "later": dict,
}


class DamagedError(ValueError):
    """A manifest that cannot be read; the text names it and the cure."""


def read(folder: Path) -> dict[str, Any] | None:
    """The manifest of a scale's folder of results, None if there is none.

    Raises DamagedError if it is damaged.
    """
    path = folder / NAME
    try:
        record = store.read_json(path, CURE)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DamagedError(str(error)) from error
    record.setdefault("later", {})
    for key, json_type in KEY_TYPES.items():
        if not isinstance(record.get(key), json_type):
            type_names = {str: "a text", dict: "a mapping"}
            expected = f"expected {type_names[json_type]} under {key!r}"
            raise DamagedError(f"{path} is damaged ({expected}): {CURE}")
    return record


def write(
    jobs: Jobs, cores: int, began: float, is_whole: bool, server: float = 0.0
) -> Path:
    """Write the manifest of a run of some jobs that began at a time in seconds.

    A run that ended well and was of all papers (``is_whole``) replaces the record if
    the seconds of all its jobs are known, as they are where all was computed. A file
    keeps its recorded digest until a stage makes it again, so that no run vouches for
    what was edited in between. Nothing is written, and a line is logged, if the
    manifest is damaged or cannot be written. ``server`` are the CPU seconds of the
    server of warm workers, without its jobs.
    """
    folder = Path(jobs.below("results"))
    path = folder / NAME
    patterns = {stage: STAGES[stage].name for stage in STAGES}
    costs = meter.read(Path(jobs.below("logs")), patterns)
    try:
        with store.locked(folder):
            record = read(folder)
            is_full = is_whole and _counted(jobs, jobs.jobs) <= {*costs}
            if record is None:
                record = _of_run(jobs, cores, began, {})
            elif is_full and any(
                map(_younger(began), tracked_files(jobs.folder).values())
            ):
                record = _of_run(jobs, cores, began, record)
            before = {} if is_full else record
            record["jobs"] = {**costs, **before.get("jobs", {})}
            if "run" not in before:
                record["run"] = _run(began, server)
            store.write_json(path, {**record, **_seconds(jobs, costs, before)})
    except (DamagedError, OSError) as error:
        # what was computed is there: its bookkeeping does not fail it
        log.warning("the manifest was left as it is: %s", error)
    return path


def note(folder: Path, written: Iterable[Path]) -> None:
    """Record files of a scale that a stage has made with other content than before.

    ``folder`` is the scale's folder of results. Nothing is recorded before a first run,
    or if the manifest is damaged or cannot be written, which is logged.
    """
    paths = {
        path.as_posix(): path
        for path in written
        if path.suffix in TRACKED
        and path.parts[0] in TOPS
        and path.name not in LEFT_OUT
    }
    if not paths or not (folder / NAME).exists():
        return
    try:
        with store.locked(folder):
            record = read(folder) or {}
            digests = {
                name: store.file_digest(path) for name, path in paths.items()
            }
            changed = dict(digests.items() - record["files"].items())
            if changed:
                origin = f"{store.commit()} of {_today()}"
                record["files"] |= changed
                record["later"] |= dict.fromkeys(changed, origin)
                store.write_json(folder / NAME, record)
    except (DamagedError, OSError) as error:
        log.warning("nothing was noted in the manifest: %s", error)


def tracked_files(scale: str) -> dict[str, Path]:
    """Files of a scale that Git holds, by their names."""
    folders = {*available("paper"), "audit", "report"}
    paths = {}
    for name in TOPS:
        top = Path(name, scale)
        for path in sorted(top.rglob("[!.]*")):
            is_kept = path.suffix in TRACKED and path.name not in LEFT_OUT
            if (
                is_kept
                and path.is_file()
                and (  # no folder, link to nothing or pipe
                    path.parent == top
                    or path.relative_to(top).parts[0] in folders
                )
            ):
                paths[path.as_posix()] = path
    return paths


def _of_run(
    jobs: Jobs, cores: int, began: float, before: Mapping[str, Any]
) -> dict[str, Any]:
    """The record of a full run, or the first record, without its seconds.

    The commits of the record before stay if some file is older than the run.
    """
    now = tracked_files(jobs.folder)
    is_new = _younger(began)
    digests = before.get("files", {})
    commits: list[str] = []
    if before and not all(map(is_new, now.values())):
        later = [text.partition(" ")[0] for text in before["later"].values()]
        commits = [*before["commit"].split(", "), *later]
    return {
        "commit": ", ".join(dict.fromkeys([*commits, store.commit()])),
        "versions": store.versions(),
        "date": _today(),
        "machine": machine(),
        "cores": cores,
        "files": {
            name: digests.get(name) or store.file_digest(file)
            for name, file in now.items()
        },
        "later": {},
    }


def _younger(began: float) -> Any:
    """Whether a file was written after a time in seconds."""
    return lambda file: file.stat().st_mtime >= began


def _counted(jobs: Jobs, names: Iterable[str]) -> set[str]:
    """The jobs among names ``stage/job`` whose seconds make those of a full run.

    A small scale has no audit.
    """
    stages = COUNTED if jobs.folder else (*COUNTED, "audit/")
    return {name for name in names if name.startswith(stages)}


def _seconds(
    jobs: Jobs,
    costs: Mapping[str, Mapping[str, float]],
    before: Mapping[str, Any],
) -> dict[str, dict[str, float]]:
    """Seconds by paper and of the audit, of those all of whose jobs were measured.

    Seconds that the record ``before`` has are kept.
    """
    seconds = {key: dict(before.get(key, {})) for key in SECONDS}
    for name in (*jobs.papers, "audit"):
        own_jobs = {job for job in jobs.jobs if name in job.split("/")}
        spent = [costs[job] for job in costs if name in job.split("/")]
        if spent and _counted(jobs, own_jobs) <= {*costs}:
            for key, recorded in seconds.items():
                recorded.setdefault(
                    name, round(sum(cost[key] for cost in spent), 1)
                )
    return seconds


def costs(scale: str) -> dict[str, dict[str, Any]]:
    """What the jobs of a scale cost in the run that is recorded, by their names."""
    record = store.known_json(Path("results", scale, NAME)) or {}
    jobs = record.get("jobs")
    return jobs if isinstance(jobs, dict) else {}


def _run(began: float, server: float) -> dict[str, float]:
    """What this process and all that it waited for cost, and how much is its own."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    snakemake = usage.ru_utime + usage.ru_stime
    return {
        "cpu_seconds": round(
            snakemake + children.ru_utime + children.ru_stime, 3
        ),
        "server_cpu_seconds": round(server, 3),
        "snakemake_cpu_seconds": round(snakemake, 3),
        "wall_seconds": round(time.time() - began, 1),
    }


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def machine() -> str:
    """Class of the machine, for timings; it does not identify the machine."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
