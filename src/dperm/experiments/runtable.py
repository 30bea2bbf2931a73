"""The run table: what Snakemake has to make, with a digest of what each stage reads."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from dperm import config as configuration
from dperm import schema, solvers
from dperm.experiments import inputs
from dperm.experiments.provenance import code_digest, source_digest
from dperm.experiments.store import digest


@dataclass
class PaperTable:
    """Jobs and products of one paper."""

    problems: list[str]
    runs: list[tuple[str, str]]
    figures: dict[str, list[str]]  # name: problems it shows
    tables: dict[str, list[str]]


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
    """

    folder: str
    papers: dict[str, PaperTable] = field(default_factory=dict)
    dataset_of: dict[str, str] = field(default_factory=dict)
    problem_of: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)

    def problems(self) -> list[str]:
        """All problems of all papers."""
        return sorted(self.dataset_of)


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
    products = {
        kind: {
            name: [chosen for chosen in product.problems or names if chosen in names]
            for name, product in getattr(config.paper, kind).items()
        }
        for kind in ("figures", "tables")
    }
    table.papers[paper] = PaperTable(names, runs, **products)
    for kind, made in products.items():
        code = source_digest(f"dperm.{kind}")
        for name in made:
            product = asdict(getattr(config.paper, kind)[name])
            shown = [problem.problem.title for problem in problems.values()]
            table.digests[f"{kind}/{paper}/{name}"] = digest([product, shown, code])


def _problem(name: str, overrides: list[str]) -> schema.Config:
    return configuration.compose([*overrides, f"problem={name}"])


def _solver(name: str, overrides: list[str]) -> schema.Config:
    return configuration.compose([*overrides, f"solver={name}"])


def _add_problem(table: RunTable, name: str, problem: schema.Problem) -> None:
    if problem.name != name:
        raise configuration.ConfigError(
            f"conf/problem/{name}.yaml: name: expected {name}, found {problem.name!r}"
        )
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
    if solver.name not in paper.runs:
        raise configuration.ConfigError(
            f"conf/solver: the YAML of {solver.name!r} must carry its own name"
        )
    identity: list[Any] = [
        table.digests[f"optimum/{at.problem.name}"],
        asdict(at.problem.privacy),
        [solver.name, solver.label, solver.algorithm, solver.options],
        code_digest(solvers.load(solver.algorithm)),
        [inputs.grid_points(by), paper.calibrations, by.seed],
    ]
    name = f"{paper.name}/{at.problem.name}/{solver.name}"
    replicates = by.scale.replicates or paper.replicates
    table.digests[f"tune/{name}"] = digest([identity, replicates])
    fresh = by.scale.fresh or paper.fresh
    table.digests[f"evaluate/{name}"] = digest([identity, fresh])
