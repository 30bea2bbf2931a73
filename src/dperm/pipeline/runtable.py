"""The run table: what Snakemake has to make, with a digest of what each stage reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dperm import config as configuration
from dperm import schema, solvers
from dperm.pipeline import inputs
from dperm.pipeline.products import check_kind, modules
from dperm.pipeline.sweep import needed, points, solver_section
from dperm.store.files import digest
from dperm.store.provenance import code_digest, product_digest


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
        ``paper/problem/solver`` to the passes over the data of all its lanes.
    """

    folder: str
    papers: dict[str, PaperTable] = field(default_factory=dict)
    dataset_of: dict[str, str] = field(default_factory=dict)
    problem_of: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    work: dict[str, float] = field(default_factory=dict)

    def below(self, top: str) -> str:
        """A top folder with the scale's below it, ending in a slash."""
        return f"{top}/{self.folder}/" if self.folder else f"{top}/"

    def behind(self, paper: str, product: str) -> list[str]:
        """Files that ``figures/<name>`` or ``tables/<name>`` is made of."""
        table = self.papers[paper]
        kind, name = product.split("/")
        known = [*getattr(table, kind)]
        configuration.one_of(f"conf/paper/{paper}/paper.yaml: {kind}", name, known)
        sweeps, problems = table.sweeps_of[product], table.problems_of[product]
        return self._solved(paper, problems) + self._swept(paper, sweeps)

    def products(self, paper: str) -> list[str]:
        """All files of a paper."""
        table = self.papers[paper]
        made = [
            f"{self.below('figures')}{paper}/{name}.svg" for name in table.figures
        ] + [f"{self.below('results')}{paper}/{name}.csv" for name in table.tables]
        every = self._solved(paper, table.problems) + self._swept(paper, table.sweeps)
        return made + every

    def swept_from(self, paper: str, sweep: str) -> list[str]:
        """Files that a sweep reads."""
        table = self.papers[paper]
        optima = [f"data/optimum/{name}/optimum.json" for name in table.sweeps[sweep]]
        arrays = [f"data/prepared/{name}/meta.json" for name in table.prepared[sweep]]
        return optima + arrays

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


def overrides(asked: dict[str, Any]) -> list[str]:
    """Hydra overrides that Snakemake's ``--config`` asks for.

    Raises
    ------
    ConfigError
        For a key that is neither ``scale`` nor ``set``.
    """
    for key in asked:
        configuration.one_of("--config", key, ("scale", "set"))
    return [f"scale={asked.get('scale', 'full')}", *str(asked.get("set", "")).split()]


def run_table(papers: list[str], overrides: list[str]) -> RunTable:
    """Compose every (paper, problem, solver) and check the whole configuration.

    Parameters
    ----------
    papers : list of str
    overrides : list of str
        Hydra overrides for all of them, ``scale=...`` among them.

    Raises
    ------
    ConfigError
        For anything wrong anywhere, before a single job runs.
    """
    table = RunTable(folder=configuration.compose(overrides).scale.folder)
    for paper in papers:
        _add_paper(table, paper, [f"paper={paper}", *overrides])
    claims = [value for key, value in table.digests.items() if key.startswith("claims")]
    table.digests["claims"] = digest([claims, product_digest("dperm.report.page")])
    return table


def _add_paper(table: RunTable, paper: str, overrides: list[str]) -> None:
    config = configuration.compose(overrides)
    names = inputs.problem_names(config)
    problems = {name: _problem(name, overrides) for name in names}
    runs = inputs.runs(config)
    found = {name: _solver(name, overrides) for name in {solver for _, solver in runs}}
    for name, problem in problems.items():
        _add_problem(table, name, problem.problem)
    for chosen, solver in runs:
        _add_run(table, problems[chosen], found[solver])
    _add_products(table, config, names, runs)
    for name in config.paper.sweeps:
        _add_sweep(table, config, name, overrides)
    _add_claims(table, config)
    titles = [problem.problem.title for problem in problems.values()]
    for kind in ("figures", "tables"):
        for name, product in getattr(config.paper, kind).items():
            check_kind(config, kind, f"{kind}.{name}", product.kind)
            code = product_digest(*modules(config, kind))
            key = f"{kind}/{paper}/{name}"
            table.digests[key] = digest([asdict(product), titles, code])


def _add_products(
    table: RunTable, config: schema.Config, names: list[str], runs: list
) -> None:
    """Which problems and sweeps each figure and table shows."""
    paper = config.paper
    products = {
        f"{kind}/{name}": product
        for kind, made in (("figures", paper.figures), ("tables", paper.tables))
        for name, product in made.items()
    }
    table.papers[paper.name] = PaperTable(
        problems=names,
        runs=runs,
        figures=list(paper.figures),
        tables=list(paper.tables),
        sweeps={name: needed(config, sweep) for name, sweep in paper.sweeps.items()},
        problems_of={key: _shown(made, names) for key, made in products.items()},
        sweeps_of={key: list(made.sweeps) for key, made in products.items()},
        prepared={
            name: inputs.sweep_prepared(config, sweep)
            for name, sweep in paper.sweeps.items()
        },
    )


def _shown(product: schema.Product, names: list[str]) -> list[str]:
    """Problems of a product at this scale; one made of sweeps alone has none."""
    if product.sweeps and product.problems is None:
        return []
    return inputs.product_problems(product, names)


def _add_sweep(
    table: RunTable, config: schema.Config, name: str, overrides: list[str]
) -> None:
    sweep, paper = config.paper.sweeps[name], config.paper
    problems = needed(config, sweep)
    for problem in (*problems, *inputs.sweep_prepared(config, sweep)):
        if problem not in table.dataset_of:
            _add_problem(table, problem, _problem(problem, overrides).problem)
    found = points(config, sweep)
    sections = [solver_section(point) for point in found if "solver" in point]
    identity = [asdict(sweep), found, config.seed, *sections]
    replicates = config.scale.replicates or sweep.replicates
    check_kind(config, "sweeps", f"sweeps.{name}", sweep.kind)
    code = product_digest(*modules(config, "sweeps"))
    table.digests[f"sweeps/{paper.name}/{name}"] = digest([identity, replicates, code])


def _add_claims(table: RunTable, config: schema.Config) -> None:
    paper = config.paper
    files = [*paper.published.values(), *([paper.claims] if paper.claims else [])]
    paths = [configuration.paper_file(paper, file) for file in files]
    read = [path.read_text() for path in paths if path is not None]
    own = product_digest(*modules(config, "proofs"), *modules(config, "rules"))
    table.digests[f"claims/{paper.name}"] = digest([*read, own])


def keys(names: Any) -> str:
    """Wildcards of a job as overrides of its stage."""
    asked = {"paper": "paper", "problem": "problem", "solver": "solver"}
    asked["name"] = "product"
    return " ".join(
        f"{key}={getattr(names, name)}"
        for name, key in asked.items()
        if hasattr(names, name)
    )


def _problem(name: str, overrides: list[str]) -> schema.Config:
    return configuration.compose([*overrides, f"problem={name}"])


def _solver(name: str, overrides: list[str]) -> schema.Config:
    return configuration.compose([*overrides, f"solver={name}"])


def _add_problem(table: RunTable, name: str, problem: schema.Problem) -> None:
    dataset = problem.dataset
    table.dataset_of[name] = dataset.name
    table.problem_of.setdefault(dataset.name, name)
    made = [source.options for source in dataset.sources if source.kind == "synthetic"]
    content = [dataset.digest, asdict(dataset.reader), made]
    table.digests[f"fetch/{dataset.name}"] = digest(content)
    prepared = [content, asdict(problem.preparation)]
    table.digests[f"prepare/{name}"] = digest(prepared)
    table.digests[f"optimum/{name}"] = digest(
        [prepared, problem.loss, asdict(problem.penalty)]
    )


def _add_run(table: RunTable, at: schema.Config, by: schema.Config) -> None:
    solver, paper = by.solver, by.paper
    kinds = inputs.run_calibrations(replace(by, problem=at.problem))
    points = inputs.grid_points(by)
    identity: list[Any] = [
        table.digests[f"optimum/{at.problem.name}"],
        asdict(at.problem.privacy),
        [solver.name, solver.label, solver.algorithm, solver.options],
        code_digest(solvers.load(solver.algorithm)),
        [points, kinds, by.seed],
    ]
    name = f"{paper.name}/{at.problem.name}/{solver.name}"
    replicates = by.scale.replicates or paper.replicates
    table.digests[f"tune/{name}"] = digest([identity, replicates])
    passes = sum(point["passes"] for point in points)
    table.work[name] = passes * replicates * len(kinds)
    fresh = by.scale.fresh or paper.fresh
    how = [] if paper.evaluated == "all" else [paper.evaluated]
    table.digests[f"evaluate/{name}"] = digest([identity, fresh, *how])
