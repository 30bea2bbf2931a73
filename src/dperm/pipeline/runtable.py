"""Composing the run table: every section that is asked for, checked, with digests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dperm import grid, schema
from dperm.config import read, settings, with_paper
from dperm.locate import ConfigError, available, group_file
from dperm.pipeline import checks, digests, kinds, plan
from dperm.pipeline.jobs import AUDITED, PaperTable, RunTable
from dperm.pipeline.products import check_kind
from dperm.validation import check_clips


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
    judged = ("claims/", "figures/", "tables/")
    read = [table.digests[key] for key in table.digests if key.startswith(judged)]
    table.digests["claims"] = digests.claims(read)
    if set(papers) == set(available("paper")):
        _add_audits(table)
    return table


def _add_paper(table: RunTable, config: schema.Config, sections: Sections) -> None:
    names, runs, paper = plan.problem_names(config), plan.runs(config), config.paper
    problems = {name: sections.problem(name) for name in names}
    for problem in problems.values():
        _add_problem(table, problem)
    solved = {
        name: replace(config, solver=sections.solver(name))
        for name in dict.fromkeys(solver for _, solver in runs)
    }
    grids = {name: plan.grid_points(solved[name]) for name in solved}
    for chosen, solver in runs:
        at = replace(solved[solver], problem=problems[chosen])
        _add_run(table, at, grids[solver])
    _add_products(table, config, names, runs)
    for name in paper.sweeps:
        _add_sweep(table, config, name, sections)
    _add_timing(table, config)
    table.digests[f"claims/{paper.name}"] = digests.printed(config)
    titles = [problem.title for problem in problems.values()]
    for kind in ("figures", "tables"):
        for name, product in getattr(paper, kind).items():
            check_kind(config, kind, f"{kind}.{name}", product.kind)
            kinds.check_options(config, kind, name)
            read = [*titles, *table.read(paper.name, f"{kind}/{name}")]
            made = digests.product(config, kind, name, read)
            table.digests[f"{kind}/{paper.name}/{name}"] = made


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
        sweeps={
            name: plan.sweep_problems(config, sweep)
            for name, sweep in paper.sweeps.items()
        },
        problems_of={
            key: plan.read_problems(made, names) for key, made in products.items()
        },
        sweeps_of={key: list(made.sweeps) for key, made in products.items()},
        prepared={
            name: plan.sweep_prepared(config, sweep)
            for name, sweep in paper.sweeps.items()
        },
        tuned={
            name: ["/".join(pair) for pair in plan.sweep_tuned(config, name)]
            for name in paper.sweeps
        },
    )


def _add_timing(table: RunTable, config: schema.Config) -> None:
    """What of the paper is timed, and the digest of that."""
    paper, made = config.paper, table.papers[config.paper.name]
    clocked = plan.clocked(config)
    made.clocked = ["/".join(pair) for pair in clocked]
    made.timed = [
        f"{kind}/{name}"
        for kind in ("figures", "tables")
        for name, product in getattr(paper, kind).items()
        if product.timed
    ]
    made.alone = [name for name, sweep in paper.sweeps.items() if sweep.timed]
    read = [table.digests[f"evaluate/{paper.name}/{pair}"] for pair in made.clocked]
    kinds = [sorted(found) for found in clocked.values()]
    table.digests[f"timing/{paper.name}"] = digests.timing(config, kinds, read)


def _add_sweep(
    table: RunTable, config: schema.Config, name: str, sections: Sections
) -> None:
    sweep, paper = config.paper.sweeps[name], config.paper
    problems = plan.sweep_problems(config, sweep)
    for problem in (*problems, *plan.sweep_prepared(config, sweep)):
        if problem not in table.dataset_of:
            _add_problem(table, sections.problem(problem))
    check_kind(config, "sweeps", f"sweeps.{name}", sweep.kind)
    kinds.check_options(config, "sweeps", name)
    read = [table.digests[f"optimum/{problem}"] for problem in problems]
    arrays = plan.sweep_prepared(config, sweep)
    read += [table.digests[f"prepare/{problem}"] for problem in arrays]
    pairs = plan.sweep_tuned(config, name)
    _require_run(table, paper.name, name, pairs)
    read += [table.digests["/".join(["tune", paper.name, *pair])] for pair in pairs]
    points = plan.sweep_points(config, sweep)
    for solver in points.values("solver"):
        sections.solver(solver)
    made = digests.sweep(config, name, points, read)
    table.digests[f"sweeps/{paper.name}/{name}"] = made
    replicates = config.scale.replicates or sweep.replicates
    table.work[f"{paper.name}/sweeps/{name}"] = float(len(points) * replicates)


def _require_run(
    table: RunTable, paper: str, sweep: str, pairs: list[tuple[str, str]]
) -> None:
    """Refuse a sweep that starts from a tuning that the paper does not run."""
    for problem, solver in pairs:
        if f"tune/{paper}/{problem}/{solver}" not in table.digests:
            raise ConfigError(
                f"conf/paper/{paper}/paper.yaml: sweeps.{sweep}.grid: expected solvers "
                f"on problems of runs and problems, found {solver} on {problem}"
            )


def _add_audits(table: RunTable) -> None:
    solvers = [f"solvers/{name}" for name in available("solver")]
    made = {part: digests.audit(part) for part in solvers}
    tuned = [table.digests[key] for key in table.digests if key.startswith("tune/")]
    reads = {"epsilon": list(made.values()), "tuning": tuned}
    made |= {part: digests.audit(part, reads.get(part, [])) for part in AUDITED}
    table.digests |= {f"audit/{part}": digest for part, digest in made.items()}


def _add_problem(table: RunTable, problem: schema.Problem) -> None:
    name, dataset = problem.name, problem.dataset
    made, key = digests.fetch(dataset), f"fetch/{dataset.name}"
    if table.digests.setdefault(key, made) != made:
        raise ConfigError(
            f"conf/problem/{name}.yaml: dataset.name: expected another name, found "
            f"{dataset.name!r}, the other data of {table.problem_of[dataset.name]}"
        )
    table.dataset_of[name] = dataset.name
    table.problem_of.setdefault(dataset.name, name)
    table.files |= digests.files(dataset)
    table.digests[f"prepare/{name}"] = digests.prepare(problem)
    table.digests[f"optimum/{name}"] = digests.optimum(problem)


def _add_run(table: RunTable, config: schema.Config, points: grid.Grid) -> None:
    paper, problem, solver = config.paper, config.problem, config.solver
    checks.require_able(paper, problem, solver)
    where = f"conf/{group_file('paper', paper.name)}: runs.{solver.name}.grid"
    check_clips(points, where, problem)
    name = f"{paper.name}/{problem.name}/{solver.name}"
    tuned = table.digests[f"tune/{name}"] = digests.tune(config)
    table.digests[f"evaluate/{name}"] = digests.evaluate(config, tuned)
    kinds = plan.run_calibrations(config)
    passes = points.total("passes")
    replicates = config.scale.replicates or paper.replicates
    table.work[name] = passes * replicates * len(kinds)
