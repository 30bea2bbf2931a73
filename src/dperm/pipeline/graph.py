"""The build graph, how it is kept, and what else a start of Snakemake needs.

Stages and their jobs, the files these read and write, the digests: what a product is
made of is stated here and nowhere else. ``runtable`` composes the graph of a
configuration; the Snakefile makes rules of it, ``dperm plan`` places its jobs, ``dperm
draw`` and ``dperm results`` look up files.

The graph is kept for as long as nothing it is made of has changed, in
``.snakemake/dperm`` of the folder that is worked in, beside what Snakemake remembers of
the same runs, and goes with it. Its name is a digest of the papers and overrides, of
every file of the configuration, of the package's whole source and of the libraries'
versions. Source that lies elsewhere, such as a solver of the reader's own with what it
imports, is known only when the graph is composed, and so are data of the reader's own:
the digests of these files lie in the graph's file and are compared when it is read.
Light to import: a start that finds the graph kept reads nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
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

MEASURING = ("tune", "evaluate", "sweeps", "timing")  # digests of what makes rows
AUDITED = ("epsilon", "controls", "tuning")  # tables of the audit
FORMATS = {  # of products: the first is shown in Snakemake's report
    "figures": ("png", "pdf", "svg", "csv", "json"),
    "tables": ("md", "csv"),
}
TARGETS = {"figures": ".png", "tables": ".csv"}  # the format that is waited for
FOLDER = Path(".snakemake/dperm")
KEPT = 20  # graphs of other targets and overrides; the oldest go
TOPS = ("figures", "results")
UNPACKED = ".unpacked"  # ends the name of a folder whose files were not checked yet
OVERRIDES = {  # by the wildcards of a job
    **{name: name for name in ("paper", "problem", "solver")},
    "name": "product",
}


@dataclass(frozen=True)
class Stage:
    """A rule of the Snakefile: one job for all values of its wildcards."""

    key: str  #: pattern of what names a job, its log and its benchmark, by wildcards
    #: patterns of the files; those of ``draw`` differ from job to job
    outputs: tuple[str, ...] = ()
    #: of what many jobs wait for, sweeps and drawing among them; then the rest
    priority: int = 0
    #: CPU seconds of a job, as a mean, where none of its stage is recorded
    seconds: float = 1.0

    @property
    def wildcards(self) -> list[str]:
        """Names of the wildcards."""
        return re.findall(r"{(\w+)}", self.key)

    def patterns(self, results: str) -> list[str]:
        """The outputs below a folder of results that ends in a slash."""
        return [pattern.replace("{results}", results) for pattern in self.outputs]

    def files(self, results: str, *values: str) -> list[str]:
        """The outputs of the job with these values of the wildcards."""
        names = dict(zip(self.wildcards, values, strict=True))
        return [pattern.format(**names) for pattern in self.patterns(results)]


STAGES = {
    "fetch": Stage("{dataset}", ("data/fetched/{dataset}/fetch.json",), 30, 1.4),
    "prepare": Stage("{problem}", ("data/prepared/{problem}/meta.json",), 30, 1.1),
    "optimum": Stage("{problem}", ("data/optimum/{problem}/optimum.json",), 30, 2.2),
    "solve": Stage(
        "{paper}/{problem}/{solver}",
        (
            "{results}{paper}/{problem}/{solver}/tune.parquet",
            "{results}{paper}/{problem}/{solver}/evaluate.parquet",
        ),
        20,
    ),
    "sweep": Stage(
        "{paper}/{name}", ("{results}{paper}/sweeps/{name}.parquet",), 10, 200.0
    ),
    "timing": Stage("{paper}", ("{results}{paper}/timing.parquet",), 40, 60.0),
    "draw": Stage("{paper}/{product}", seconds=6.0),
    "complete": Stage("{paper}", ("{results}{paper}/complete.txt",), seconds=2.5),
    "audit": Stage("{part}", ("{results}audit/{part}.csv",), seconds=30.0),
    "claims": Stage(
        "",
        tuple(
            f"{{results}}{name}"
            for name in ("claims.csv", "claims.md", "power.csv", "noticed.csv")
        ),
        seconds=10.0,
    ),
    "report": Stage(
        "", ("{results}report/index.html", "{results}selection.csv"), seconds=15.0
    ),
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
        Problems and solvers that it shows.
    timed : bool
        Whether it shows seconds.
    """
    solved = [STAGES["solve"].files(results, paper, *run) for run in runs]
    swept = [STAGES["sweep"].files(results, paper, name) for name in sweeps]
    timing = [STAGES["timing"].files(results, paper)] if timed else []
    return [file for files in (*solved, *swept, *timing) for file in files]


@dataclass
class Job:
    """A job of the Snakefile."""

    #: inputs, outputs: files
    inputs: list[str]
    outputs: list[str]
    #: of its settings, its code and what it reads; empty where Snakemake need
    #: not know: what ``draw`` makes has a digest a product
    digest: str = ""
    #: of ``solve`` the passes over the data of all its lanes
    work: float | None = None
    #: of ``draw``: ``figures/<name>`` and ``tables/<name>``
    products: list[str] = field(default_factory=list)
    #: of their files those that Snakemake's report shows, one of each
    shown: list[str] = field(default_factory=list)
    alone: bool = False  #: whether it runs with nothing beside it, being timed


@dataclass
class Graph:
    """All jobs of some papers at a scale."""

    folder: str  #: of the scale, below results/ and figures/; empty at full scale
    papers: list[str] = field(default_factory=list)
    #: ``stage/key`` to its job, each after those it waits for within its paper
    jobs: dict[str, Job] = field(default_factory=dict)
    #: ``stage/name`` to the digest of what determines its rows, or its product
    digests: dict[str, str] = field(default_factory=dict)
    dataset_of: dict[str, str] = field(default_factory=dict)  #: problem to data set
    #: ``file path`` of the reader's own data to its digest; empty where there is
    #: none
    files: dict[str, str] = field(default_factory=dict)

    # --- building it ------------------------------------------------------------------

    def add(
        self, stage: str, *values: str, inputs: Iterable[str] = (), **other: Any
    ) -> Job:
        """Add a job, by the values of its stage's wildcards.

        Raises
        ------
        ConfigError
            For a stage that there is not.
        """
        one_of("stage", stage, list(STAGES))
        outputs = STAGES[stage].files(self.below("results"), *values)
        job = self.jobs["/".join((stage, *values))] = Job(
            list(inputs), outputs, **other
        )
        return job

    def add_drawing(self, paper: str, product: str, inputs: list[str]) -> None:
        """Add a figure or a table: to the job that draws of the same files, if any.

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
        """A top folder with the scale's below it, ending in a slash."""
        return f"{top}/{self.folder}/" if self.folder else f"{top}/"

    def job(self, stage: str, *values: str) -> Job:
        """The job of a stage with these values of its wildcards.

        Raises
        ------
        ConfigError
            If there is none, with the nearest.
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
        """Files of a paper's rows, of which all else is made."""
        jobs = self.of_paper(paper, "solve", "sweep", "timing")
        return [file for job in jobs for file in job.outputs]

    def products(self, paper: str) -> list[str]:
        """What a paper's target waits for: a file of every product, and all rows."""
        waited = [
            file
            for job in self.of_paper(paper, "draw")
            for product in job.products
            for file in self.files_of(paper, product)
            if file.endswith(TARGETS[product.split("/")[0]])
        ]
        return waited + self.rows(paper)

    def targets(self) -> dict[str, list[str]]:
        """Files of what a command line may name: every paper, and the audit."""
        found = {
            paper: [*self.job("complete", paper).outputs, *self.products(paper)]
            for paper in self.papers
        }
        folder = f"{self.below('results')}audit"
        return {**found, "audit": [f"{folder}/{name}.csv" for name in AUDITED[:2]]}

    def ancestors(self, files: Iterable[str]) -> list[str]:
        """Files, and all that they are made of.

        Raises
        ------
        ConfigError
            For a file that no job makes.
        """
        maker = {file: job for job in self.jobs.values() for file in job.outputs}
        found, left = dict[str, None](), [*files]
        while left:
            file = left.pop()
            if file not in found:
                one_of("file", file, maker)
                found[file] = None
                left += maker[file].inputs
        return [*found]

    def audits(self) -> list[str]:
        """Tables of the audit that the report waits for; none where all is small."""
        if self.folder:
            return []
        return [f"{self.below('results')}audit/{name}.csv" for name in AUDITED]

    def row_digests(self, paper: str) -> dict[str, str]:
        """Digests of all code and configuration behind a paper's rows, by stage."""
        starts = tuple(f"{stage}/{paper}/" for stage in MEASURING)
        return {
            name: made
            for name, made in sorted(self.digests.items())
            if f"{name}/".startswith(starts)
        }

    def rows_digest(self, paper: str) -> str:
        """The same as one digest, which the record of a run has."""
        return store.digest([*self.row_digests(paper).items()])

    def drawing(self, paper: str, job: Job) -> str:
        """The products of a drawing job with their digests, as an override."""
        products = (each.split("/") for each in job.products)
        keys = (f"{kind}/{paper}/{name}" for kind, name in products)
        pairs = zip(job.products, keys, strict=True)
        return f"[{','.join(f'{each}@{self.digests[key]}' for each, key in pairs)}]"

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Graph:
        """The graph of what ``dataclasses.asdict`` gave of it.

        Raises
        ------
        TypeError, KeyError
            For any other value.
        """
        jobs = {name: Job(**job) for name, job in value["jobs"].items()}
        return cls(**{**value, "jobs": jobs})


# --- the command line -----------------------------------------------------------------


def papers_of(command: Sequence[str], papers: Sequence[str]) -> list[str]:
    """The papers that the targets of a command line need; all where that is unclear.

    Snakemake tells a Snakefile of its targets only after it was read, so that they are
    taken from the command line by Snakemake's own parser.

    Parameters
    ----------
    command : sequence of str
        ``sys.argv``.
    papers : sequence of str
        All there are.

    Returns
    -------
    list of str
        In the order of ``papers``.
    """
    if "snakemake" not in (PurePath(part).stem for part in PurePath(command[0]).parts):
        return list(papers)
    # Imported by then, and by nobody else: Snakemake is what runs the Snakefile.
    from snakemake.cli import get_argument_parser

    options, _ = get_argument_parser().parse_known_args(list(command[1:]))
    found = [_of_target(target, papers) for target in options.targets]
    found += [job.wildcards_dict.get("paper") for job in options.target_jobs]
    if not found or not set(found) <= set(papers):
        return list(papers)
    return [paper for paper in papers if paper in found]


def _of_target(target: str, papers: Sequence[str]) -> str | None:
    """The paper a target is, or is a file of; None where another may be needed."""
    if target in papers:
        return target
    top, *below = PurePath(re.sub(r"^\./", "", target)).parts
    named = [part for part in below[:2] if part in papers]
    return named[0] if top in TOPS and len(named) == 1 else None


def answers(command: Sequence[str], results: str, papers: Sequence[str]) -> str:
    """What a run ends with: of each paper its ``complete.txt``, of a file its path."""
    texts = [
        Path(results, paper, "complete.txt") for paper in papers_of(command, papers)
    ]
    files = [word for word in command if word.startswith(TOPS) and Path(word).is_file()]
    found = [path.read_text(encoding="utf-8") for path in texts if path.is_file()]
    return "\n".join(files or ["".join(found).rstrip()])


def overrides(settings: dict[str, Any], command: Sequence[str] = ()) -> list[str]:
    """Hydra overrides that Snakemake's ``--config`` asks for.

    Parameters
    ----------
    settings : dict
        ``scale``, and ``set``: several, with blanks between them, quoted as in a shell.
    command : sequence of str
        ``sys.argv``, from which ``set`` is taken as it was given: Snakemake cuts quotes
        off its ends and reads the rest as YAML, to which `` #`` begins a comment.

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
    """What every job's shell does first: it finds the package beside the Snakefile.

    An environment needs no dperm in it then. Snakemake takes ``PYTHONPATH`` from those
    that it makes itself, so that it is set inside; and its own prefix is this instead.
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
    """Note when a workflow began, for its manifest, and have it look when a job ends.

    With a limit on jobs in a timespan, which it has by itself, Snakemake leaves a timer
    for each job that ended, and each fires every second until the end.
    """
    tidy()
    os.environ["DPERM_STARTED"] = str(time.monotonic())
    workflow.scheduler.job_rate_limiter = None


def tidy() -> None:
    """Remove the folder of an unpacking that was killed, from where we are."""
    for folder in Path().glob(f".{store.NODE}.*{UNPACKED}"):
        process = folder.name.removesuffix(UNPACKED).rpartition(".")[2]
        if process.isdigit() and not store.alive(int(process)):
            shutil.rmtree(folder, ignore_errors=True)


def audit_key(part: str) -> str:
    """The key of the command that makes ``solvers/<name>`` or a table of the audit."""
    folder, _, name = part.rpartition("/")
    return f"solver={name}" if folder else f"product={name}"


def attempt(dataset: str, folder: str = "data") -> float:
    """Another number each time if no source had it: then it is asked for again."""
    path = Path(folder, "fetched", dataset, "fetch.json")
    try:
        status = json.loads(path.read_text(encoding="utf-8"))["status"]
    except (OSError, ValueError, TypeError, KeyError):  # fetch says what is wrong
        return 0.0
    return time.time() if status != "ok" else 0.0


# --- the kept graph -------------------------------------------------------------------


def load_graph(papers: list[str], overrides: list[str]) -> Graph:
    """The graph that ``dperm.pipeline.runtable`` composes, anew only where it must be.

    A line on stderr says that it is. A graph that cannot be written is not kept.

    Raises
    ------
    ConfigError
        For anything wrong anywhere, before a single job runs.
    """
    path = FOLDER / f"{_key(papers, overrides)}.json"
    graph = _read(path)
    if graph is None:
        # Solvers come with it, and all that they compute with.
        from dperm.pipeline import runtable

        what = "1 paper" if len(papers) == 1 else f"{len(papers)} papers"
        print(f"dperm: composing {what}: {', '.join(papers)}", file=sys.stderr)
        began = time.time()
        graph = runtable.run_table(papers, overrides)
        if path.stem == _key(papers, overrides):  # nothing was edited meanwhile
            _keep(path, graph, began)
    return graph


def _key(papers: list[str], overrides: list[str]) -> str:
    """Digest of everything known beforehand that the graph is made of."""
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
    """Modules of the reader's own that Python would find: one more may hide another."""
    libraries = Path(os.__file__).parent
    for folder in map(Path, sys.path):
        apart = libraries in (folder, *folder.parents) or folder.stem == "site-packages"
        if folder.is_dir() and not apart:
            packages = (path.parent.name for path in folder.glob("*/__init__.py"))
            names = [*packages, *(path.name for path in folder.glob("*.py"))]
            yield str(folder), sorted(names)


def _read(path: Path) -> Graph | None:
    """A kept graph; None if there is none, it is damaged, or other source is read."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        graph, sources = kept["graph"], kept["sources"]
        if kept["digest"] != _digest([graph, sources]):
            return None
        for name, digest in sources.items():
            if store.file_digest(Path(name)) != digest:
                return None
        for name, digest in graph["files"].items():  # empty where there is none
            data = Path(name.removeprefix("file "))
            if digest != (store.file_digest(data) if data.is_file() else ""):
                return None
        os.utime(path)  # the latest used stay
        return Graph.from_json(graph)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _keep(path: Path, graph: Graph, began: float) -> None:
    """Write a graph whole or not at all, and remove the oldest."""
    package = Path(dperm.__file__).parent  # whose modules are in the name
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
    except OSError:  # a folder that may only be read, a full disk: it is made each time
        return


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
