"""Tables of Mangold et al. 2023 (DP-GCD), with the published cells next to ours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.config import grid
from dperm.config.config import read
from dperm.config.schema import Paper, Product
from dperm.experiments import plan, results
from dperm.experiments.inputs import Inputs, UnavailableError, load_optimum
from dperm.numerics.intervals import clopper_pearson, power
from dperm.papers.dpgcd import growing
from dperm.papers.shared.sweeps import problem_of
from dperm.plotting.tables import Rows, groups, named

_MISSING = "not available"


def sizes(inputs: Inputs, problems: list[str]) -> pd.DataFrame:
    """Table 1: records and features, counted in the data, and facts of the optimum."""
    rows: Rows = []
    for name in problems:
        try:
            problem, optimum = problem_of(inputs, name)
        except UnavailableError:
            rows.append({"problem": name, "status": _MISSING})
            continue
        start = float(problem.objective(np.zeros(problem.p))[0])
        non_zeros = (
            problem.A.nnz if problem.is_sparse else np.count_nonzero(problem.A)
        )
        row = {"problem": name, "records": problem.n, "features": problem.p}
        row |= {"non_zeros": int(non_zeros), "epsilon": problem.epsilon}
        row |= {"delta": problem.delta, "optimum": optimum.value}
        row |= {
            "relative_error_at_zero": (start - optimum.value) / optimum.value
        }
        rows.append(
            row | {"support_size": int(optimum.support.sum()), "status": "ok"}
        )
    return pd.DataFrame(rows)


def grids(paper: Paper, inputs: Inputs) -> pd.DataFrame:
    """Table 2: the grid of every solver, as configured."""
    rows = []
    for name, run in paper.runs.items():
        label = plan.label(paper, read("solver", name, inputs.overrides))
        points = pd.DataFrame(grid.points(run.grid))
        for axis in ("passes", "step", "clip"):
            settings = np.sort(points[axis].unique())
            text = ", ".join(f"{setting:g}" for setting in settings)
            if len(settings) > 9:
                text = f"{settings[0]:g} to {settings[-1]:g}, logarithmic"
            row = {
                "algorithm": label,
                "parameter": axis,
                "number": len(settings),
            }
            rows.append(row | {"values": text})
    return pd.DataFrame(rows)


def support(
    paper: Paper,
    folder: Path,
    inputs: Inputs,
    product: Product,
    problems: list[str],
    solvers: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Table 3: coordinates correctly and wrongly non-zero, and the relative error."""
    rows: Rows = []
    columns = ["true_positives", "false_positives", "relative_error"]
    solver_results = results.load(paper, folder, problems, solvers)
    for run in chain.from_iterable(solver_results[name] for name in problems):
        row: dict[str, Any] = {"problem": run.problem, "algorithm": run.label}
        if run.ran(product.calibration):
            tuned = run.tuning(product.calibration)
            fresh = run.final(product.calibration)
            wrong = int((fresh["false_positives"] > 0).sum())
            low, high = clopper_pearson(wrong, len(fresh))
            section = read("problem", run.problem, inputs.overrides)
            optimum = load_optimum(section, inputs.data)
            row["support_size"] = int(optimum.support.sum())
            row |= tuned[columns].mean().to_dict()
            row |= fresh[columns].mean().add_prefix("fresh_").to_dict()
            row |= {
                "fresh_runs": len(fresh),
                "fresh_runs_with_a_wrong_one": wrong,
            }
            rows.append(row | {"wrong_ci_low": low, "wrong_ci_high": high})
        elif not run.available:
            rows.append(row | {"algorithm": _MISSING})
    keys = ["problem", "algorithm"]
    printed = results.published(paper, "table3").drop(columns="support_size")
    printed = printed.set_index(keys).add_prefix("published_").reset_index()
    return pd.DataFrame(rows).merge(printed, on=keys, how="left")


def selection(
    swept: pd.DataFrame, ranges: dict[str, list[float]]
) -> pd.DataFrame:
    """Exponents in p and in log p where the selection fails, by range of p."""
    rows = Rows()
    for name, ends in ranges.items():
        rows_of_range = swept[swept["p"].between(*ends)].assign(
            range=name, draw=0
        )
        rows += exponents(rows_of_range, "p", ["iterations", "range"])
    return pd.DataFrame(rows)


def selection_law(swept: pd.DataFrame, middle: float) -> pd.DataFrame:
    """How the excess grows with p by the exact law, below and above a middle p.

    ``slope`` is that of the excess in log p, ``power`` the local exponent of p; both
    have 95 % intervals over runs of a p. ``slope_of_a_power`` is the slope above the
    middle over that below it, had the excess grown between its ends as a power of p.
    A logarithm has one slope, a power one exponent.
    """
    rows = Rows()
    for group_keys, group in groups(swept, ["iterations"]):
        means = group.groupby("p")["share"].agg(["mean", "sem"])
        log = np.log(means.index.to_numpy(float))
        mean = means["mean"].to_numpy()
        error = means["sem"].to_numpy()
        start = mean[0]
        end = mean[-1]
        exponent = np.log(end / start) / (log[-1] - log[0])
        straight = start * np.exp(exponent * (log - log[0]))
        row = dict(group_keys)
        slopes = {}
        powers = {}
        bent = {}
        sides = {
            "below": log <= np.log(middle),
            "above": log >= np.log(middle),
        }
        for side, on_side in sides.items():
            x = log[on_side]
            y = mean[on_side]
            e = error[on_side]
            slopes[side] = _line(x, y, e)
            powers[side] = _line(x, np.log(y), e / y)
            bent[side] = _line(x, straight[on_side], e)[0]
            row |= named(f"slope_{side}", slopes[side])
            row |= named(f"power_{side}", powers[side])
        row |= named("slopes", _quotient(slopes["above"], slopes["below"]))
        row |= named("powers", _quotient(powers["above"], powers["below"]))
        row["slope_of_a_power"] = bent["above"] / bent["below"]
        row |= {
            "least_p": float(np.exp(log[0])),
            "most_p": float(np.exp(log[-1])),
        }
        rows.append(row | {"least": start, "most": end})
    return pd.DataFrame(rows)


def _line(
    x: np.ndarray, y: np.ndarray, error: np.ndarray
) -> tuple[float, float, float]:
    """Slope of y in x, equally weighted, with its 95 % interval by the errors of y.

    All three are NaN if there are fewer than two points.
    """
    if len(x) < 2:
        return math.nan, math.nan, math.nan
    away = x - x.mean()
    weights = away / (away @ away)
    slope = float(weights @ y)
    half = 1.96 * float(np.sqrt(weights**2 @ error**2))
    return slope, slope - half, slope + half


def _quotient(
    above: tuple[float, float, float], below: tuple[float, float, float]
) -> tuple[float, float, float]:
    """A quotient of two positive slopes; the interval adds their relative errors."""
    middle = above[0] / below[0]
    relative_errors = [
        (high - low) / (2 * slope) for slope, low, high in (above, below)
    ]
    half = middle * math.hypot(*relative_errors)
    return middle, middle - half, middle + half


def sparsity(swept: pd.DataFrame) -> pd.DataFrame:
    """Exponents of the excess in the number of coefficients that are not zero."""
    growing_tau = growing.along(swept, "tau")
    return pd.DataFrame(exponents(growing_tau, "tau", ["p", "n"]))


def exponents(swept: pd.DataFrame, knob: str, by: list[str]) -> Rows:
    """Exponent of the excess in p or tau, with its 95 % interval, by algorithm.

    For p there is one in log p as well. ``least`` and ``most`` are the shares of the
    excess of w = 0 at the ends. Points are means over the fresh runs of a draw; there
    must be three values of the knob.
    """
    rows: Rows = []
    for row, group in groups(swept, [*by, "algorithm"]):
        means = group.groupby([knob, "draw"])["share"].mean().reset_index()
        x = means[knob].to_numpy(float)
        y = means["share"].to_numpy(float)
        if len(np.unique(x)) < 3 or not ((x > 0).all() and (y > 0).all()):
            continue
        row |= named("exponent", power(x, y))
        if knob == "p":
            row |= named("log_exponent", power(np.log(x), y))
        ends = means.groupby(knob)["share"].mean()
        row |= {"least": float(ends.iloc[0]), "most": float(ends.iloc[-1])}
        rows.append(row | {"learnt": min(ends) < growing.LEARNT})
    return rows
