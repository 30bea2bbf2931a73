"""Functions of the Snakefile: its command line, its jobs and what a run says."""

from __future__ import annotations

import csv
import functools
import math
import os
import re
import shlex
import time
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import Any

from dperm.config import run_spec, schema
from dperm.config.locate import ConfigError, own_conf
from dperm.config.validation import key_of, one_of
from dperm.data.fetching import read_record
from dperm.experiments import digests, launch, plan
from dperm.storage.files import digest, known_json, write_json
from dperm.workflow.jobs import STAGES, Job, Jobs

TOPS = ("figures", "results")
REPORTED = ("claims", "report")  # targets of the papers beside them
# wildcards of a job to other keys of overrides
OVERRIDES = {"name": "product"}
PLACES = re.compile(r"(output|hydra)(\..*)?|data\.dir|scale\.folder")
# Isolated and without site-packages, Python starts in ten milliseconds.
LAUNCH = ("python", "-I", "-S", str(Path(launch.__file__)))
LONG_AGO = 86400.0  # a time in seconds

SPLIT = ("solve", "sweep")  # stages that use several threads
# By the clock: of a shorter job the start of its threads is a part
SECONDS = 20.0
PIECES = 8  # of a run; one that takes longer may be waited for at its end
# Threads of a job; with more it would wait long for free cores
MAX_THREADS = 8
# Of a timed run, on a machine with so many; fewer are all its own
TIMED_CORES = 8
TIMED = 2  # timed runs at a time
SWEEP_THREADS = 4  # of a sweep that was not measured
# Roots of passes times entries that a thread takes in about 45 seconds. The time grows
# with the root, because the larger X is, the more settings stop early.
ROOTS = 3.5e5


def papers_of(command: Sequence[str], papers: Sequence[str]) -> list[str]:
    """Papers that the targets of a command line need; all papers if that is unclear.

    A Snakefile learns its targets only after it was read. Therefore they are taken from
    the ``command`` (``sys.argv``) by Snakemake's own parser.
    """
    options = _options(command)
    targets = [target for target in options.targets if target not in REPORTED]
    if options.targets and not targets:  # of the papers that are here
        return [
            name
            for name in plan.papers_here(Path("results"))
            if name in papers
        ]
    needed = [_of_target(target, papers) for target in targets]
    needed += [job.wildcards_dict.get("paper") for job in options.target_jobs]
    if not needed or not set(needed) <= set(papers):
        return list(papers)
    return [paper for paper in papers if paper in needed]


def is_reported(command: Sequence[str]) -> bool:
    """Whether claims or the report are among the targets of a command line."""
    return bool({*REPORTED} & {*_options(command).targets})


def is_whole(command: Sequence[str]) -> bool:
    """Whether the targets of a command line are all papers with their report."""
    targets = _options(command).targets
    return not targets or "all" in targets


def cores(workflow: Any) -> int:
    """The cores of a run; those of this machine if an executor has no ``--cores``.

    ``workflow`` is Snakemake's, whose own ``cores`` raises then.
    """
    return int(workflow.resource_settings.cores or os.cpu_count() or 1)


def _options(command: Sequence[str]) -> Any:
    """What Snakemake's own parser finds; no targets if another program runs."""
    stems = [PurePath(folder).stem for folder in PurePath(command[0]).parts]
    return _parsed(*(command[1:] if "snakemake" in stems else ()))


@functools.cache
def _parsed(*words: str) -> Any:
    from snakemake.cli import get_argument_parser

    return get_argument_parser().parse_known_args(words)[0]


def refuse_unmade(command: Sequence[str], jobs: Jobs) -> None:
    """Refuse a file among the targets that no job makes; a ConfigError names near ones.

    Snakemake would say that it has no rule, or show how its lookup failed.
    """
    for target in _options(command).targets:
        if target.startswith((*TOPS, "data/")):
            one_of("command line", target, jobs.makers)


def refuse_own_claims(
    command: Sequence[str], papers: Iterable[str], run_overrides: Sequence[str]
) -> None:
    """Refuse wrong claims of a user's own papers in a dry run.

    Those of all papers are read when a run starts, which takes a second.
    """
    own_folder = own_conf()
    names = [
        name
        for name in papers
        if own_folder and (own_folder / "paper" / name).is_dir()
    ]
    if names and _options(command).dryrun:
        from dperm.report import claims

        claims.refuse(names, run_overrides)


def _of_target(target: str, papers: Sequence[str]) -> str | None:
    """Paper that a target names or belongs to; None if others may be needed too."""
    top, *below = PurePath(target).parts
    names = [folder for folder in below[:2] if folder in papers]
    if top in TOPS and len(names) == 1:
        return names[0]
    return target if target in papers else None


def answers(
    command: Sequence[str], results: str, papers: Sequence[str]
) -> str:
    """Last lines of a run: paths of requested files, else papers' ``complete.txt``.

    Of an audit they begin with the solvers that were caught.
    """
    files_of_papers = [
        Path(results, paper, "complete.txt")
        for paper in papers_of(command, papers)
    ]
    files = [
        word
        for word in command
        if word.startswith(TOPS) and Path(word).is_file()
    ]
    texts = [
        path.read_text(encoding="utf-8")
        for path in files_of_papers
        if path.is_file()
    ]
    is_audit = any("audit" in PurePath(word).parts for word in command[1:])
    caught = _caught(Path(results, "audit", "solvers")) if is_audit else []
    return "\n".join([*caught, *(files or ["".join(texts).rstrip()])])


def _caught(folder: Path) -> list[str]:
    """A line for each solver that checks have caught, which ends no run."""
    lines = []
    for path in sorted(folder.glob("*.csv")):
        rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
        checks = [row["caught"] for row in rows]
        count = checks.count("True")
        if count:
            lines.append(f"CAUGHT by {count} of {len(checks)} checks: {path}")
    return lines


def overrides(
    settings: dict[str, Any], command: Sequence[str] = ()
) -> list[str]:
    """Hydra overrides of Snakemake's ``--config``.

    Its keys are ``scale``, and ``set``: overrides separated by blanks, quoted as in a
    shell. ``set`` is taken verbatim from the ``command`` (``sys.argv``): Snakemake cuts
    quotes off its ends and reads the rest as YAML, where `` #`` begins a comment.

    Raises ConfigError for any other key, a quote that is not closed, or an override
    that no pipeline may have.
    """
    for key in settings:
        one_of("--config", key, ("scale", "set"))
    text = settings.get("set", "")
    verbatim = [
        word[4:] for word in command if word.startswith("set=") and text != ""
    ]
    try:
        quoted = verbatim[-1] if verbatim else str(text or "")
        words = shlex.split(quoted)
    except ValueError as error:
        raise ConfigError(
            f"--config: set: {text}: expected quotes as in a shell: {error}"
        ) from error
    for word in words:
        _refuse_moved(word)
    return [f"scale={settings.get('scale', 'full')}", *words]


def write_specs(jobs: Jobs, run_overrides: Sequence[str]) -> None:
    """Write what every job computes as its file, and the sections that jobs look up.

    ``run_overrides`` are those of the command line.
    """
    papers = {
        paper: jobs.job("complete", paper).spec.paper for paper in jobs.papers
    }
    named: dict[str, dict[str, Any]] = {
        "problem": {},
        "solver": {},
        "paper": papers,
    }
    for (group, name, inner), section in digests.SECTIONS.items():
        if [*inner] == run_spec.of_group(group, run_overrides):
            named[group][name] = section
    sections = run_spec.write_sections(named, digest([*run_overrides]))
    for name, job in jobs.jobs.items():
        run_spec.RunSpec(job.spec, name, job.key).write(sections)


# --- the list of jobs -----------------------------------------------------------------


def write_job_list(jobs: Jobs, run_overrides: Sequence[str]) -> None:
    """Write the jobs of this run for its processes on other machines.

    ``run_overrides`` are those of its command line.
    """
    listed = {
        "folder": jobs.folder,
        "papers": jobs.papers,
        "jobs": {name: _listed(job) for name, job in jobs.jobs.items()},
        "dataset_of": jobs.dataset_of,
        "cores": jobs.cores,
    }
    write_json(_list_of(run_overrides), listed)


def _listed(job: Job) -> dict[str, Any]:
    """A job without what it may read, which has a file of its own."""
    fields = dict(vars(job))
    del fields["spec"]
    return fields


def read_job_list(run_overrides: Sequence[str]) -> Jobs | None:
    """The jobs that the main process of this run has composed; None if not there.

    To compose all jobs takes seconds, on each machine and for each of its jobs.
    """
    listed = known_json(_list_of(run_overrides))
    if listed is None:
        return None
    jobs = {name: Job(**fields) for name, fields in listed["jobs"].items()}
    makers: dict[str, Job] = {}
    for job in jobs.values():
        makers |= dict.fromkeys(job.outputs, job)
    fields = {
        key: listed[key] for key in ("folder", "papers", "dataset_of", "cores")
    }
    return Jobs(jobs=jobs, makers=makers, **fields)


def _list_of(run_overrides: Sequence[str]) -> Path:
    return Path(".snakemake", "dperm", f"{digest([*run_overrides])}.json")


def _refuse_moved(word: str) -> None:
    """Refuse an override that moves or removes what the rules of a pipeline expect.

    A single stage takes them.
    """
    key = key_of(word)
    where = f"--config: set: {word}"
    if PLACES.fullmatch(key):
        raise ConfigError(
            f"{where}: expected a key that moves no files, as a pipeline has them in "
            "the current folder: --directory names another"
        )
    if word.startswith("~") and "." not in key:
        raise ConfigError(
            f"{where}: expected a key below a group, as in ~paper.sweeps.name: all of "
            f"{key} is needed"
        )


# --- jobs -----------------------------------------------------------------------------


def prefix(folder: str) -> str:
    """Shell prefix of every job: lets Python find the package next to the Snakefile.

    Environments then need no installed dperm. ``PYTHONPATH`` is set inside the shell,
    because Snakemake removes it from the environments that it creates. This prefix
    replaces Snakemake's own.
    """
    path = (
        shlex.quote(str(Path(folder, "src")))
        .replace("{", "{{")
        .replace("}", "}}")
    )
    inherited = "${{PYTHONPATH:+:$PYTHONPATH}}"
    return f"set -euo pipefail; export PYTHONPATH={path}{inherited}; "


def threads(jobs: Jobs, stage: str, *values: str) -> int:
    """Number of threads of a job, if there are enough cores; no row depends on it."""
    return wanted(jobs, "/".join((stage, *values)))


def wanted(jobs: Jobs, name: str) -> int:
    """Number of threads of the job ``stage/name``.

    They take a ``PIECES``-th of the run for what the job cost in an earlier one, but no
    less than ``SECONDS``, and as long as its longest part; a sweep of few parts takes
    no more threads than these. Of what was not measured, a solve follows from the
    passes of its settings and the stored entries of its data set, 0 while unknown. A
    timed run takes ``TIMED_CORES`` threads and uses one, so that nothing beside it
    slows it down.
    """
    job = jobs.jobs[name]
    cost = jobs.costs.get(name, {})
    stage, *wildcards = name.split("/")
    if stage == "timing":
        return TIMED_CORES
    if stage not in SPLIT:
        return 1
    count = SWEEP_THREADS
    if cost:
        longest = max(seconds(jobs), cost.get("longest_seconds", 0.0))
        count = math.ceil(cost["cpu_seconds"] / longest)
        count = min(count, int(cost.get("indivisible", count)))
    elif stage == "solve":
        count = math.ceil(
            math.sqrt(job.work * _entries(jobs, wildcards[1])) / ROOTS
        )
    elif job.alone:
        count = 1
    count = min(MAX_THREADS, max(1, count))
    return TIMED_CORES * min(count, TIMED) if job.alone else count


def seconds(jobs: Jobs) -> float:
    """Seconds by the clock that a job may take which several threads can share."""
    spent = (cost["cpu_seconds"] for name, cost in jobs.costs.items()
             if name in jobs.jobs)  # fmt: skip
    return max(SECONDS, sum(spent) / jobs.cores / PIECES)


def _entries(jobs: Jobs, problem: str) -> int:
    """Stored entries of the data set of a problem; 0 while unknown."""
    dataset = jobs.dataset_of.get(problem)
    record = read_record(dataset, schema.Data()) if dataset else None
    return (record and record.nnz) or 0


def priority(jobs: Jobs, name: str) -> float:
    """Priority of the job ``stage/name``: of a stage, long jobs begin first."""
    spent = jobs.costs.get(name, {}).get("cpu_seconds", 0.0)
    return STAGES[name.partition("/")[0]].priority + min(spent / 1000, 9.0)


def workers(job: Job, stage: str, threads: int) -> int:
    """Number of working threads of a job; a timed job uses only some, or one."""
    if not job.alone:
        return threads
    return 1 if stage == "timing" else max(1, threads // TIMED_CORES)


def command(
    jobs: Jobs,
    run_overrides: Sequence[str],
    threads: int,
    stage: str,
    *wildcards: str,
) -> str:
    """The shell command of a job; ``run_overrides`` are those of its command line.

    It writes what the job costs beside its log.
    """
    meter = f"{jobs.below('logs')}{stage}/{'/'.join(wildcards) or 'all'}.json"
    job = jobs.job(stage, *wildcards)
    names = STAGES[stage].wildcards
    settings = zip(names, wildcards, strict=True)
    words = [
        f"{OVERRIDES.get(name, name)}={setting}" for name, setting in settings
    ]
    if stage == "fetch":  # any problem will do
        words = [
            f"problem={jobs.problem_of(wildcards[0])}",
            "data.required=false",
        ]
    elif stage == "draw":
        words = [f"paper={wildcards[0]}", f"drawn=[{','.join(job.products)}]"]
    elif stage == "audit":
        folder, _, name = wildcards[0].rpartition("/")
        words = [f"solver={name}" if folder else f"product={name}"]
    words.append(f"workers={workers(job, stage, threads)}")
    spec = run_spec.path_of("/".join((stage, *wildcards)), job.key)
    words += [*run_overrides, run_spec.OPTION, str(spec)]
    shell_command = shlex.join([*LAUNCH, meter, stage, *words])
    # the table of an audit that has caught its solver is a result
    return (
        f"{shell_command} || test -s {job.outputs[0]}"
        if stage == "audit"
        else shell_command
    )


def key(jobs: Jobs, stage: str, *wildcards: str) -> str:
    """The parameter of a job whose change makes it run again.

    It changes each time if no source had the data of a job that fetches.
    """
    job_key = jobs.job(stage, *wildcards).key
    if stage != "fetch":
        return job_key
    record = known_json(Path(jobs.files("fetch", *wildcards)[0])) or {
        "status": "ok"
    }
    return (
        job_key if record.get("status") == "ok" else f"{job_key} {time.time()}"
    )


def backdate_data(jobs: Jobs) -> None:
    """Let data of which no row was made here be older than all results.

    Scales share data. Git holds figures and tables of the full scale without their
    rows; data that another scale fetches in a clone must not make these stale. Rows
    that follow from other data have other keys.
    """
    # files by the data set that they are made of
    files_of: dict[str, set[str]] = {}
    for problem, dataset in jobs.dataset_of.items():
        files = files_of.setdefault(dataset, {*jobs.files("fetch", dataset)})
        files |= {
            *jobs.files("prepare", problem),
            *jobs.files("optimum", problem),
        }
    for files in files_of.values():
        readers = (job for job in jobs.jobs.values() if files & {*job.inputs})
        rows = set[str]().union(*(job.outputs for job in readers)) - files
        if not any(Path(file).exists() for file in rows):
            for path in filter(Path.exists, map(Path, files)):
                os.utime(path, (LONG_AGO, LONG_AGO))
