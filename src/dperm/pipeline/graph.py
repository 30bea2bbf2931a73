"""The build graph: stages and their jobs, the files these read and write, the digests.

What a product is made of is stated here and nowhere else. ``runtable`` composes the
graph of a configuration; the Snakefile makes rules of it, ``dperm plan`` places its
jobs, ``dperm draw`` and ``dperm results`` look up files. Light to import: a start that
finds the graph kept (``startup``) reads nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from dperm.core.experiment.files import digest
from dperm.core.experiment.validation import one_of

MEASURING = ("tune", "evaluate", "sweeps", "timing")  # digests of what makes rows
AUDITED = ("epsilon", "controls", "tuning")  # tables of the audit
FORMATS = {  # of products: the first is shown in Snakemake's report
    "figures": ("png", "pdf", "svg", "csv", "json"),
    "tables": ("md", "csv"),
}
TARGETS = {"figures": ".png", "tables": ".csv"}  # the format that is waited for


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
        return digest([*self.row_digests(paper).items()])

    def drawing(self, paper: str, job: Job) -> str:
        """The products of a drawing job with their digests, as an override."""
        products = (each.split("/") for each in job.products)
        keys = (f"{kind}/{paper}/{name}" for kind, name in products)
        pairs = zip(job.products, keys, strict=True)
        return f"[{','.join(f'{each}@{self.digests[key]}' for each, key in pairs)}]"

    def to_json(self) -> dict[str, Any]:
        """The graph as a JSON value."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Graph:
        """The graph of what ``to_json`` gave.

        Raises
        ------
        TypeError, KeyError
            For any other value.
        """
        jobs = {name: Job(**job) for name, job in value["jobs"].items()}
        return cls(**{**value, "jobs": jobs})
