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
from pathlib import Path
from typing import Any, NamedTuple

from dperm.config import grid, schema
from dperm.config.config import paper_file, settings
from dperm.config.config import papers as papers_at
from dperm.config.locate import ConfigError, available, group_file
from dperm.config.run_spec import of_group
from dperm.config.validation import one_of
from dperm.data.fetching import source_digest
from dperm.experiments import checks, digests, makers, plan, scopes
from dperm.experiments.digests import code, place, priced
from dperm.experiments.makers import FORMATS
from dperm.storage.files import digest

IN_KEYS = "nothing"  # keys come out of it
FULL = "full"  # the scale of the papers, whose results Git holds
# The functions of the stages, whose code is in the keys with all that it reaches.
PREPARING = "dperm.experiments.inputs:prepare"
OPTIMISING = "dperm.experiments.inputs:optimum"
SOLVING = ("dperm.experiments.stages:solve", "dperm.experiments.stages:timing")
SWEEPING = "dperm.experiments.stages:SweepRun"
DRAWING = "dperm.experiments.products:draw"
WRITING = "dperm.storage.files:write_csv"
AUDITED = {  # tables of the audit to the functions that make their numbers
    "epsilon": ("dperm.experiments.auditing:_epsilon", WRITING),
    "tuning": ("dperm.experiments.auditing:_tuning", WRITING),
}
REPORTING = ("dperm.report.claims:write", "dperm.report.stage:report")
AUDITING = (
    "dperm.audit.tables:solver",
    "dperm.estimators.audited:mechanisms",
    "dperm.experiments.auditing:_solver",
)


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
        return [
            pattern.replace("{results}", results) for pattern in self.outputs
        ]


RUN = "{results}{paper}/{problem}/{solver}"
STAGES = {
    "fetch": Stage("{dataset}", ("data/fetched/{dataset}/fetch.json",), 30),
    "prepare": Stage("{problem}", ("data/prepared/{problem}/meta.json",), 30),
    "optimum": Stage(
        "{problem}", ("data/optimum/{problem}/optimum.json",), 30
    ),
    "solve": Stage(
        "{paper}/{problem}/{solver}",
        (f"{RUN}/tune.parquet", f"{RUN}/evaluate.parquet"),
        20,
    ),
    "sweep": Stage(
        "{paper}/{name}", ("{results}{paper}/sweeps/{name}.parquet",), 10
    ),
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
    #: of ``solve``, the passes over the data of all its settings
    work: float = 0.0
    #: whether it is timed, and cores beside it are left idle
    alone: bool = False
    code: list[str] = field(
        default_factory=list
    )  #: entry points, as far as kept
    spec: schema.Config = field(
        default_factory=schema.Config
    )  #: what it may read
    #: of ``draw``, the ``figures/<name>`` and ``tables/<name>``
    products: list[str] = field(default_factory=list)


@dataclass
class Jobs:
    """Jobs of some papers at a scale."""

    folder: (
        str  #: of the scale, below results/ and figures/; empty at full scale
    )
    papers: list[str] = field(default_factory=list)
    #: ``stage/name`` to its job; within a paper, jobs follow those they wait for
    jobs: dict[str, Job] = field(default_factory=dict)
    makers: dict[str, Job] = field(
        default_factory=dict
    )  #: by the files they write
    dataset_of: dict[str, str] = field(
        default_factory=dict
    )  #: problem to data set
    #: what jobs cost in an earlier run, by their names; no key depends on it
    costs: dict[str, dict[str, Any]] = field(default_factory=dict)
    cores: int = 1  #: of the run; no key depends on it

    def add(
        self,
        stage: str,
        *values: str,
        depends_on: Any,
        reads: Iterable[str] = (),
        **fields: Any,
    ) -> Job:
        """Add the job with these values of the stage's wildcards.

        It ``depends_on`` settings and code, and on the jobs of the files that it reads.
        """
        inputs = [*reads]
        keys = fields.pop("keys", [self.makers[file].key for file in inputs])
        outputs = self.files(stage, *values)
        job = Job(inputs, outputs, digest([depends_on, keys]), **fields)
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
        chosen = []
        for stage in stages:
            start = f"{stage}/{paper}/"
            for name, job in self.jobs.items():
                if f"{name}/".startswith(start):
                    chosen.append(job)
        return chosen

    def problem_of(self, dataset: str) -> str:
        """The first problem that uses a data set."""
        pairs = self.dataset_of.items()
        return next(problem for problem, used in pairs if used == dataset)

    def products(self, paper: str) -> list[str]:
        """Files that a paper's target waits for: one per product, and all rows."""
        files = []
        for job in self.of_paper(paper, "draw"):
            files += [self.formats(paper, name)[0] for name in job.products]
        for job in self.of_paper(paper, "solve", "sweep", "timing"):
            files += job.outputs
        return files

    def formats(self, paper: str, product: str) -> list[str]:
        """Files of ``figures/<name>`` or ``tables/<name>``."""
        collection, name = product.split("/")
        folder = "figures" if collection == "figures" else "results"
        top = self.below(folder)
        return [
            f"{top}{paper}/{name}.{ending}" for ending in FORMATS[collection]
        ]

    def targets(self) -> dict[str, list[str]]:
        """Files of the targets of a command line: every paper, and the audit."""
        files = {
            paper: [*self.files("complete", paper), *self.products(paper)]
            for paper in self.papers
        }
        return {**files, "audit": self.files("audit", "epsilon")}


def compose(
    papers: list[str], overrides: list[str], is_reported: bool = False
) -> Jobs:
    """All jobs of papers, after checks of the whole configuration.

    No other paper is read. Audit, claims and report are added only if these are all;
    claims and report also where they are asked for, of these papers alone.
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
    sections = papers_at(papers, base.scale, overrides)
    configs = [replace(base, paper=paper) for paper in sections]
    return assemble(base, configs, is_reported)


def assemble(
    base: schema.Config,
    configs: list[schema.Config],
    is_reported: bool = False,
) -> Jobs:
    """All jobs of configurations that differ in their papers; ``base`` has none.

    Raises as ``compose``.
    """
    papers = [config.paper.name for config in configs]
    jobs = Jobs(base.scale.folder, papers)
    printed = list[str]()
    _read_ahead([config.paper for config in configs], base.overrides)
    for config in configs:
        _add_paper(jobs, config)
        texts = _texts(config.paper, config.paper.claims or "")
        texts += [
            scopes.everything(config.paper, config.scale, config.overrides)
        ]
        proofs = makers.modules(config.paper.name, "proofs")
        printed.append(digest([texts, priced(*proofs) if proofs else ""]))
    is_whole = {*papers} == {*available("paper")}
    if is_whole:
        add_audits(jobs, base)
    if is_whole or is_reported:
        _add_report(jobs, printed, base, is_whole and not jobs.folder)
    return jobs


# --- one paper ------------------------------------------------------------------------


def _add_paper(jobs: Jobs, config: schema.Config) -> None:
    paper = config.paper
    timed = makers.clocked(paper)
    for problem in paper.problems:
        section = scopes.section("problem", problem, config.overrides)
        add_problem(jobs, config, section)
    designs: dict[str, plan.Design] = {}
    for run in plan.runs(paper):
        _add_run(jobs, config, designs, *run)
    for name in paper.sweeps:
        _add_sweep(jobs, config, name)
    if timed:
        reads = [jobs.files("solve", paper.name, *run)[1] for run in timed]
        depends_on = [
            [sorted(calibrations) for calibrations in timed.values()],
            paper.clocked,
            code(SOLVING[1]),
        ]
        entry_points = [SOLVING[1]]
        jobs.add(
            "timing",
            paper.name,
            depends_on=depends_on,
            reads=reads,
            alone=True,
            code=entry_points,
            spec=config,
        )
    for collection in FORMATS:
        for name in getattr(paper, collection):
            _add_product(jobs, config, collection, name)
    reads = jobs.products(paper.name)
    jobs.add("complete", paper.name, depends_on=[], reads=reads, spec=config)


def _read_ahead(papers: list[schema.Paper], overrides: list[str]) -> None:
    """Read the sections of problems and solvers that papers need, all at once."""
    needed: dict[str, list[str]] = {"problem": [], "solver": []}
    for paper in papers:
        needed["problem"] += paper.problems
        needed["solver"] += [solver for _, solver in plan.runs(paper)]
        for sweep in paper.sweeps.values():
            needed["problem"] += [*sweep.problems, *sweep.prepared]
        words = digests.texts(asdict(paper))
        for group in needed:  # which settings may name on any axis
            needed[group] += sorted(words & {*available(group)})
    for group, names in needed.items():
        digests.ahead(group, names, tuple(of_group(group, overrides)))


def add_problem(
    jobs: Jobs, config: schema.Config, problem: schema.ProblemSection
) -> None:
    """Add the jobs that fetch, prepare and solve a problem without privacy.

    The reader's code counts only if no digest of the arrays is declared; a declared
    one stands for the data.
    """
    name = problem.name
    if name in jobs.dataset_of:
        return
    dataset = problem.dataset
    depends_on: Any = source_digest(dataset, config.data.mirror)
    earlier = jobs.jobs.get(f"fetch/{dataset.name}")
    if earlier is not None and earlier.key != digest([depends_on, []]):
        raise ConfigError(
            f"conf/problem/{name}.yaml: dataset.name: expected another name, found "
            f"{dataset.name!r}, the other data of {jobs.problem_of(dataset.name)}"
        )
    jobs.dataset_of[name] = dataset.name
    spec = replace(config, paper=schema.Paper(), problem=problem)
    optional = replace(spec, data=replace(spec.data, required=False))
    fetch = earlier or jobs.add(
        "fetch", dataset.name, depends_on=depends_on, spec=optional
    )
    entry_points = [PREPARING]
    depends_on = [_numbers(scopes.prepared(problem)), code(*entry_points)]
    keys = [dataset.digest or fetch.key]
    fields: dict[str, Any] = {
        "reads": fetch.outputs,
        "keys": keys,
        "code": entry_points,
        "spec": spec,
    }
    prepare = jobs.add("prepare", name, depends_on=depends_on, **fields)
    entry_points = digests.looked_up(OPTIMISING, option_words=[problem.loss])
    depends_on = [_numbers(scopes.optimum(problem)), code(*entry_points)]
    fields = {"reads": prepare.outputs, "code": entry_points, "spec": spec}
    jobs.add("optimum", name, depends_on=depends_on, **fields)


def _numbers(settings: scopes.Settings) -> scopes.Settings:
    """Settings without those on which no number depends."""
    return {
        path: setting
        for path, setting in settings.items()
        if setting is not None
    }


def _add_run(
    jobs: Jobs,
    config: schema.Config,
    designs: dict[str, plan.Design],
    problem: str,
    solver: str,
) -> None:
    """Add the job that tunes and evaluates a solver on a problem.

    ``designs`` keeps those of solvers, which are of many points.
    """
    chosen = scopes.section("solver", solver, config.overrides)
    spec = scopes.section("problem", problem, config.overrides)
    run_config = replace(config, problem=spec, solver=chosen)
    where = f"{group_file('paper', config.paper.name)}: runs.{solver}"
    checks.able(spec, chosen, where)
    if solver not in designs:
        designs[solver] = plan.design(run_config)
    design = designs[solver]
    grid.check_clips(design.points, f"conf/{where}.grid", spec.privacy.epsilon)
    entry_points = digests.solved(
        SOLVING, chosen.algorithm, design.calibrations, spec.loss
    )
    depends_on = [
        _numbers(scopes.solved(run_config, design)),
        chosen.name,
        code(*entry_points),
    ]
    passes = sum(point["passes"] for point in design.points)
    work = passes * design.replicates * len(design.calibrations)
    wildcards = (config.paper.name, problem, solver)
    reads = jobs.files("optimum", problem)
    jobs.add(
        "solve",
        *wildcards,
        depends_on=depends_on,
        reads=reads,
        work=work,
        code=entry_points,
        spec=replace(run_config, paper=_of_run(config.paper, solver)),
    )


def _of_run(paper: schema.Paper, solver: str) -> schema.Paper:
    """Of a paper, what a run of a solver may read."""
    runs = {solver: paper.runs[solver]}
    return replace(
        paper, runs=runs, sweeps={}, figures={}, tables={}, published={}
    )


def _add_sweep(jobs: Jobs, config: schema.Config, name: str) -> None:
    """Add the job of a sweep, with those of the problems that it needs."""
    paper = config.paper.name
    sweep = config.paper.sweeps[name]
    makers.entry_of(config.paper, "sweeps", name)
    points = grid.points(sweep.grid, axes=None)
    axes = sorted(set[str]().union(*points))
    where = f"conf/{group_file('paper', paper)}"
    for axis in sweep.together:
        one_of(f"{where}: sweeps.{name}.together", axis, axes)
    for problem in (*sweep.problems, *sweep.prepared):
        section = scopes.section("problem", problem, config.overrides)
        add_problem(jobs, config, section)
    tuned = makers.sweep_tuned(config.paper, name)
    reads = []
    for problem in sweep.problems:
        reads += jobs.files("optimum", problem)
    for problem in sweep.prepared:
        reads += jobs.files("prepare", problem)
    reads += [jobs.files("solve", paper, *run)[0] for run in tuned]
    solvers = sorted(grid.values(points, "solver"))
    overrides = config.overrides
    entry_points = scopes.sweeping(
        config.paper, name, overrides, solvers, SWEEPING
    )
    depends_on = [
        scopes.swept(config, name),
        repr(points),
        code(*entry_points),
    ]
    fields: dict[str, Any] = {
        "reads": reads,
        "alone": sweep.timed,
        "code": entry_points,
        "spec": replace(config, product=name),
    }
    jobs.add("sweep", paper, name, depends_on=depends_on, **fields)


def _add_product(
    jobs: Jobs, config: schema.Config, collection: str, name: str
) -> None:
    """Add a figure or a table to the job that makes all others of the same files."""
    paper = config.paper
    product = f"{collection}/{name}"
    spec = getattr(paper, collection)[name]
    makers.entry_of(paper, collection, name)
    folder = Path(jobs.below("results"), paper.name)
    inputs = [path.as_posix() for path in makers.read_by(paper, folder, spec)]
    drawn = jobs.of_paper(paper.name, "draw")
    job = next(
        (earlier for earlier in drawn if earlier.inputs == inputs), None
    )
    if job is None:
        job = jobs.jobs[f"draw/{paper.name}/{product}"] = Job(inputs, [], "")
    keys = [jobs.makers[file].key for file in inputs]
    depends_on = [
        job.key,
        name,
        scopes.product(config, collection, name, DRAWING),
        keys,
    ]
    entry_points = scopes.drawing(paper, collection, name, DRAWING)
    depends_on.append(code(*entry_points))
    job.code += entry_points
    job.key = digest(depends_on)
    job.products.append(product)
    job.spec = replace(config, drawn=[*job.products])
    job.outputs += jobs.formats(paper.name, product)
    jobs.makers |= dict.fromkeys(job.outputs, job)


def _texts(paper: schema.Paper, *more: str) -> list[Any]:
    """The paper's printed numbers, and more of its files."""
    files = filter(None, [*paper.published.values(), *more])
    paths = [paper_file(paper, file) for file in files]
    return [
        path.read_text(encoding="utf-8") for path in paths if path is not None
    ]


# --- all papers -----------------------------------------------------------------------


def _add_report(
    jobs: Jobs, printed: list[str], base: schema.Config, is_audited: bool
) -> None:
    """Add the jobs of all papers together."""
    depends_on = [*printed]
    rows = []
    for paper in jobs.papers:
        depends_on += [job.key for job in jobs.of_paper(paper, "draw")]
        rows += jobs.products(paper)
    depends_on.append(priced(*REPORTING))
    claims = jobs.add("claims", depends_on=depends_on, reads=rows, spec=base)
    read = [claims.outputs[0]]
    if is_audited:
        # the report of a small scale, or of some papers, has no audit
        for audit_name in AUDITED:
            read += jobs.files("audit", audit_name)
    jobs.add("report", depends_on=depends_on, reads=read, spec=base)


def add_audits(jobs: Jobs, base: schema.Config) -> None:
    """Add an audit of every solver, and the tables of the audit."""
    audits = []
    for name in available("solver"):
        solver = digests.solver_of(name)
        depends_on = [solver.algorithm, solver.options, base.seed, jobs.folder]
        depends_on.append(priced(*AUDITING, place(solver.algorithm)))
        spec = replace(base, solver=solver)
        job = jobs.add(
            "audit", f"solvers/{name}", depends_on=depends_on, spec=spec
        )
        audits += job.outputs
    tables = []
    for paper in jobs.papers:
        tables += [job.outputs[0] for job in jobs.of_paper(paper, "solve")]
    inputs = {"epsilon": audits, "tuning": tables}
    for audit_name, entry_points in AUDITED.items():
        depends_on = [priced(*entry_points), base.seed]
        spec = replace(base, product=audit_name)
        reads = inputs[audit_name]
        jobs.add(
            "audit", audit_name, depends_on=depends_on, reads=reads, spec=spec
        )
