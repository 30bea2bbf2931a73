"""What Snakemake has to make: jobs and products of the papers, with their digests.

Light to import: a start that finds the run table kept reads nothing else.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dperm.locate import ConfigError, available
from dperm.store.files import digest
from dperm.validation import one_of

MEASURING = ("tune", "evaluate", "sweeps", "timing")  # stages that make rows
AUDITED = ("epsilon", "controls", "tuning")  # tables of the audit
DRAWN = {  # kinds of products: where they go, and as what
    "figures": ("figures", ("png", "pdf", "svg", "csv", "json")),
    "tables": ("results", ("md", "csv")),
}


@dataclass
class PaperTable:
    """Jobs and products of one paper."""

    problems: list[str]
    runs: list[tuple[str, str]]
    figures: list[str]
    tables: list[str]
    sweeps: dict[str, list[str]]  # name: problems it needs
    problems_of: dict[str, list[str]]  # figures/name or tables/name: what it shows
    sweeps_of: dict[str, list[str]]
    prepared: dict[str, list[str]]  # name of a sweep: problems whose arrays it needs
    tuned: dict[str, list[str]]  # name of a sweep: problem/solver it starts from
    clocked: list[str] = field(default_factory=list)  # problem/solver that are timed
    timed: list[str] = field(default_factory=list)  # figures and tables of seconds
    alone: list[str] = field(
        default_factory=list
    )  # sweeps that run with nothing beside


@dataclass
class RunTable:
    """Everything the Snakefile needs to know.

    Attributes
    ----------
    folder : str
        Of the scale, below results/ and figures/; empty at full scale.
    dataset_of : dict
        Problem to data set.
    problem_of : dict
        Data set to the first problem that uses it.
    digests : dict
        ``stage/name`` to the digest of the sections that stage reads.
    work : dict
        ``paper/problem/solver`` to the passes over the data of all its lanes,
        ``paper/sweeps/name`` to its points times their replicates.
    files : dict
        ``file path`` of the reader's own data to its digest; empty where there is none.
    """

    folder: str
    papers: dict[str, PaperTable] = field(default_factory=dict)
    dataset_of: dict[str, str] = field(default_factory=dict)
    problem_of: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    work: dict[str, float] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    def below(self, top: str) -> str:
        """A top folder with the scale's below it, ending in a slash."""
        return f"{top}/{self.folder}/" if self.folder else f"{top}/"

    def behind(self, paper: str, product: str) -> list[str]:
        """Files that ``figures/<name>`` or ``tables/<name>`` is made of."""
        table = self.papers[paper]
        kind, name = product.split("/")
        known = [*getattr(table, kind)]
        one_of(f"conf/paper/{paper}/paper.yaml: {kind}", name, known)
        sweeps, problems = table.sweeps_of[product], table.problems_of[product]
        timing = [self.timing(paper)] if product in table.timed else []
        return self._solved(paper, problems) + self._swept(paper, sweeps) + timing

    def timing(self, paper: str) -> str:
        """The file of a paper's timings."""
        return f"{self.below('results')}{paper}/timing.parquet"

    def clocked(self, paper: str) -> list[str]:
        """Files that a paper's timings are made of."""
        return [
            f"{self.below('results')}{paper}/{pair}/evaluate.parquet"
            for pair in self.papers[paper].clocked
        ]

    def batches(self, paper: str) -> list[list[str]]:
        """Figures and tables in groups that are made of the same files."""
        table, found = self.papers[paper], dict[tuple[str, ...], list[str]]()
        for product in (
            *(f"figures/{name}" for name in table.figures),
            *(f"tables/{name}" for name in table.tables),
        ):
            found.setdefault(tuple(self.behind(paper, product)), []).append(product)
        return list(found.values())

    def asked(self, paper: str, products: Iterable[str]) -> str:
        """What ``draw`` is told of figures and tables: their digests, for a shell."""
        known = (f"{each}@{self.digests[_of(each, paper)]}" for each in products)
        return quoted([f"[{','.join(known)}]"])

    def drawn(self, paper: str, product: str) -> list[str]:
        """Files of ``figures/<name>`` or ``tables/<name>``, the first for a report."""
        kind, name = product.split("/")
        top, endings = DRAWN[kind]
        return [f"{self.below(top)}{paper}/{name}.{ending}" for ending in endings]

    def shown(self, paper: str, products: Iterable[str]) -> list[str]:
        """Files of figures and tables that a report shows: one of each."""
        return [self.drawn(paper, each)[0] for each in products]

    def beside(self, paper: str, products: Iterable[str]) -> list[str]:
        """The other files of figures and tables."""
        return [file for each in products for file in self.drawn(paper, each)[1:]]

    def read(self, paper: str, product: str) -> list[str]:
        """Digests of what ``figures/<name>`` or ``tables/<name>`` is made of."""
        table = self.papers[paper]
        solved = [
            f"{stage}/{paper}/{problem}/{solver}"
            for problem, solver in table.runs
            if problem in table.problems_of[product]
            for stage in ("tune", "evaluate")
        ]
        swept = [f"sweeps/{paper}/{name}" for name in table.sweeps_of[product]]
        timing = [f"timing/{paper}"] if product in table.timed else []
        return [self.digests[key] for key in (*solved, *swept, *timing)]

    def products(self, paper: str) -> list[str]:
        """All files of a paper."""
        table = self.papers[paper]
        made = [
            f"{self.below('figures')}{paper}/{name}.png" for name in table.figures
        ] + [f"{self.below('results')}{paper}/{name}.csv" for name in table.tables]
        return made + self.measured(paper)

    def measured(self, paper: str) -> list[str]:
        """Files of a paper's rows, of which all else is made."""
        table = self.papers[paper]
        every = self._solved(paper, table.problems) + self._swept(paper, table.sweeps)
        return every + ([self.timing(paper)] if table.clocked else [])

    def stages(self, paper: str) -> list[tuple[str, str]]:
        """The stages that make a paper's rows, each with its digest."""
        known = (f"{stage}/{paper}" for stage in MEASURING)
        starts = tuple(f"{name}/" for name in known)
        return [
            (key, made)
            for key, made in sorted(self.digests.items())
            if f"{key}/".startswith(starts)
        ]

    def made(self, paper: str) -> str:
        """Digest of all code and configuration behind a paper's rows."""
        return digest(self.stages(paper))

    def swept_from(self, paper: str, sweep: str) -> list[str]:
        """Files that a sweep reads."""
        table = self.papers[paper]
        optima = [f"data/optimum/{name}/optimum.json" for name in table.sweeps[sweep]]
        arrays = [f"data/prepared/{name}/meta.json" for name in table.prepared[sweep]]
        folder = f"{self.below('results')}{paper}"
        tuned = [f"{folder}/{pair}/tune.parquet" for pair in table.tuned[sweep]]
        return optima + arrays + tuned

    def _solved(self, paper: str, problems: Iterable[str]) -> list[str]:
        return [
            f"{self.below('results')}{paper}/{problem}/{solver}/{stage}.parquet"
            for problem, solver in self.papers[paper].runs
            if problem in problems
            for stage in ("tune", "evaluate")
        ]

    def _swept(self, paper: str, names: Iterable[str]) -> list[str]:
        folder = f"{self.below('results')}{paper}/sweeps"
        return [f"{folder}/{name}.parquet" for name in names]

    def audited(self) -> list[str]:
        """Tables of the audit that the report waits for; none where all is small."""
        if self.folder:
            return []
        return [f"{self.below('results')}audit/{name}.csv" for name in AUDITED]

    def behind_audit(self, part: str) -> list[str]:
        """Files that a solver's audit or a table of the audit is made of."""
        folder = self.below("results")
        if part == "epsilon":
            names = available("solver")
            return [f"{folder}audit/solvers/{name}.csv" for name in names]
        if part == "tuning":
            return [
                f"{folder}{paper}/{problem}/{solver}/tune.parquet"
                for paper, table in self.papers.items()
                for problem, solver in table.runs
            ]
        return []

    def to_json(self) -> dict[str, Any]:
        """The table as a JSON value."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> RunTable:
        """The table of what ``to_json`` gave.

        Raises
        ------
        TypeError, KeyError
            For any other value.
        """
        made = cls(**value)
        for name, paper in value["papers"].items():
            made.papers[name] = PaperTable(**paper)
            made.papers[name].runs = [(one, other) for one, other in paper["runs"]]
        return made


def _of(product: str, paper: str) -> str:
    """The key of a product's digest."""
    return product.replace("/", f"/{paper}/", 1)


def overrides(asked: dict[str, Any], command: Sequence[str] = ()) -> list[str]:
    """Hydra overrides that Snakemake's ``--config`` asks for.

    Parameters
    ----------
    asked : dict
        ``scale``, and ``set``: several, with blanks between them, quoted as in a shell.
    command : sequence of str
        ``sys.argv``, from which ``set`` is taken as it was given: Snakemake cuts quotes
        off its ends and reads the rest as YAML, to which `` #`` begins a comment.

    Raises
    ------
    ConfigError
        For a key that is neither ``scale`` nor ``set``, or a quote that is not closed.
    """
    for key in asked:
        one_of("--config", key, ("scale", "set"))
    text = asked.get("set", "")
    given = [word[4:] for word in command if word.startswith("set=") and text != ""]
    try:
        words = shlex.split(given[-1] if given else str(text or ""))
    except ValueError as error:
        raise ConfigError(
            f"--config: set: {text}: expected quotes as in a shell: {error}"
        ) from error
    return [f"scale={asked.get('scale', 'full')}", *words]


def quoted(overrides: list[str]) -> str:
    """Overrides for a shell's command line, of which the shell changes no letter."""
    return shlex.join(overrides)


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
    asked = {"paper": "paper", "problem": "problem", "solver": "solver"}
    asked["name"] = "product"
    return " ".join(
        f"{key}={getattr(names, name)}"
        for name, key in asked.items()
        if hasattr(names, name)
    )


def begin(workflow: Any) -> None:
    """Note when a workflow began, for its manifest, and have it look when a job ends.

    With a limit on jobs in a timespan, which it has by itself, Snakemake leaves a timer
    for each job that ended, and each fires every second until the end.
    """
    os.environ["DPERM_STARTED"] = str(time.monotonic())
    workflow.scheduler.job_rate_limiter = None


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


def drawing(paper: str, product: str) -> str:
    """The name of the rule that draws a product and those of the same files."""
    return f"draw_{paper}_{product}".replace("/", "_")
