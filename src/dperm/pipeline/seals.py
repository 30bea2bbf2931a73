"""Seals: digests of what each stage read and wrote, so that later changes are noticed.

``seal.json`` in a paper's folder of results lists for every job its stage, the digest
of its code and settings, the digest of the libraries' versions, and digests of the
files it read and wrote. The audit and the folder of data have one seal each. The one in
``results`` itself is for files that belong to all papers. Stages check the files that
they read. A stage that solves refuses a tuning of other library versions; a stage that
draws accepts it, since it may come from an archive. Only the stages that solve, sweep
and time may seal rows. Files without a seal may predate seals: they are accepted with
one warning.
"""

from __future__ import annotations

import functools
import logging
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment.locate import conf_dirs, conf_file
from dperm.store import closure
from dperm.store.folders import digest_of, stamp

log = logging.getLogger(__name__)

FILE = "seal.json"
SOLVING = ("tune", "evaluate", "sweep", "timing")  # the stages that may seal rows
SHORT = 20  # digits of the digest of an input file
UNSEALED = ("conf/",)  # these are in Git
KEYS = {  # keys of a stage's command; the parts of its file's path give their values
    **dict.fromkeys(("tune", "evaluate"), "paper problem solver"),
    **dict.fromkeys(("figure", "table"), "paper product"),
    **dict.fromkeys(("timing", "complete"), "paper"),
    **dict.fromkeys(("prepare", "optimum"), "- problem"),
    "sweep": "paper - product",
}
REMEDY = "get it from Git or from its archive again"

KINDS = {"by": str, "made": str, "versions": str, "read": dict, "wrote": dict}
Jobs = dict[str, dict[str, Any]]  # by the first file of a job


class ChangedError(RuntimeError):
    """A file that is not as its stage wrote it; the text names it, in one line."""


def seal(
    config: schema.Config,
    by: str,
    written: Iterable[Path],
    made: str = "",
    of: Iterable[Path] = (),
) -> None:
    """Seal the files that a stage wrote.

    Parameters
    ----------
    by : str
        The stage.
    written : iterable of Path
        The files, all below one folder of results or figures.
    made : str
        Digest of the code and the settings behind them.
    of : iterable of Path
        Files that they were made of; missing ones are left out.

    Raises
    ------
    ValueError
        If a stage seals rows that it cannot have made.
    """
    sources = {_name(config, path): path for path in of if path.is_file()}
    digests = {name: digest_of(path)[:SHORT] for name, path in sources.items()}
    wrote = {}
    for path in written:
        if path.suffix == ".parquet" and by not in SOLVING:
            raise ValueError(f"{path}: {by} makes no rows, so it cannot seal them")
        folder, name = _place(config, path)
        wrote[name] = digest_of(path)
    job = {"by": by, "made": made, "read": digests, "wrote": wrote}
    add(folder, {next(iter(wrote)): {**job, "versions": _versions()}})


def add(folder: Path, jobs: Jobs) -> None:
    """Add jobs to the seal of a folder; several processes may do so at once."""
    folder.mkdir(parents=True, exist_ok=True)
    anew = {name for job in jobs.values() for name in job["wrote"]}
    with FileLock(folder / ".lock"):
        for key, job in jobs_of(folder).items():
            wrote = {n: digest for n, digest in job["wrote"].items() if n not in anew}
            if wrote and key not in jobs:
                jobs = jobs | {key: {**job, "wrote": wrote}}
        store.write_json(folder / FILE, jobs)


def jobs_of(folder: Path) -> Jobs:
    """The jobs in the seal of a folder; empty without a seal.

    Raises
    ------
    ValueError
        If the seal is damaged.
    """
    path = folder / FILE
    return _jobs(path, *stamp(path)) if path.is_file() else {}


@functools.lru_cache(maxsize=64)
def _jobs(path: Path, *stamp: int) -> Jobs:
    return checked(store.read_json(path, REMEDY), path)


def checked(jobs: Any, path: Path) -> Jobs:
    """The jobs of a seal, after a check of their form.

    Raises
    ------
    ValueError
        If the form is wrong; the text names ``path``.
    """
    for job in jobs.values() if isinstance(jobs, dict) else [jobs]:
        is_job = isinstance(job, dict) and {*KINDS} == {*job}
        if not is_job or not all(isinstance(job[key], KINDS[key]) for key in KINDS):
            raise ValueError(f"{path} is damaged ({job!r:.40}): {REMEDY}")
    return jobs


def by_file(folder: Path) -> dict[str, dict[str, Any]]:
    """The jobs of a seal by the files they wrote."""
    jobs = jobs_of(folder).values()
    return {name: job for job in jobs for name in job["wrote"]}


# --- checking -------------------------------------------------------------------------


def check(
    config: schema.Config,
    paths: Iterable[Path],
    made: Mapping[Path, str] | None = None,
    solving: bool = False,
) -> None:
    """Refuse files that are not as their stages wrote them; skip absent files.

    Parameters
    ----------
    made : mapping of Path to str, optional
        Digests of the code and settings that must have made a file.
    solving : bool
        Whether the current versions of the libraries must have made these files too.

    Raises
    ------
    ChangedError
        For the first file that was changed, or made of other files, code or settings.
    """
    for path in paths:
        if not path.is_file() or _name(config, path).startswith(UNSEALED):
            continue
        folder, name = _place(config, path)
        job = by_file(folder).get(name)
        if job is None:
            _say_once()
            continue
        again = f"run `{_command(config, job['by'], path)}`"
        if digest_of(path) != job["wrote"][name]:
            raise ChangedError(
                f"{path} was changed after {job['by']} made it: delete it and {again}"
            )
        for source, digest in job["read"].items():
            if _present(config, source) not in ("", digest):
                raise ChangedError(f"{path} was made of another {source}: {again}")
        if made and path in made:
            of_now = (made[path], _versions() if solving else job["versions"])
            if of_now != (job["made"], job["versions"]):
                libraries = " or library versions" if solving else ""
                raise ChangedError(
                    f"{path} was made by other code, settings{libraries} than the "
                    f"current ones: {again}; finished lanes are kept"
                )


def files(config: schema.Config, room: str) -> list[Path]:
    """Files of a paper, of the audit or of all papers (``""``) that a seal should name.

    These are the files that the seal names and all CSV files of tables and figures in
    the same folders.
    """
    own = [room] if room else []
    folders = (of(config, *own) for of in (plan.results_folder, plan.figures_folder))
    sealed = by_file(plan.results_folder(config, *own))
    named = (path_of(config, room, name) for name in sealed)
    beside = (path for folder in folders for path in sorted(folder.glob("*.csv")))
    return [*dict.fromkeys([*named, *(beside if room else ())])]


def is_of(config: schema.Config, path: Path, made: str) -> bool:
    """Whether a file is unchanged and was made with a digest from current files."""
    folder, name = _place(config, path)
    try:
        check(config, [path], {path: made})
    except ChangedError:
        return False
    return path.is_file() and name in by_file(folder)


def _command(config: schema.Config, by: str, path: Path) -> str:
    """The command that makes a file with the current settings."""
    _, *parts = Path(_name(config, path)).with_suffix("").parts
    keys = {"problem": config.problem.name} if by == "fetch" else {}
    keys |= dict(zip(KEYS.get(by, "").split(), parts, strict=False))
    keys.pop("-", None)
    start = ("paper=", "problem=", "solver=", "product=", "drawn=", "workers=")
    rest = [text for text in config.overrides if not text.startswith(start)]
    return shlex.join(
        ["dperm", by, *(f"{key}={value}" for key, value in keys.items()), *rest]
    )


@functools.cache
def _versions() -> str:
    return store.digest(closure.versions())


@functools.cache
def _say_once() -> None:
    log.warning(
        "files without a seal are taken as they are: they come from Git or from an "
        "older version; `dperm verify` lists them"
    )


def _present(config: schema.Config, name: str) -> str:
    """Digest of a file by its seal, else of its content; empty if there is no file."""
    top, _, rest = name.partition("/")
    path: Path | None
    if top == "data":
        path = Path(config.data.dir, rest)
    elif top == "conf":
        path = conf_file(rest)
    else:
        path = dict(_tops(config))[top] / rest
        folder, own = _place(config, path)
        job = by_file(folder).get(own)
        if job is not None:
            return job["wrote"][own][:SHORT]
    return digest_of(path)[:SHORT] if path is not None and path.is_file() else ""


# --- names ----------------------------------------------------------------------------


def _tops(config: schema.Config) -> Iterator[tuple[str, Path]]:
    yield "figures", plan.figures_folder(config)
    yield "results", plan.results_folder(config)
    yield "data", Path(config.data.dir)
    for folder in conf_dirs():
        yield "conf", folder


def _name(config: schema.Config, path: Path) -> str:
    """Name of a file by default folders, such as ``results/dpcd/table2.csv``."""
    for top, folder in _tops(config):
        if path.is_relative_to(folder):
            return f"{top}/{path.relative_to(folder).as_posix()}"
    raise ValueError(f"{path}: expected a file of results, figures, data or conf")


def _place(config: schema.Config, path: Path) -> tuple[Path, str]:
    """The folder whose seal names a file, and the file's name in that seal."""
    top, *parts = _name(config, path).split("/")
    if top == "data":
        return Path(config.data.dir), "/".join(parts)
    is_apart = len(parts) > 1 and parts[0] != "report"
    room, rest = (parts[:1], parts[1:]) if is_apart else ([], parts)
    name = "/".join(["figures", *rest] if top == "figures" else rest)
    return plan.results_folder(config, *room), name


def path_of(config: schema.Config, room: str, name: str) -> Path:
    """Path of a file by its name in the seal of a folder of results."""
    top, _, rest = name.partition("/")
    own = [room] if room else []
    if top == "figures":
        return plan.figures_folder(config, *own, rest)
    return plan.results_folder(config, *own, name)
