"""The jobs of papers: what each reads, writes and depends on.

This is the only place that states what a file is made of. The Snakefile turns the jobs
into rules. The key of a job is a digest of its settings, of its code and of the keys of
the jobs whose files it reads; it is a parameter of the rule, so that Snakemake runs a
job again if one of these changed. A stage that runs by itself asks for the jobs that it
needs: they are made when they are asked for, each once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dperm.core.experiment import grid, plan, schema
from dperm.core.experiment.config import key_of, read, settings, with_paper
from dperm.core.experiment.files import digest
from dperm.core.experiment.locate import ConfigError, available, group_file
from dperm.core.experiment.validation import check_clips, one_of, paper_file
from dperm.data.fetching import contents, reading_code
from dperm.pipeline import checks, digests, products
from dperm.pipeline.digests import code, priced
from dperm.pipeline.products import FORMATS

AUDITED = {  # tables of the audit to the functions that make their numbers
    "epsilon": ("dperm.pipeline.auditing:_epsilon",),
    "tuning": ("dperm.pipeline.auditing:_tuned", "dperm.pipeline.auditing:_costs"),
}
PREPARING = ("dperm.data.preparing:_make",)
SOLVING = ("dperm.core.erm.optimum:solve", "dperm.pipeline.inputs:load_problem")
CHOOSING = (
    *("dperm.core.experiment.grid:points", "dperm.core.experiment.grid:thin"),
    *("dperm.core.experiment.results:best", "dperm.core.experiment.unit:Job"),
    "dperm.core.experiment.tune:evaluated_settings",
)
STAGED = "dperm.core.experiment.tune:two_stages"
SAVING = {
    "figures": "dperm.present.drawing:save",
    "tables": "dperm.present.tables:save",
}
REPORTING = ("dperm.report.claims:write", "dperm.report.page:report")
AUDITING = ("dperm.audit.tables:solver", "dperm.compare.audited:mechanisms")
TARGETS = {"figures": ".png", "tables": ".csv"}  # the format that targets wait for
# Stages whose numbers depend on the versions of libraries, unlike those that draw.
VERSIONED = ("prepare", "optimum", "solve", "sweep", "timing", "audit")


@dataclass(frozen=True)
class Stage:
    """A rule of the Snakefile: one job for all values of its wildcards."""

    name: str  #: pattern of the name of a job, its log and its benchmark, by wildcards
    #: patterns of the output files; those of ``draw`` differ from job to job
    outputs: tuple[str, ...] = ()
    priority: int = 0  #: higher for stages that many jobs wait for

    @property
    def wildcards(self) -> list[str]:
        """Names of the wildcards."""
        return re.findall(r"{(\w+)}", self.name)

    def patterns(self, results: str) -> list[str]:
        """Patterns of the outputs; ``results`` is a folder that ends in a slash."""
        return [pattern.replace("{results}", results) for pattern in self.outputs]


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
    "claims": Stage("", ("{results}claims.csv", "{results}claims.md")),
    "report": Stage("", ("{results}report/index.html",)),
}


@dataclass
class Job:
    """A job of the Snakefile."""

    inputs: list[str]
    outputs: list[str]
    key: str  #: digest of its settings and code, and of the keys of what it reads
    #: for ``solve``, the passes over the data of all its lanes together
    work: float | None = None
    #: for ``draw``, keys of ``figures/<name>`` and ``tables/<name>``
    products: dict[str, str] = field(default_factory=dict)
    #: files that Snakemake's report shows, one per product
    shown: list[str] = field(default_factory=list)
    alone: bool = False  #: whether no other job may run with it, because it is timed


@dataclass
class Jobs:
    """Jobs of some papers at a scale."""

    folder: str  #: of the scale, below results/ and figures/; empty at full scale
    papers: list[str] = field(default_factory=list)
    #: ``stage/name`` to its job; within a paper, jobs follow those they wait for
    jobs: dict[str, Job] = field(default_factory=dict)
    makers: dict[str, Job] = field(default_factory=dict)  #: by the files they write
    dataset_of: dict[str, str] = field(default_factory=dict)  #: problem to data set

    def add(
        self,
        stage: str,
        *values: str,
        of: Any,
        reads: Iterable[str] = (),
        keys: list[str] | None = None,
        **other: Any,
    ) -> Job:
        """Add a job that depends on the value ``of``.

        Parameters
        ----------
        values : str
            Values of the stage's wildcards.
        reads : iterable of str
            Files; each must have a job that writes it.
        keys : list of str, optional
            Keys of what it reads, where these are not the keys of the files' jobs.
        """
        inputs = [*reads]
        for file in inputs:
            one_of("file", file, self.makers)
        if keys is None:
            keys = [self.makers[file].key for file in inputs]
        outputs = self.files(stage, *values)
        job = Job(inputs, outputs, digest([of, keys]), **other)
        self.jobs["/".join((stage, *values))] = job
        self.makers |= dict.fromkeys(outputs, job)
        return job

    def files(self, stage: str, *values: str) -> list[str]:
        """The files that a job of a stage writes."""
        names = dict(zip(STAGES[stage].wildcards, values, strict=True))
        patterns = STAGES[stage].patterns(self.below("results"))
        return [pattern.format(**names) for pattern in patterns]

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

    def param(self, stage: str, *values: str) -> str:
        """What the rule of a job has as its parameter: its key, and versions."""
        key = self.job(stage, *values).key
        return digests.solved(key) if stage in VERSIONED else key

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

    def rows(self, paper: str) -> list[str]:
        """Files of a paper's rows, from which its products are made."""
        jobs = self.of_paper(paper, "solve", "sweep", "timing")
        return [file for job in jobs for file in job.outputs]

    def products(self, paper: str) -> list[str]:
        """Files that a paper's target waits for: one per product, and all rows."""
        drawn = self.of_paper(paper, "draw")
        waited = [
            next(file for file in files_of(self, paper, name) if file.endswith(ending))
            for job in drawn
            for name in job.products
            for ending in [TARGETS[name.split("/")[0]]]
        ]
        return waited + self.rows(paper)

    def targets(self) -> dict[str, list[str]]:
        """Files of the targets of a command line: every paper, and the audit."""
        found = {
            paper: [*self.files("complete", paper), *self.products(paper)]
            for paper in self.papers
        }
        return {**found, "audit": self.files("audit", "epsilon")}


def compose(papers: list[str], overrides: list[str]) -> Jobs:
    """All jobs of papers, after checks of the whole configuration.

    Parameters
    ----------
    papers : list of str
        The papers to plan; no other is read. Audit, claims and report are added only
        if these are all papers.
    overrides : list of str
        Hydra overrides for all of them, including ``scale=...``.

    Raises
    ------
    ConfigError
        For any error in the configuration, before a single job runs.
    """
    digests.SECTIONS.clear()  # of files as they were
    base = settings(overrides)
    jobs, sections = Jobs(base.scale.folder), dict[tuple[str, str], Any]()
    printed = []
    for name in papers:
        paper = Paper(with_paper(base, name), jobs, sections)
        paper.all()
        printed.append(paper.printed())
    if {*papers} == {*available("paper")}:
        _add_report(jobs, printed)
    return jobs


class Paper:
    """Makes the jobs of a paper, each with those that it needs.

    Parameters
    ----------
    config : Config
        With the paper, the scale and the overrides of all sections.
    jobs : Jobs, optional
        To which they are added.
    sections : dict, optional
        Sections of problems and solvers that have been read and checked, by group and
        name.
    """

    def __init__(
        self,
        config: schema.Config,
        jobs: Jobs | None = None,
        sections: dict[tuple[str, str], Any] | None = None,
    ):
        self.config, self.name = config, config.paper.name
        self.jobs = Jobs(config.scale.folder) if jobs is None else jobs
        self._sections = {} if sections is None else sections
        self._where = f"conf/{group_file('paper', self.name)}"

    def all(self) -> None:
        """Add all jobs of the paper."""
        self.jobs.papers.append(self.name)
        paper = self.config.paper
        problems = plan.problem_names(self.config)
        solvers = [solver for _, solver in plan.runs(self.config)]
        for what in paper.sweeps.values():
            problems = [*problems, *products.sweep_problems(self.config, what)]
            problems += products.sweep_prepared(self.config, what)
            solvers += products.sweep_points(self.config, what).values("solver")
        digests.ahead("problem", problems)
        digests.ahead("solver", solvers)
        for problem in plan.problem_names(self.config):
            self.optimum(problem)
        for run in plan.runs(self.config):
            self.solve(*run)
        for name in paper.sweeps:
            self.sweep(name)
        shown = (*paper.figures.values(), *paper.tables.values())
        if any(product.timed for product in shown):
            self.timing()
        for kind in FORMATS:
            for name in getattr(paper, kind):
                self.draw(kind, name)
        reads = self.jobs.products(self.name)
        self.jobs.add("complete", self.name, of=[], reads=reads)

    # --- data -------------------------------------------------------------------------

    def problem(self, name: str) -> schema.Problem:
        """A problem's section, read and checked."""
        return self._section("problem", name, checks.problem)

    def solver(self, name: str) -> schema.Solver:
        """A solver's section, read and checked."""
        return self._section("solver", name, checks.solver)

    def _section(self, group: str, name: str, check: Any) -> Any:
        if (group, name) not in self._sections:
            section, given = getattr(self.config, group), self.config.overrides
            if section is None or section.name != name:
                own = [text for text in given if key_of(text).startswith(f"{group}.")]
                section = (
                    read(group, name, own) if own else digests.section(group, name)
                )
            check(section)
            self._sections[group, name] = section
        return self._sections[group, name]

    def fetch(self, problem: schema.Problem) -> Job:
        """The job that fetches a problem's data set.

        The reader's code counts only if no digest of the arrays is declared.
        """
        dataset = problem.dataset
        sources = [asdict(source) for source in dataset.sources]
        of = [dataset.digest, sources, asdict(dataset.reader), contents(dataset)]
        of.append(reading_code(dataset))
        known = self.jobs.jobs.get(f"fetch/{dataset.name}")
        if known is not None and known.key != digest([of, []]):
            raise ConfigError(
                f"conf/problem/{problem.name}.yaml: dataset.name: expected another "
                f"name, found {dataset.name!r}, the other data of "
                f"{self.jobs.problem_of(dataset.name)}"
            )
        self.jobs.dataset_of[problem.name] = dataset.name
        return known or self.jobs.add("fetch", dataset.name, of=of)

    def prepare(self, name: str) -> Job:
        """The job that prepares a problem; a declared digest stands for the data."""
        if f"prepare/{name}" not in self.jobs.jobs:
            problem = self.problem(name)
            fetch = self.fetch(problem)
            of = [asdict(problem.preparation), code(*PREPARING)]
            keys = [problem.dataset.digest or fetch.key]
            self.jobs.add("prepare", name, of=of, reads=fetch.outputs, keys=keys)
        return self.jobs.job("prepare", name)

    def optimum(self, name: str) -> Job:
        """The job that solves a problem without privacy."""
        if f"optimum/{name}" not in self.jobs.jobs:
            problem, reads = self.problem(name), self.prepare(name).outputs
            made = priced(*SOLVING, spelt=[problem.loss])
            of = [problem.loss, asdict(problem.penalty), made]
            self.jobs.add("optimum", name, of=of, reads=reads)
        return self.jobs.job("optimum", name)

    # --- rows -------------------------------------------------------------------------

    def solve(self, problem: str, solver: str) -> Job:
        """The job that tunes and evaluates a solver on a problem.

        Raises
        ------
        ConfigError
            If the solver cannot run on the problem.
        """
        values = (self.name, problem, solver)
        if "/".join(("solve", *values)) in self.jobs.jobs:
            return self.jobs.job("solve", *values)
        config = replace(
            self.config, problem=self.problem(problem), solver=self.solver(solver)
        )
        paper, chosen = config.paper, config.solver
        points, kinds = plan.grid_points(config), config.paper.calibrations
        checks.require_able(paper, config.problem, chosen)
        check_clips(points, f"{self._where}: runs.{solver}.grid", config.problem)
        design, loss = plan.design(config), config.problem.loss
        of = [
            *(asdict(config.problem.privacy), plan.label(config, solver)),
            *(chosen.name, chosen.algorithm, chosen.options),
            *(repr(points), kinds, config.seed, design.replicates, design.fresh),
            *(design.race, design.evaluated, code(*CHOOSING)),
            code(STAGED) if design.race else "",
            digests.lanes(chosen.algorithm, loss),
            digests.noise(chosen.algorithm, kinds, loss),
        ]
        work = points.total("passes") * design.replicates * len(kinds)
        reads = self.optimum(problem).outputs
        return self.jobs.add("solve", *values, of=of, reads=reads, work=work)

    def sweep(self, name: str) -> Job:
        """The job of a sweep.

        Raises
        ------
        ConfigError
            If its function or its options do not exist, or its points need what the
            paper does not run.
        """
        if f"sweep/{self.name}/{name}" in self.jobs.jobs:
            return self.jobs.job("sweep", self.name, name)
        config, what = self.config, self.config.paper.sweeps[name]
        products.check_kind(config, "sweeps", f"sweeps.{name}", what.kind)
        products.check_options(config, "sweeps", name)
        points = products.sweep_points(config, what)
        self._check_axes(name, what, points)
        solved = [*map(self.optimum, products.sweep_problems(config, what))]
        solved += map(self.prepare, products.sweep_prepared(config, what))
        tuned = [self._tuned(name, *run) for run in products.sweep_tuned(config, name)]
        solvers = [self.solver(solver) for solver in sorted(points.values("solver"))]
        of = [
            *(asdict(what), repr(points), config.seed, config.scale.replicates),
            [[solver.algorithm, solver.options] for solver in solvers],
            digests.swept(config, what, points.values("solver")),
        ]
        reads = [job.outputs[0] for job in [*solved, *tuned]]
        values = (self.name, name)
        return self.jobs.add("sweep", *values, of=of, reads=reads, alone=what.timed)

    def _check_axes(self, name: str, what: schema.Sweep, points: grid.Grid) -> None:
        where = f"{self._where}: sweeps.{name}.together"
        for axis in what.together:
            one_of(where, axis, sorted({key for at in points for key in at}))

    def _tuned(self, sweep: str, problem: str, solver: str) -> Job:
        """The tuning that a sweep starts from; it must be a run of the paper."""
        if (problem, solver) not in plan.runs(self.config):
            raise ConfigError(
                f"{self._where}: sweeps.{sweep}.grid: expected solvers on problems of "
                f"runs and problems, found {solver} on {problem}"
            )
        return self.solve(problem, solver)

    def timing(self) -> Job:
        """The job that times the runs whose seconds a product shows."""
        if f"timing/{self.name}" not in self.jobs.jobs:
            clocked = products.clocked(self.config)
            reads = [self.solve(*run).outputs[1] for run in clocked]
            kinds = [sorted(found) for found in clocked.values()]
            of = [kinds, self.config.paper.clocked]
            self.jobs.add("timing", self.name, of=of, reads=reads, alone=True)
        return self.jobs.job("timing", self.name)

    # --- products ---------------------------------------------------------------------

    def draw(self, kind: str, name: str) -> Job:
        """The job that makes a figure or a table, with all others of the same files.

        Raises
        ------
        ConfigError
            If its function or its options do not exist.
        """
        config, jobs, product = self.config, self.jobs, f"{kind}/{name}"
        for job in jobs.of_paper(self.name, "draw"):
            if product in job.products:
                return job
        what = getattr(config.paper, kind)[name]
        products.check_kind(config, kind, f"{kind}.{name}", what.kind)
        products.check_options(config, kind, name)
        inputs = self.inputs(kind, name)
        titles = [self.problem(one).title for one in plan.problem_names(config)]
        keys = [jobs.makers[file].key for file in inputs]
        module = products.module_of(config, kind, what.kind)
        entries, spelt = (f"{module}:{what.kind}", SAVING[kind]), asdict(what)
        made = priced(*entries, spelt=digests.strings(spelt))
        texts = _texts(config.paper, config.paper.published.values())
        of = digest([asdict(what), titles, keys, texts, made])
        for job in jobs.of_paper(self.name, "draw"):
            if job.inputs == inputs:
                break
        else:
            job = jobs.jobs[f"draw/{self.name}/{product}"] = Job(inputs, [], "")
        job.products[product] = of
        job.key = " ".join(job.products.values())
        files = files_of(jobs, self.name, product)
        job.outputs += files
        job.shown.append(files[0])
        jobs.makers |= dict.fromkeys(files, job)
        return job

    def inputs(self, kind: str, name: str) -> list[str]:
        """Files of rows that a figure or a table is made of."""
        product = getattr(self.config.paper, kind)[name]
        made = [self.solve(*run) for run in products.product_runs(self.config, product)]
        made += map(self.sweep, product.sweeps)
        made += [self.timing()] if product.timed else []
        return [file for job in made for file in job.outputs]

    def printed(self) -> str:
        """Digest of the paper's printed numbers, its claims and its own proofs."""
        paper = self.config.paper
        texts = _texts(paper, [*paper.published.values(), paper.claims or ""])
        own = products.modules(self.config, "proofs")
        return digest([texts, priced(*own) if own else ""])


def files_of(jobs: Jobs, paper: str, product: str) -> list[str]:
    """Files of ``figures/<name>`` or ``tables/<name>``."""
    kind, name = product.split("/")
    top = jobs.below("figures" if kind == "figures" else "results")
    return [f"{top}{paper}/{name}.{ending}" for ending in FORMATS[kind]]


def _texts(paper: schema.Paper, files: Iterable[str]) -> list[str]:
    paths = [paper_file(paper, file) for file in files if file]
    return [path.read_text(encoding="utf-8") for path in paths if path is not None]


# --- all papers -----------------------------------------------------------------------


def _add_report(jobs: Jobs, printed: list[str]) -> None:
    """Add the jobs of all papers together."""
    add_audits(jobs)
    drawn = [job for paper in jobs.papers for job in jobs.of_paper(paper, "draw")]
    rows = [file for paper in jobs.papers for file in jobs.products(paper)]
    of = [*printed, *(job.key for job in drawn), priced(*REPORTING)]
    claims = jobs.add("claims", of=of, reads=rows)
    parts = () if jobs.folder else AUDITED  # the report of a small scale has no audit
    audited = [file for part in parts for file in jobs.files("audit", part)]
    jobs.add("report", of=[], reads=[claims.outputs[0], *audited])


def add_audits(jobs: Jobs) -> None:
    """Add an audit of every solver, and the tables of the audit."""
    audits = []
    for name in available("solver"):
        solver = digests.solver_of(name)
        made = priced(*AUDITING, digests.place(solver.algorithm))
        of = [solver.algorithm, solver.options, made]
        audits += jobs.add("audit", f"solvers/{name}", of=of).outputs
    solved = [job for paper in jobs.papers for job in jobs.of_paper(paper, "solve")]
    inputs = {"epsilon": audits, "tuning": [job.outputs[0] for job in solved]}
    for part, entries in AUDITED.items():
        jobs.add("audit", part, of=priced(*entries), reads=inputs[part])
