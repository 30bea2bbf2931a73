"""Table 1 and Theorem 4.2 for each solver that is run, beside the errors measured."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.erm.optimum import Optimum
from dperm.core.erm.problem import Problem
from dperm.core.experiment import plan, schema
from dperm.core.experiment.results import Result
from dperm.core.lanes import dp_skgd
from dperm.core.solvers import make_options
from dperm.papers.dpskgd import theory
from dperm.papers.dpskgd.samplings import family, solver
from dperm.pipeline import inputs
from dperm.present.drawing import summary
from dperm.present.intervals import student

Rows = list[dict[str, Any]]
Bounds = dict[str, theory.Bound]
TERMS = ("convex", "strong")  # the rows of Table 1


def loaded(config: schema.Config, name: str) -> tuple[Problem | None, Optimum | None]:
    """A problem and its optimum; None without its data."""
    at = plan.at_problem(config, name)
    problem = inputs.load_problem(at)
    return problem, inputs.load_optimum(at) if problem else None


@functools.cache
def sketching(name: str) -> dp_skgd.Options | None:
    """How a solver draws coordinates; None for what is no sketch."""
    if not family(name):
        return None
    return make_options(dp_skgd, solver(name).options)


def solver_bounds(
    config: schema.Config, name: str, solvers: list[str], dominating: bool = False
) -> Bounds:
    """Table 1's row of each solver on a problem; empty without its data."""
    problem, optimum = loaded(config, name)
    if problem is None or optimum is None:
        return {}
    found = {}
    for each in solvers:
        options = sketching(each)
        if options:
            found[each] = theory.sketched(problem, optimum, options, dominating)
        elif each.startswith("dp_cd"):
            found[each] = theory.coordinate_descent(problem, optimum)
        else:
            found[each] = theory.stochastic_gradient(problem, optimum)
    return found


def terms(config: schema.Config, name: str, found: list[Result]) -> Rows:
    """Table 1 on a problem: symbols and numbers, a row for each solver."""
    labels = {result.solver: result.label for result in found}
    printed = solver_bounds(config, name, list(labels))
    safe = solver_bounds(config, name, list(labels), dominating=True)
    rows = []
    for each, bound in printed.items():
        convex, strong = theory.SYMBOLS[bound.kind]
        rows.append(
            {"problem": name, "algorithm": labels[each], "row": bound.kind,
             "convex_symbol": convex, "convex": bound.convex,
             "convex_dominating": safe[each].convex,
             "strongly_convex_symbol": strong, "strongly_convex": bound.strong,
             "noise": bound.noise, "radius": bound.radius}
        )  # fmt: skip
    return rows


def beside_errors(
    config: schema.Config, name: str, found: list[Result], calibration: str
) -> Rows:
    """Theorem 4.2 beside the measured excess on a problem; ranks of both.

    ``n_needed`` records would bring the convex bound down to the excess of w = 0.
    """
    usable = [result for result in found if result.available]
    known = solver_bounds(config, name, [result.solver for result in usable])
    problem, optimum = loaded(config, name)
    if problem is None or optimum is None:
        return []
    rows = [
        _beside(problem, optimum, known[result.solver], result, calibration)
        for result in usable
    ]
    frame = pd.DataFrame(rows)
    for key in ("convex", "strongly_convex", "excess") if rows else ():
        for row, rank in zip(rows, frame[key].rank(), strict=True):
            row[f"rank_{key}"] = rank
    return rows


def _beside(
    problem: Problem,
    optimum: Optimum,
    bound: theory.Bound,
    result: Result,
    calibration: str,
) -> dict[str, Any]:
    once, twice = theory.rates(problem)
    errors = result.final(calibration)["relative_error"].to_numpy()
    low, high = student(errors)
    options, convex, strong = sketching(result.solver), math.nan, (math.nan, math.nan)
    if options:
        convex = theory.theorem_convex(problem, bound)
        strong = theory.theorem_strong(problem, optimum, options, bound)
    return {
        "problem": problem.name,
        "algorithm": result.label,
        "convex": bound.convex * once,
        "strongly_convex": bound.strong * twice,
        "theorem_convex": convex,
        "theorem_strongly_convex": strong[0],
        "theorem_epochs": strong[1],
        "start": (start := theory.gap_at_start(problem, optimum)),
        "excess": errors.mean() * optimum.value,
        "ci_low": low * optimum.value,
        "ci_high": high * optimum.value,
        "n": problem.n,
        "n_needed": problem.n * convex / start,
    }


def rank_correlations(rows: Rows) -> Rows:
    """How well the order of the bounds is the order of the errors, by problem.

    Spearman's, of the ranks of ``beside_errors``; NaN where a bound is infinite.
    """
    found = []
    frame = pd.DataFrame(rows, columns=None if rows else ["problem"])
    for name, group in frame.groupby("problem", sort=False):
        told: dict[str, Any] = {"problem": name, "methods": len(group)}
        for key in ("convex", "strongly_convex"):
            usable = np.isfinite(group[key]).all() and len(group) > 2
            ranks = group[f"rank_{key}"], group["rank_excess"]
            told[key] = np.corrcoef(*ranks)[0, 1] if usable else math.nan
        found.append(told)
    return found


def over_single_uniform(
    config: schema.Config, name: str, found: list[Result], calibration: str
) -> dict[str, Rows]:
    """Bounds and errors of a problem over those of single uniform sampling.

    Returns
    -------
    dict
        Rows of a figure for each of ``TERMS``: x the ratio of the bounds, mean and
        interval those of the errors; nothing where the base is missing or infinite.
    """
    usable = [result for result in found if result.available]
    known = solver_bounds(config, name, [result.solver for result in usable])
    if "dp_skgd" not in known:
        return {key: [] for key in TERMS}
    errors = {r.solver: r.final(calibration)["relative_error"].to_numpy()
              for r in usable}  # fmt: skip
    base, middle = known.pop("dp_skgd"), errors["dp_skgd"].mean()
    ratios = {
        key: {each: getattr(bound, key) / getattr(base, key)
              for each, bound in known.items()}
        for key in TERMS
    }  # fmt: skip
    return {
        key: [summary(f"{name}: {key}", each, x, errors[each] / middle)
              for each, x in of_key.items() if np.isfinite(x)]
        for key, of_key in ratios.items()
    }  # fmt: skip
