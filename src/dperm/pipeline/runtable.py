"""Composes the build graph: checks every section of the papers and adds digests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dperm.core.experiment import grid, plan, schema
from dperm.core.experiment.config import read, settings, with_paper
from dperm.core.experiment.locate import ConfigError, available, group_file
from dperm.core.experiment.validation import check_clips, one_of
from dperm.pipeline import checks, digests, products
from dperm.pipeline.digests import solved
from dperm.pipeline.graph import AUDITED, FORMATS, Graph, Job, product_inputs

DATA = ("fetch", "prepare", "optimum")
PLAIN = ("fetch", "claims")  # stages that do not depend on versions of libraries


def run_table(papers: list[str], overrides: list[str]) -> Graph:
    """Compose every (paper, problem, solver) and check the whole configuration.

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
    composer = _Composer(overrides)
    for paper in papers:
        composer.add_paper(with_paper(composer.base, paper))
    composer.add_report(is_whole=set(papers) == set(available("paper")))
    return composer.graph


class _Composer:
    """A graph under construction, with the sections read and checked so far."""

    def __init__(self, overrides: list[str]):
        self.overrides = overrides
        self.base = settings(overrides)
        self.graph = Graph(self.base.scale.folder)
        self._sections: dict[tuple[str, str], Any] = {}
        self._digest_of: dict[str, str] = {}  # of files

    def _section(self, group: str, name: str, check: Callable[[Any], None]) -> Any:
        if (group, name) not in self._sections:
            section = read(group, name, self.overrides)
            check(section)
            self._sections[group, name] = section
        return self._sections[group, name]

    def _problem(self, name: str) -> schema.Problem:
        return self._section("problem", name, checks.problem)

    def _solver(self, name: str) -> schema.Solver:
        return self._section("solver", name, checks.solver)

    def _add(
        self, stage: str, *values: str, digests: Mapping[str, str], **other: Any
    ) -> Job:
        """Add a job; ``digests`` maps names to digests of its outputs, in order."""
        *_, last = digests.values()
        noted = last if stage in PLAIN else solved(last)
        job = self.graph.add(stage, *values, digest=noted, **other)
        for name, made in digests.items():
            self.graph.digests["/".join((name, *values))] = made
        self._digest_of |= zip(job.outputs, digests.values(), strict=False)
        return job

    def _digests(self, files: list[str]) -> list[str]:
        """Digests of files; a file that no job makes is refused."""
        for file in files:
            one_of("file", file, self._digest_of)
        return [self._digest_of[file] for file in files]

    def _outputs(self, stage: str, *values: str) -> list[str]:
        return self.graph.job(stage, *values).outputs

    # --- one paper --------------------------------------------------------------------

    def add_paper(self, config: schema.Config) -> None:
        """Add all jobs of a paper and of the data that it needs."""
        paper = config.paper
        self.graph.papers.append(paper.name)
        problems = {name: self._problem(name) for name in plan.problem_names(config)}
        for problem in problems.values():
            self._add_problem(problem)
        runs = plan.runs(config)
        solved = {
            name: replace(config, solver=self._solver(name))
            for name in dict.fromkeys(solver for _, solver in runs)
        }
        grids = {name: plan.grid_points(solved[name]) for name in solved}
        for chosen, solver in runs:
            at = replace(solved[solver], problem=problems[chosen])
            self._add_run(at, grids[solver])
        for name in paper.sweeps:
            self._add_sweep(config, name)
        self._add_timing(config)
        self.graph.digests[f"claims/{paper.name}"] = digests.printed(config)
        titles = [problem.title for problem in problems.values()]
        for kind in FORMATS:
            for name in getattr(paper, kind):
                self._add_product(config, kind, name, titles)
        self.graph.add("complete", paper.name, inputs=self.graph.products(paper.name))

    def _add_problem(self, problem: schema.Problem) -> None:
        name, dataset, graph = problem.name, problem.dataset, self.graph
        made = digests.fetch(dataset)
        if graph.digests.get(f"fetch/{dataset.name}", made) != made:
            raise ConfigError(
                f"conf/problem/{name}.yaml: dataset.name: expected another name, found "
                f"{dataset.name!r}, the other data of {graph.problem_of(dataset.name)}"
            )
        graph.dataset_of[name] = dataset.name
        graph.files |= digests.files(dataset)
        fetch = self._add("fetch", dataset.name, digests={"fetch": made})
        made = digests.prepare(problem)
        prepare = self._add(
            "prepare", name, inputs=fetch.outputs, digests={"prepare": made}
        )
        made = digests.solved(digests.optimum(problem))
        self._add("optimum", name, inputs=prepare.outputs, digests={"optimum": made})

    def _add_run(self, config: schema.Config, points: grid.Grid) -> None:
        paper, problem, solver = config.paper, config.problem, config.solver
        checks.require_able(paper, problem, solver)
        where = f"conf/{group_file('paper', paper.name)}: runs.{solver.name}.grid"
        check_clips(points, where, problem)
        tuned = digests.tune(config)
        evaluated = digests.evaluate(config, tuned)
        replicates = config.scale.replicates or paper.replicates
        kinds = plan.run_calibrations(config)
        self._add(
            *("solve", paper.name, problem.name, solver.name),
            inputs=self._outputs("optimum", problem.name),
            digests={"tune": tuned, "evaluate": evaluated},
            work=points.total("passes") * replicates * len(kinds),
        )

    def _add_sweep(self, config: schema.Config, name: str) -> None:
        paper, sweep = config.paper, config.paper.sweeps[name]
        solved = products.sweep_problems(config, sweep)
        prepared = products.sweep_prepared(config, sweep)
        for problem in (*solved, *prepared):
            if problem not in self.graph.dataset_of:
                self._add_problem(self._problem(problem))
        products.check_kind(config, "sweeps", f"sweeps.{name}", sweep.kind)
        products.check_options(config, "sweeps", name)
        optima = [f for problem in solved for f in self._outputs("optimum", problem)]
        arrays = [f for problem in prepared for f in self._outputs("prepare", problem)]
        tuned = [
            self._tuned(paper.name, name, *run)
            for run in products.sweep_tuned(config, name)
        ]
        points = products.sweep_points(config, sweep)
        where = f"conf/paper/{paper.name}/paper.yaml: sweeps.{name}.together"
        for axis in sweep.together:
            one_of(where, axis, sorted({key for at in points for key in at}))
        for solver in points.values("solver"):
            self._solver(solver)
        inputs = optima + arrays + tuned
        made = digests.sweep(config, name, points, self._digests(inputs))
        self._add(
            *("sweep", paper.name, name),
            inputs=inputs,
            digests={"sweeps": made},
            alone=sweep.timed,
        )

    def _tuned(self, paper: str, sweep: str, problem: str, solver: str) -> str:
        """The tuning that a sweep starts from; it must be a run of the paper."""
        if f"solve/{paper}/{problem}/{solver}" not in self.graph.jobs:
            raise ConfigError(
                f"conf/paper/{paper}/paper.yaml: sweeps.{sweep}.grid: expected solvers "
                f"on problems of runs and problems, found {solver} on {problem}"
            )
        return self._outputs("solve", paper, problem, solver)[0]

    def _add_timing(self, config: schema.Config) -> None:
        """Add the timing job, if a product shows seconds."""
        paper, clocked = config.paper, products.clocked(config)
        shown = [*paper.figures.values(), *paper.tables.values()]
        inputs = [self._outputs("solve", paper.name, *run)[1] for run in clocked]
        kinds = [sorted(found) for found in clocked.values()]
        made = digests.timing(config, kinds, self._digests(inputs))
        if any(product.timed for product in shown):
            self._add(
                *("timing", paper.name),
                inputs=inputs,
                digests={"timing": made},
                alone=True,
            )
        self.graph.digests[f"timing/{paper.name}"] = made

    def _add_product(
        self, config: schema.Config, kind: str, name: str, titles: list[str]
    ) -> None:
        paper, product = config.paper, getattr(config.paper, kind)[name]
        products.check_kind(config, kind, f"{kind}.{name}", product.kind)
        products.check_options(config, kind, name)
        inputs = product_inputs(
            self.graph.below("results"),
            paper.name,
            products.product_runs(config, product),
            product.sweeps,
            product.timed,
        )
        made = digests.product(config, kind, name, [*titles, *self._digests(inputs)])
        self.graph.digests[f"{kind}/{paper.name}/{name}"] = made
        self.graph.add_drawing(paper.name, f"{kind}/{name}", inputs)

    # --- all papers -------------------------------------------------------------------

    def add_report(self, is_whole: bool) -> None:
        """Add the jobs of all papers together if ``is_whole``; put data jobs first."""
        graph = self.graph
        judged = ("claims/", *(f"{kind}/" for kind in FORMATS))
        found = [graph.digests[key] for key in graph.digests if key.startswith(judged)]
        made = digests.claims(found)
        graph.digests["claims"] = made
        if is_whole:
            self._add_audits()
            rows = [file for paper in graph.papers for file in graph.products(paper)]
            claims = self._add("claims", inputs=rows, digests={"claims": made})
            inputs = [claims.outputs[0], *graph.audits()]
            graph.add("report", inputs=inputs, digest=made)
        graph.jobs = dict(
            sorted(graph.jobs.items(), key=lambda job: job[0].split("/")[0] not in DATA)
        )

    def _add_audits(self) -> None:
        graph = self.graph
        solvers = [
            file
            for name in (f"solvers/{solver}" for solver in available("solver"))
            for file in self._add(
                "audit", name, digests={"audit": digests.audit(name)}
            ).outputs
        ]
        solved = [job for p in graph.papers for job in graph.of_paper(p, "solve")]
        inputs = {"epsilon": solvers, "tuning": [job.outputs[0] for job in solved]}
        for part in AUDITED:
            files = inputs.get(part, [])
            made = digests.audit(part, self._digests(files))
            self._add("audit", part, inputs=files, digests={"audit": made})
