"""Composing the run table: every section that is asked for, checked, with digests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from dperm import schema, solvers
from dperm.config import read, settings, with_paper
from dperm.locate import available, group_file
from dperm.pipeline import checks, inputs
from dperm.pipeline.jobs import AUDITED, PaperTable, RunTable
from dperm.pipeline.products import check_kind, modules
from dperm.pipeline.sweep import needed, points, solver_section
from dperm.store.files import digest
from dperm.store.provenance import code_digest, product_digest
from dperm.validation import check_clips, paper_file


class Sections:
    """The problems and solvers of the papers, each read and checked once."""

    def __init__(self, overrides: list[str]):
        self.overrides = overrides
        self._known: dict[tuple[str, str], Any] = {}

    def problem(self, name: str) -> schema.Problem:
        """A problem.

        Raises
        ------
        ConfigError
            For anything that is wrong with it.
        """
        return self._read("problem", name, checks.problem)

    def solver(self, name: str) -> schema.Solver:
        """A solver.

        Raises
        ------
        ConfigError
            For anything that is wrong with it.
        """
        return self._read("solver", name, checks.solver)

    def _read(self, group: str, name: str, check: Callable[[Any], None]) -> Any:
        if (group, name) not in self._known:
            section = read(group, name, self.overrides)
            check(section)
            self._known[group, name] = section
        return self._known[group, name]


def run_table(papers: list[str], overrides: list[str]) -> RunTable:
    """Compose every (paper, problem, solver) and check the whole configuration.

    Parameters
    ----------
    papers : list of str
        Those that are asked for; no other is read. The audit belongs to them all.
    overrides : list of str
        Hydra overrides for all of them, ``scale=...`` among them.

    Raises
    ------
    ConfigError
        For anything wrong anywhere, before a single job runs.
    """
    base, sections = settings(overrides), Sections(overrides)
    table = RunTable(folder=base.scale.folder)
    for paper in papers:
        _add_paper(table, with_paper(base, paper), sections)
    claims = [value for key, value in table.digests.items() if key.startswith("claims")]
    table.digests["claims"] = digest([claims, product_digest("dperm.report.page")])
    if set(papers) == set(available("paper")):
        _add_audits(table)
    return table


def _add_paper(table: RunTable, config: schema.Config, sections: Sections) -> None:
    names, runs, paper = inputs.problem_names(config), inputs.runs(config), config.paper
    problems = {name: sections.problem(name) for name in names}
    for problem in problems.values():
        _add_problem(table, problem)
    for chosen, solver in runs:
        problem, by = problems[chosen], sections.solver(solver)
        _add_run(table, replace(config, problem=problem, solver=by))
    _add_products(table, config, names, runs)
    for name in paper.sweeps:
        _add_sweep(table, config, name, sections)
    _add_claims(table, config)
    titles = [problem.title for problem in problems.values()]
    for kind in ("figures", "tables"):
        for name, product in getattr(paper, kind).items():
            check_kind(config, kind, f"{kind}.{name}", product.kind)
            code = product_digest(*modules(config, kind))
            key = f"{kind}/{paper.name}/{name}"
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
    table: RunTable, config: schema.Config, name: str, sections: Sections
) -> None:
    sweep, paper = config.paper.sweeps[name], config.paper
    problems = needed(config, sweep)
    for problem in (*problems, *inputs.sweep_prepared(config, sweep)):
        if problem not in table.dataset_of:
            _add_problem(table, sections.problem(problem))
    found = points(config, sweep)
    chosen = [solver_section(point) for point in found if "solver" in point]
    identity = [asdict(sweep), found, config.seed, *chosen]
    replicates = config.scale.replicates or sweep.replicates
    check_kind(config, "sweeps", f"sweeps.{name}", sweep.kind)
    code = product_digest(*modules(config, "sweeps"))
    table.digests[f"sweeps/{paper.name}/{name}"] = digest([identity, replicates, code])


def _add_claims(table: RunTable, config: schema.Config) -> None:
    paper = config.paper
    files = [*paper.published.values(), *([paper.claims] if paper.claims else [])]
    paths = [paper_file(paper, file) for file in files]
    read = [path.read_text() for path in paths if path is not None]
    table.digests[f"claims/{paper.name}"] = digest(read)


def _add_audits(table: RunTable) -> None:
    code = product_digest("dperm.audit.ladder")
    for part in AUDITED:
        table.digests[f"audit/{part}"] = code
    for name in available("solver"):
        chosen = read("solver", name)
        content = [code, chosen.algorithm, chosen.options]
        table.digests[f"audit/solvers/{name}"] = digest(content)


def _add_problem(table: RunTable, problem: schema.Problem) -> None:
    name, dataset = problem.name, problem.dataset
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


def _add_run(table: RunTable, config: schema.Config) -> None:
    paper, problem, solver = config.paper, config.problem, config.solver
    kinds = inputs.run_calibrations(config)
    points = inputs.grid_points(config)
    where = f"conf/{group_file('paper', paper.name)}: runs.{solver.name}.grid"
    check_clips(points, where, problem)
    identity: list[Any] = [
        table.digests[f"optimum/{problem.name}"],
        asdict(problem.privacy),
        [solver.name, solver.label, solver.algorithm, solver.options],
        code_digest(solvers.load(solver.algorithm)),
        [points, kinds, config.seed],
    ]
    name = f"{paper.name}/{problem.name}/{solver.name}"
    replicates = config.scale.replicates or paper.replicates
    table.digests[f"tune/{name}"] = digest([identity, replicates])
    passes = sum(point["passes"] for point in points)
    table.work[name] = passes * replicates * len(kinds)
    fresh = config.scale.fresh or paper.fresh
    how = [] if paper.evaluated == "all" else [paper.evaluated]
    table.digests[f"evaluate/{name}"] = digest([identity, fresh, *how])
