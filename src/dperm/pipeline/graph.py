"""The build graph, its cache, and other functions that a start of Snakemake needs.

The graph has the stages and their jobs, the files that these read and write, and the
digests. It is the only place that states what a product is made of. ``runtable``
composes the graph of a configuration. The Snakefile turns it into rules, and ``dperm
draw`` looks up files.

The graph is cached in ``.snakemake/dperm`` of the working folder, with Snakemake's own
records of the same runs, until one of its inputs changes. The name of the cached file
is a digest of the papers and overrides, of every file of the configuration, of the
package's whole source and of the libraries' versions. Other inputs are known only once
the graph is composed: a user's own data, and source outside the package, such as a
user's own solver with its imports. Their digests are stored in the cached file and
compared when it is read. This module is light to import: a start that finds the graph
in the cache reads nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import Any

import dperm
from dperm.core.experiment import files as store
from dperm.core.experiment.locate import ConfigError, conf_dirs
from dperm.core.experiment.validation import one_of
from dperm.store import closure

MEASURING = ("tune", "evaluate", "sweeps", "timing")  # digests of stages with rows
AUDITED = ("epsilon", "tuning")  # tables of the audit
FORMATS = {  # of products: the first is shown in Snakemake's report
    "figures": ("png", "pdf", "svg", "csv"),
    "tables": ("csv",),
}
TARGETS = {"figures": ".png", "tables": ".csv"}  # the format that targets wait for
FOLDER = Path(".snakemake/dperm")
KEPT = 20  # cached graphs; the least recently used are removed
TOPS = ("figures", "results")
OVERRIDES = {  # wildcards of a job to keys of overrides
    **{name: name for name in ("paper", "problem", "solver")},
    "name": "product",
}


@dataclass(frozen=True)
class Stage:
    """A rule of the Snakefile: one job for all values of its wildcards."""

    key: str  #: pattern of the name of a job, its log and its benchmark, by wildcards
    #: patterns of the output files; those of ``draw`` differ from job to job
    outputs: tuple[str, ...] = ()
    #: higher for stages that many jobs wait for
    priority: int = 0

    @property
    def wildcards(self) -> list[str]:
        """Names of the wildcards."""
        return re.findall(r"{(\w+)}", self.key)

    def patterns(self, results: str) -> list[str]:
        """Patterns of the outputs; ``results`` is a folder that ends in a slash."""
        return [pattern.replace("{results}", results) for pattern in self.outputs]

    def files(self, results: str, *values: str) -> list[str]:
        """The outputs of the job with these values of the wildcards."""
        names = dict(zip(self.wildcards, values, strict=True))
        return [pattern.format(**names) for pattern in self.patterns(results)]


STAGES = {
    "fetch": Stage("{dataset}", ("data/fetched/{dataset}/fetch.json",), 30),
    "prepare": Stage("{problem}", ("data/prepared/{problem}/meta.json",), 30),
    "optimum": Stage("{problem}", ("data/optimum/{problem}/optimum.json",), 30),
    "solve": Stage(
        "{paper}/{problem}/{solver}",
        (
            "{results}{paper}/{problem}/{solver}/tune.parquet",
            "{results}{paper}/{problem}/{solver}/evaluate.parquet",
        ),
        20,
    ),
    "sweep": Stage("{paper}/{name}", ("{results}{paper}/sweeps/{name}.parquet",), 10),
    "timing": Stage("{paper}", ("{results}{paper}/timing.parquet",), 40),
    "draw": Stage("{paper}/{product}"),
    "complete": Stage("{paper}", ("{results}{paper}/complete.txt",)),
    "audit": Stage("{part}", ("{results}audit/{part}.csv",)),
    "claims": Stage(
        "",
        ("{results}claims.csv", "{results}claims.md"),
    ),
    "report": Stage("", ("{results}report/index.html",)),
}


def product_inputs(
    results: str,
    paper: str,
    runs: Iterable[tuple[str, str]],
    sweeps: Iterable[str],
    timed: bool,
) -> list[str]:
    """Files that a figure or table is made of.

    Parameters
    ----------
    results : str
        Folder of results, ending in a slash.
    runs : iterable of (str, str)
        Problems and solvers that the product shows.
    timed : bool
        Whether the product shows seconds.
    """
    solved = [STAGES["solve"].files(results, paper, *run) for run in runs]
    swept = [STAGES["sweep"].files(results, paper, name) for name in sweeps]
    timing = [STAGES["timing"].files(results, paper)] if timed else []
    return [file for files in (*solved, *swept, *timing) for file in files]


@dataclass
class Job:
    """A job of the Snakefile."""

    #: inputs, outputs: names of files
    inputs: list[str]
    outputs: list[str]
    #: digest of its settings, code and inputs; empty if Snakemake does not need
    #: it: ``draw`` has one digest per product instead
    digest: str = ""
    #: for ``solve``, the passes over the data of all its lanes together
    work: float | None = None
    #: for ``draw``, ``figures/<name>`` and ``tables/<name>``
    products: list[str] = field(default_factory=list)
    #: files that Snakemake's report shows, one per product
    shown: list[str] = field(default_factory=list)
    alone: bool = False  #: whether no other job may run with it, because it is timed


@dataclass
class Graph:
    """All jobs of some papers at a scale."""

    folder: str  #: of the scale, below results/ and figures/; empty at full scale
    papers: list[str] = field(default_factory=list)
    #: ``stage/key`` to its job; within a paper, jobs follow those they wait for
    jobs: dict[str, Job] = field(default_factory=dict)
    #: ``stage/name`` to the digest of all that determines its rows or product
    digests: dict[str, str] = field(default_factory=dict)
    dataset_of: dict[str, str] = field(default_factory=dict)  #: problem to data set
    #: ``file path`` of a user's own data to its digest; empty if the file is
    #: missing
    files: dict[str, str] = field(default_factory=dict)

    # --- building it ------------------------------------------------------------------

    def add(
        self, stage: str, *values: str, inputs: Iterable[str] = (), **other: Any
    ) -> Job:
        """Add a job, by the values of its stage's wildcards.

        Raises
        ------
        ConfigError
            For an unknown stage.
        """
        one_of("stage", stage, list(STAGES))
        outputs = STAGES[stage].files(self.below("results"), *values)
        job = self.jobs["/".join((stage, *values))] = Job(
            list(inputs), outputs, **other
        )
        return job

    def add_drawing(self, paper: str, product: str, inputs: list[str]) -> None:
        """Add a figure or a table to the drawing job with its inputs, or to a new one.

        Raises
        ------
        ConfigError
            For a product that is neither.
        """
        one_of("product", product.split("/")[0], list(FORMATS))
        for job in self.of_paper(paper, "draw"):
            if job.inputs == inputs:
                break
        else:
            job = self.jobs[f"draw/{paper}/{product}"] = Job(inputs, [])
        job.products.append(product)
        files = self.files_of(paper, product)
        job.outputs += files
        job.shown.append(files[0])

    # --- reading it -------------------------------------------------------------------

    def below(self, top: str) -> str:
        """The scale's folder below a top folder, ending in a slash."""
        return f"{top}/{self.folder}/" if self.folder else f"{top}/"

    def job(self, stage: str, *values: str) -> Job:
        """The job of a stage with these values of its wildcards.

        Raises
        ------
        ConfigError
            If there is no such job, with the nearest name.
        """
        name = "/".join((stage, *values))
        one_of("job", name, list(self.jobs))
        return self.jobs[name]

    def of_paper(self, paper: str, *stages: str) -> list[Job]:
        """A paper's jobs of some stages, stage by stage."""
        return [
            job
            for stage in stages
            for name, job in self.jobs.items()
            if f"{name}/".startswith(f"{stage}/{paper}/")
        ]

    def problem_of(self, dataset: str) -> str:
        """The first problem that uses a data set."""
        return next(name for name, one in self.dataset_of.items() if one == dataset)

    def files_of(self, paper: str, product: str) -> list[str]:
        """Files of ``figures/<name>`` or ``tables/<name>``."""
        kind, name = product.split("/")
        top = self.below("figures" if kind == "figures" else "results")
        return [f"{top}{paper}/{name}.{ending}" for ending in FORMATS[kind]]

    def rows(self, paper: str) -> list[str]:
        """Files of a paper's rows, from which its products are made."""
        jobs = self.of_paper(paper, "solve", "sweep", "timing")
        return [file for job in jobs for file in job.outputs]

    def products(self, paper: str) -> list[str]:
        """Files that a paper's target waits for: one per product, and all rows."""
        waited = [
            file
            for job in self.of_paper(paper, "draw")
            for product in job.products
            for file in self.files_of(paper, product)
            if file.endswith(TARGETS[product.split("/")[0]])
        ]
        return waited + self.rows(paper)

    def targets(self) -> dict[str, list[str]]:
        """Files of the targets of a command line: every paper, and the audit."""
        found = {
            paper: [*self.job("complete", paper).outputs, *self.products(paper)]
            for paper in self.papers
        }
        folder = f"{self.below('results')}audit"
        return {**found, "audit": [f"{folder}/{name}.csv" for name in AUDITED[:1]]}

    def audits(self) -> list[str]:
        """Tables of the audit that the report waits for; none at a small scale."""
        if self.folder:
            return []
        return [f"{self.below('results')}audit/{name}.csv" for name in AUDITED]

    def row_digests(self, paper: str) -> dict[str, str]:
        """Digests of the code and configuration behind a paper's rows, by stage."""
        starts = tuple(f"{stage}/{paper}/" for stage in MEASURING)
        return {
            name: made
            for name, made in sorted(self.digests.items())
            if f"{name}/".startswith(starts)
        }

    def rows_digest(self, paper: str) -> str:
        """``row_digests`` as one digest, which the record of a run contains."""
        return store.digest([*self.row_digests(paper).items()])

    def drawing(self, paper: str, job: Job) -> str:
        """The digests of the products of a drawing job."""
        products = (each.partition("/") for each in job.products)
        keys = [f"{kind}/{paper}/{name}" for kind, _, name in products]
        return " ".join(self.digests[key] for key in keys)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Graph:
        """The graph of the output of ``dataclasses.asdict``.

        Raises
        ------
        TypeError, KeyError
            For any other value.
        """
        jobs = {name: Job(**job) for name, job in value["jobs"].items()}
        return cls(**{**value, "jobs": jobs})


# --- the command line -----------------------------------------------------------------


def papers_of(command: Sequence[str], papers: Sequence[str]) -> list[str]:
    """Papers that the targets of a command line need; all papers if that is unclear.

    A Snakefile learns its targets only after it was read. Therefore they are taken from
    the command line, by Snakemake's own parser.

    Parameters
    ----------
    command : sequence of str
        ``sys.argv``.
    papers : sequence of str
        All papers.

    Returns
    -------
    list of str
        In the order of ``papers``.
    """
    if "snakemake" not in (PurePath(part).stem for part in PurePath(command[0]).parts):
        return list(papers)
    # Snakemake, which runs the Snakefile, has imported it already.
    from snakemake.cli import get_argument_parser

    options, _ = get_argument_parser().parse_known_args(list(command[1:]))
    found = [_of_target(target, papers) for target in options.targets]
    found += [job.wildcards_dict.get("paper") for job in options.target_jobs]
    if not found or not set(found) <= set(papers):
        return list(papers)
    return [paper for paper in papers if paper in found]


def _of_target(target: str, papers: Sequence[str]) -> str | None:
    """Paper that a target names or belongs to; None if others may be needed too."""
    if target in papers:
        return target
    top, *below = PurePath(re.sub(r"^\./", "", target)).parts
    named = [part for part in below[:2] if part in papers]
    return named[0] if top in TOPS and len(named) == 1 else None


def answers(command: Sequence[str], results: str, papers: Sequence[str]) -> str:
    """Last lines of a run: paths of requested files, else papers' ``complete.txt``."""
    texts = [
        Path(results, paper, "complete.txt") for paper in papers_of(command, papers)
    ]
    files = [word for word in command if word.startswith(TOPS) and Path(word).is_file()]
    found = [path.read_text(encoding="utf-8") for path in texts if path.is_file()]
    return "\n".join(files or ["".join(found).rstrip()])


def overrides(settings: dict[str, Any], command: Sequence[str] = ()) -> list[str]:
    """Hydra overrides of Snakemake's ``--config``.

    Parameters
    ----------
    settings : dict
        ``scale``, and ``set``: overrides separated by blanks, quoted as in a shell.
    command : sequence of str
        ``sys.argv``, from which ``set`` is taken verbatim: Snakemake cuts quotes off
        its ends and reads the rest as YAML, where `` #`` begins a comment.

    Raises
    ------
    ConfigError
        For a key that is neither ``scale`` nor ``set``, or a quote that is not closed.
    """
    for key in settings:
        one_of("--config", key, ("scale", "set"))
    text = settings.get("set", "")
    given = [word[4:] for word in command if word.startswith("set=") and text != ""]
    try:
        words = shlex.split(given[-1] if given else str(text or ""))
    except ValueError as error:
        raise ConfigError(
            f"--config: set: {text}: expected quotes as in a shell: {error}"
        ) from error
    return [f"scale={settings.get('scale', 'full')}", *words]


# --- the Snakefile's functions -------------------------------------------------------


def prefix(folder: str) -> str:
    """Shell prefix of every job: lets Python find the package next to the Snakefile.

    Environments then need no installed dperm. ``PYTHONPATH`` is set inside the shell,
    because Snakemake removes it from the environments that it creates. This prefix
    replaces Snakemake's own.
    """
    path = shlex.quote(str(Path(folder, "src"))).replace("{", "{{").replace("}", "}}")
    own = "${{PYTHONPATH:+:$PYTHONPATH}}"
    return f"set -euo pipefail; export PYTHONPATH={path}{own}; "


def keys(names: Any) -> str:
    """Wildcards of a job as overrides of its stage."""
    return " ".join(
        f"{key}={getattr(names, name)}"
        for name, key in OVERRIDES.items()
        if hasattr(names, name)
    )


def begin(workflow: Any) -> None:
    """Note when a workflow began, for its manifest, and remove the limit on job rates.

    With such a limit, which Snakemake sets by default, every ended job leaves a timer
    that fires every second until the workflow ends.
    """
    os.environ["DPERM_STARTED"] = str(time.monotonic())
    workflow.scheduler.job_rate_limiter = None


def audit_key(part: str) -> str:
    """The key of the command that makes ``solvers/<name>`` or a table of the audit."""
    folder, _, name = part.rpartition("/")
    return f"solver={name}" if folder else f"product={name}"


def attempt(dataset: str, folder: str = "data") -> float:
    """A number that changes each time if no source had the data, to fetch again."""
    path = Path(folder, "fetched", dataset, "fetch.json")
    try:
        status = json.loads(path.read_text(encoding="utf-8"))["status"]
    except (OSError, ValueError, TypeError, KeyError):  # fetch reports the fault
        return 0.0
    return time.time() if status != "ok" else 0.0


# --- the kept graph -------------------------------------------------------------------


def load_graph(papers: list[str], overrides: list[str]) -> Graph:
    """The graph of papers, cached or composed by ``dperm.pipeline.runtable``.

    Composing prints a line on stderr. A graph that cannot be written is not cached.

    Raises
    ------
    ConfigError
        For any error in the configuration, before a single job runs.
    """
    path = FOLDER / f"{_key(papers, overrides)}.json"
    graph = _read(path)
    if graph is None:
        # Slow: it imports all solvers and their libraries.
        from dperm.pipeline import runtable

        what = "1 paper" if len(papers) == 1 else f"{len(papers)} papers"
        print(f"dperm: composing {what}: {', '.join(papers)}", file=sys.stderr)
        began = time.time()
        graph = runtable.run_table(papers, overrides)
        if path.stem == _key(papers, overrides):  # nothing was edited meanwhile
            _keep(path, graph, began)
    return graph


def _key(papers: list[str], overrides: list[str]) -> str:
    """Digest of all inputs of the graph that are known before it is composed."""
    return _digest(
        [
            *(papers, overrides, dperm.source_digest(), store.versions()),
            [str(folder) for folder in conf_dirs()],
            *(list(_configuration()), list(_modules())),
        ]
    )


def _configuration() -> Iterator[tuple[str, str]]:
    """Every file below the folders of configuration, with its digest."""
    for folder in conf_dirs():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield str(path.relative_to(folder)), store.file_digest(path)


def _modules() -> Iterator[tuple[str, list[str]]]:
    """A user's own modules that Python would find: a new one may hide another."""
    libraries = Path(os.__file__).parent
    for folder in map(Path, sys.path):
        apart = libraries in (folder, *folder.parents) or folder.stem == "site-packages"
        if folder.is_dir() and not apart:
            packages = (path.parent.name for path in folder.glob("*/__init__.py"))
            names = [*packages, *(path.name for path in folder.glob("*.py"))]
            yield str(folder), sorted(names)


def _read(path: Path) -> Graph | None:
    """A cached graph; None if it is missing or damaged, or if an input changed."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        graph, sources = kept["graph"], kept["sources"]
        if kept["digest"] != _digest([graph, sources]):
            return None
        for name, digest in sources.items():
            if store.file_digest(Path(name)) != digest:
                return None
        for name, digest in graph["files"].items():  # empty digest: no such file
            data = Path(name.removeprefix("file "))
            if digest != (store.file_digest(data) if data.is_file() else ""):
                return None
        os.utime(path)  # mark as recently used
        return Graph.from_json(graph)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _keep(path: Path, graph: Graph, began: float) -> None:
    """Write a graph atomically, and remove the least recently used."""
    package = Path(dperm.__file__).parent  # its modules are part of the file's name
    others = [
        file
        for file in closure.files()
        if file.suffix != ".py" or package not in file.parents
    ]
    try:
        if any(file.stat().st_mtime >= began for file in others):
            return  # edited meanwhile
        sources = {str(file): store.file_digest(file) for file in others}
        content = {"graph": asdict(graph), "sources": sources}
        kept = {**content, "digest": _digest([*content.values()])}
        store.write_text(path, json.dumps(kept))
        graphs = path.parent.glob("[!.]*.json")
        for old in sorted(graphs, key=lambda file: file.stat().st_mtime)[:-KEPT]:
            old.unlink(missing_ok=True)
    except OSError:  # read-only folder or full disk: the graph is not cached
        return


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
