"""The jobs of papers: what each reads, writes and depends on.

This is the only place that states what a file is made of. The Snakefile turns the jobs
into rules. The key of a job is a digest of its settings, of its code and of the keys of
the jobs whose files it reads; it is a parameter of the rule, so that Snakemake runs a
job again if one of these changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from dperm.core.experiment import grid, plan, schema
from dperm.core.experiment.config import key_of, paper_file, settings, with_papers
from dperm.core.experiment.files import digest
from dperm.core.experiment.locate import ConfigError, available, group_file
from dperm.core.experiment.validation import one_of
from dperm.data.fetching import made_of
from dperm.pipeline import checks, digests, products
from dperm.pipeline.digests import code, place, priced
from dperm.pipeline.products import FORMATS

AUDITED = {  # tables of the audit to the functions that make their numbers
    "epsilon": ("dperm.pipeline.auditing:_epsilon",),
    "tuning": ("dperm.pipeline.auditing:_tuned",),
}
FULL = "full"  # the scale of the papers, whose results Git holds
PREPARING = "dperm.data.preparing:_make"
SOLVING = ("dperm.core.erm.optimum:solve", "dperm.pipeline.inputs:load_problem")
CHOOSING = (
    *("dperm.core.experiment.grid:points", "dperm.core.experiment.grid:thin"),
    *("dperm.core.experiment.results:best", "dperm.core.experiment.unit:Job"),
    "dperm.core.experiment.tune:evaluated_settings",
)
STAGED = "dperm.core.experiment.tune:two_stages"
SAVING = {
    "figures": "dperm.present.drawing:save",
    "tables": "dperm.core.experiment.files:write_csv",
}
REPORTING = ("dperm.report.claims:write", "dperm.report.page:report")
AUDITING = ("dperm.audit.tables:solver", "dperm.compare.audited:mechanisms")


class Stage(NamedTuple):
    """A rule of the Snakefile: one job for all values of its wildcards."""

    name: str  #: pattern of the name of a job, its log and its meter, by wildcards
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


RUN = "{results}{paper}/{problem}/{solver}"
STAGES = {
    "fetch": Stage("{dataset}", ("data/fetched/{dataset}/fetch.json",), 30),
    "prepare": Stage("{problem}", ("data/prepared/{problem}/meta.json",), 30),
    "optimum": Stage("{problem}", ("data/optimum/{problem}/optimum.json",), 30),
    "solve": Stage(
        "{paper}/{problem}/{solver}",
        (f"{RUN}/tune.parquet", f"{RUN}/evaluate.parquet"),
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
    work: float = 0.0  #: of ``solve``, the passes over the data of all its lanes
    alone: bool = False  #: whether it is timed, and cores beside it are left idle
    #: of ``draw``, the ``figures/<name>`` and ``tables/<name>``
    products: list[str] = field(default_factory=list)


@dataclass
class Jobs:
    """Jobs of some papers at a scale."""

    folder: str  #: of the scale, below results/ and figures/; empty at full scale
    papers: list[str] = field(default_factory=list)
    #: ``stage/name`` to its job; within a paper, jobs follow those they wait for
    jobs: dict[str, Job] = field(default_factory=dict)
    makers: dict[str, Job] = field(default_factory=dict)  #: by the files they write
    dataset_of: dict[str, str] = field(default_factory=dict)  #: problem to data set
    #: what jobs cost in an earlier run, by their names; no key depends on it
    costs: dict[str, dict[str, Any]] = field(default_factory=dict)
    cores: int = 1  #: of the run; no key depends on it

    def add(
        self, stage: str, *values: str, of: Any, reads: Iterable[str] = (), **other: Any
    ) -> Job:
        """Add the job with these values of the stage's wildcards.

        It depends ``of`` something, besides the jobs of the files that it reads.
        """
        inputs = [*reads]
        keys = other.pop("keys", [self.makers[file].key for file in inputs])
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
        """The job of a stage with these values of its wildcards."""
        return self.jobs["/".join((stage, *values))]

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

    def products(self, paper: str) -> list[str]:
        """Files that a paper's target waits for: one per product, and all rows."""
        drawn = self.of_paper(paper, "draw")
        names = [name for job in drawn for name in job.products]
        rows = self.of_paper(paper, "solve", "sweep", "timing")
        shown = [self.formats(paper, name)[0] for name in names]
        return [*shown, *(file for job in rows for file in job.outputs)]

    def formats(self, paper: str, product: str) -> list[str]:
        """Files of ``figures/<name>`` or ``tables/<name>``."""
        kind, name = product.split("/")
        top = self.below("figures" if kind == "figures" else "results")
        return [f"{top}{paper}/{name}.{ending}" for ending in FORMATS[kind]]

    def targets(self) -> dict[str, list[str]]:
        """Files of the targets of a command line: every paper, and the audit."""
        found = {
            paper: [*self.files("complete", paper), *self.products(paper)]
            for paper in self.papers
        }
        return {**found, "audit": self.files("audit", "epsilon")}


def compose(papers: list[str], overrides: list[str]) -> Jobs:
    """All jobs of papers, after checks of the whole configuration.

    No other paper is read. Audit, claims and report are added only if these are all.
    ``overrides`` are Hydra's for all of them, including ``scale=...``.

    Raises ConfigError for any error in the configuration, before a single job runs.
    """
    digests.SECTIONS.clear()  # of files as they were
    base = settings(overrides)
    if bool(base.scale.folder) != (base.scale.name != FULL):
        raise ConfigError(
            f"conf/scale/{base.scale.name}.yaml: folder: expected one of its own, as "
            f"{FULL} alone writes to results/ itself, found {base.scale.folder!r}"
        )
    jobs, printed = Jobs(base.scale.folder, papers), list[str]()
    configs = with_papers(base, papers)
    _read_ahead(base, configs)
    for config in configs:
        _add_paper(jobs, config)
        texts = _texts(config.paper, config.paper.claims or "")
        own = products.modules(config, "proofs")
        printed.append(digest([texts, priced(*own) if own else ""]))
    if {*papers} == {*available("paper")}:
        _add_report(jobs, printed)
    return jobs


# --- one paper ------------------------------------------------------------------------


def _add_paper(jobs: Jobs, config: schema.Config) -> None:
    paper, timed = config.paper, products.clocked(config)
    for problem in plan.problem_names(config):
        add_problem(jobs, config, problem)
    for run in plan.runs(config):
        _add_run(jobs, config, *run)
    for name in paper.sweeps:
        _add_sweep(jobs, config, name)
    if timed:
        reads = [jobs.files("solve", paper.name, *run)[1] for run in timed]
        of = [[sorted(kinds) for kinds in timed.values()], paper.clocked]
        jobs.add("timing", paper.name, of=of, reads=reads, alone=True)
    for kind in FORMATS:
        for name in getattr(paper, kind):
            _add_product(jobs, config, kind, name)
    jobs.add("complete", paper.name, of=[], reads=jobs.products(paper.name))


def _section(config: schema.Config, group: str, name: str) -> Any:
    """The section of a problem or a solver with the overrides of the run."""
    chosen = getattr(config, group)
    if chosen is not None and chosen.name == name:
        getattr(checks, group)(chosen)
        return chosen
    return digests.section(group, name, *_own(config, group))


def _own(config: schema.Config, group: str) -> tuple[str, ...]:
    """The overrides of keys below a group."""
    given = config.overrides
    return tuple(text for text in given if key_of(text).startswith(f"{group}."))


def _read_ahead(base: schema.Config, configs: list[schema.Config]) -> None:
    """Read the sections of problems and solvers that papers need, all at once."""
    needed: dict[str, list[str]] = {"problem": [], "solver": []}
    for config in configs:
        needed["problem"] += plan.problem_names(config)
        needed["solver"] += [solver for _, solver in plan.runs(config)]
        for what in config.paper.sweeps.values():
            needed["problem"] += [*what.problems, *what.prepared]
            points = grid.points(what.grid, axes=None)
            needed["solver"] += grid.values(points, "solver")
    for group, names in needed.items():
        digests.ahead(group, names, _own(base, group))


def add_problem(jobs: Jobs, config: schema.Config, name: str) -> None:
    """Add the jobs that fetch, prepare and solve a problem without privacy.

    The reader's code counts only if no digest of the arrays is declared; a declared
    one stands for the data.
    """
    if name in jobs.dataset_of:
        return
    problem = _section(config, "problem", name)
    dataset = problem.dataset
    of: Any = made_of(dataset)
    known = jobs.jobs.get(f"fetch/{dataset.name}")
    if known is not None and known.key != digest([of, []]):
        raise ConfigError(
            f"conf/problem/{name}.yaml: dataset.name: expected another name, found "
            f"{dataset.name!r}, the other data of {jobs.problem_of(dataset.name)}"
        )
    jobs.dataset_of[name] = dataset.name
    fetch = known or jobs.add("fetch", dataset.name, of=of)
    of, keys = [asdict(problem.preparation), code(PREPARING)], [fetch.key]
    if dataset.digest:
        keys = [dataset.digest]
    prepare = jobs.add("prepare", name, of=of, reads=fetch.outputs, keys=keys)
    made = priced(*SOLVING, spelt=[problem.loss])
    of = [problem.loss, asdict(problem.penalty), made]
    jobs.add("optimum", name, of=of, reads=prepare.outputs)


def _add_run(jobs: Jobs, config: schema.Config, problem: str, solver: str) -> None:
    """Add the job that tunes and evaluates a solver on a problem."""
    chosen = _section(config, "solver", solver)
    spec = _section(config, "problem", problem)
    at = replace(config, problem=spec, solver=chosen)
    design, label = plan.design(at), plan.label(at, solver)
    points, kinds = design.points, design.calibrations
    checks.able(spec, chosen, f"{group_file('paper', at.paper.name)}: runs.{solver}")
    of = [
        *(asdict(spec.privacy), label, chosen.name, chosen.algorithm, chosen.options),
        *(repr(points), kinds, config.seed, design.replicates, design.fresh),
        *(design.race, design.hopeless, design.evaluated, code(*CHOOSING)),
        code(STAGED) if design.race else "",
        digests.lanes(chosen.algorithm, spec.loss),
        digests.noise(chosen.algorithm, kinds, spec.loss),
    ]
    work = sum(at["passes"] for at in points) * design.replicates * len(kinds)
    values, reads = (config.paper.name, problem, solver), jobs.files("optimum", problem)
    jobs.add("solve", *values, of=of, reads=reads, work=work)


def _add_sweep(jobs: Jobs, config: schema.Config, name: str) -> None:
    """Add the job of a sweep, with those of the problems that it needs."""
    what, paper = config.paper.sweeps[name], config.paper.name
    products.entry_of(config, "sweeps", name)
    points = grid.points(what.grid, axes=None)
    axes = sorted({key for at in points for key in at})
    for axis in what.together:
        one_of(f"{_where(config)}: sweeps.{name}.together", axis, axes)
    for problem in (*what.problems, *what.prepared):
        add_problem(jobs, config, problem)
    tuned = products.sweep_tuned(config, name)
    reads = [
        file for problem in what.problems for file in jobs.files("optimum", problem)
    ]
    reads += [
        file for problem in what.prepared for file in jobs.files("prepare", problem)
    ]
    reads += [jobs.files("solve", paper, *run)[0] for run in tuned]
    solvers = sorted(grid.values(points, "solver"))
    chosen = [_section(config, "solver", solver) for solver in solvers]
    of = [
        *(asdict(what), repr(points), config.seed, config.scale.replicates),
        [[solver.algorithm, solver.options] for solver in chosen],
        swept(config, name, solvers),
        surroundings(config, name, solvers),
    ]
    jobs.add("sweep", paper, name, of=of, reads=reads, alone=what.timed)


def surroundings(config: schema.Config, name: str, solvers: Iterable[str]) -> list[Any]:
    """Settings of other sections that a sweep's function may read.

    They are the privacy of its problems, and of its solvers the runs of the paper, what
    the scale keeps of their grids, and their labels.
    """
    sweep = config.paper.sweeps[name]
    problems = [*sweep.problems, *sweep.prepared]
    return [
        [asdict(_section(config, "problem", problem).privacy) for problem in problems],
        [repr(config.paper.runs.get(solver)) for solver in solvers],
        config.scale.keep,
        [plan.label(config, solver) for solver in solvers],
    ]


def _add_product(jobs: Jobs, config: schema.Config, kind: str, name: str) -> None:
    """Add a figure or a table to the job that makes all others of the same files."""
    paper, product = config.paper, f"{kind}/{name}"
    what, entry = getattr(paper, kind)[name], products.entry_of(config, kind, name)
    inputs = [path.as_posix() for path in products.read_by(config, what)]
    drawn = jobs.of_paper(paper.name, "draw")
    job = next((one for one in drawn if one.inputs == inputs), None)
    if job is None:
        job = jobs.jobs[f"draw/{paper.name}/{product}"] = Job(inputs, [], "")
    names, keys = plan.problem_names(config), [jobs.makers[one].key for one in inputs]
    titles = [_section(config, "problem", problem).title for problem in names]
    spelt = asdict(what)
    of = [job.key, spelt, titles, keys, _texts(paper)]
    of.append(priced(entry, SAVING[kind], spelt=digests.strings(spelt)))
    job.key = digest(of)
    job.products.append(product)
    job.outputs += jobs.formats(paper.name, product)
    jobs.makers |= dict.fromkeys(job.outputs, job)


def _where(config: schema.Config) -> str:
    return f"conf/{group_file('paper', config.paper.name)}"


def swept(config: schema.Config, name: str, solvers: Iterable[str]) -> str:
    """Digest of the code behind a sweep: its function and its points' solvers."""
    what = config.paper.sweeps[name]
    module = products.module_of(config, "sweeps", what.kind, f"sweeps.{name}")
    named = {place(digests.solver_of(solver).algorithm) for solver in solvers}
    problems = {*what.problems, *what.prepared}
    spelt = {digests.section("problem", problem).loss for problem in problems}
    spelt |= digests.strings(asdict(what))
    return priced(f"{module}:{what.kind}", *sorted(named), spelt=spelt)


def _texts(paper: schema.Paper, *more: str) -> list[str]:
    """The paper's printed numbers, and more of its files."""
    files = filter(None, [*paper.published.values(), *more])
    paths = [paper_file(paper, file) for file in files]
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
        of = [solver.algorithm, solver.options]
        of.append(priced(*AUDITING, place(solver.algorithm)))
        audits += jobs.add("audit", f"solvers/{name}", of=of).outputs
    solved = [job for paper in jobs.papers for job in jobs.of_paper(paper, "solve")]
    inputs = {"epsilon": audits, "tuning": [job.outputs[0] for job in solved]}
    for part, entries in AUDITED.items():
        jobs.add("audit", part, of=priced(*entries), reads=inputs[part])
