"""Tables of Maranjyan et al. 2024 (DP-SkGD): bounds, errors, and comparisons."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.config.config import read
from dperm.config.schema import Paper
from dperm.experiments import plan, results
from dperm.experiments.inputs import Inputs
from dperm.numerics.intervals import Measured, compared, measured, power
from dperm.papers.dpskgd import theory
from dperm.papers.dpskgd.theorem42 import AGAIN, BASE
from dperm.papers.shared.sweeps import problem_of
from dperm.plotting.tables import Rows, groups, where
from dperm.problems.problem import Problem
from dperm.solvers.batched.dp_skgd import SketchLaw


def utility(
    paper: Paper, folder: Path, inputs: Inputs, problems: list[str]
) -> pd.DataFrame:
    """Table 1: symbols, and numbers for each problem and sampling that is run."""
    rows: Rows = []
    for name, ran in results.load(paper, folder, problems).items():
        if not all(solver_result.available for solver_result in ran):
            continue
        loaded = problem_of(inputs, name)
        for solver_result in ran:
            bound, safe = theory.bounds(solver_result.solver, *loaded)
            convex, strong = theory.SYMBOLS[bound.name]
            row: dict[str, Any] = {
                "problem": name,
                "algorithm": solver_result.label,
            }
            row |= {"row": bound.name}
            row |= {"convex_symbol": convex, "convex": bound.convex}
            row |= {"convex_dominating": safe.convex}
            row |= {
                "strongly_convex_symbol": strong,
                "strongly_convex": bound.strong,
            }
            rows.append(row | {"noise": bound.noise, "radius": bound.radius})
    return pd.DataFrame(rows)


# --- Section 4.3: gains against the dimension -----------------------------------------


def exponents(swept: pd.DataFrame) -> pd.DataFrame:
    """Exponent in d of each regime's gain: measured, and of the rows of Table 1."""
    return pd.DataFrame(fitted(swept))


def fitted(table: pd.DataFrame) -> Rows:
    """One row per regime and n: slopes in log d of ratios worse / better.

    Dimensions where either method's mean excess is above half its start are left out,
    since noise dominates there.
    """
    rows: Rows = []
    for group_keys, group in groups(of_law(table), ["regime", "n"]):
        worse, better = group["algorithm"].unique()
        excess = group.pivot(
            index=["replicate", "draw"],
            columns=["algorithm", "d"],
            values="excess",
        )
        start = group.groupby("d")["start"].first()
        means = {name: excess[name].mean() for name in (worse, better)}
        highest = pd.concat(means.values(), axis=1).max(axis=1)
        learnt_dimensions = [
            d for d in start.index if highest[d] < start[d] / 2
        ]
        if len(learnt_dimensions) < 2:
            continue
        gain = means[worse] / means[better]
        predicted = row_ratios(group)
        row = {
            "regime": group_keys["regime"],
            "worse": worse,
            "better": better,
        }
        row |= {
            "n": int(group_keys["n"]),
            "d_from": learnt_dimensions[0],
            "d_to": learnt_dimensions[-1],
        }
        row["exponent"] = slope(learnt_dimensions, gain)
        ends = _bootstrap(learnt_dimensions, excess[worse], excess[better])
        row |= dict(zip(("ci_low", "ci_high"), ends, strict=True))
        row["gain_at_d_to"] = gain[learnt_dimensions[-1]]
        row |= {
            f"{key}_row": slope(learnt_dimensions, ratios)
            for key, ratios in predicted.items()
        }
        rows.append(row | {"runs": len(excess)})
    return rows


def of_law(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the sweep that were drawn from the law of the iterate."""
    return table[table["source"] == "law"]


def row_ratios(table: pd.DataFrame) -> dict[str, pd.Series]:
    """Table 1's rows of a regime's worse method over the better's, against d."""
    worse, better = table["algorithm"].unique()
    terms = table.groupby(["algorithm", "d"])[["convex", "strong"]].first()
    return {
        key: terms.loc[worse, key] / terms.loc[better, key] for key in terms
    }


def slope(dims: list[int], ratio: pd.Series) -> float:
    """The exponent of d in a ratio, at some dimensions."""
    return float(
        np.polyfit(np.log(dims), np.log(ratio[dims].to_numpy()), 1)[0]
    )


def _bootstrap(
    dims: list[int],
    worse: pd.DataFrame,
    better: pd.DataFrame,
    draws: int = 2000,
) -> tuple[float, float]:
    """95 % percentile interval of the slope; each dimension resamples its own runs."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0)))
    tops = worse[dims].to_numpy()
    bottoms = better[dims].to_numpy()
    pick = rng.integers(0, len(tops), (2, draws, *tops.shape))
    over = np.take_along_axis(tops[None], pick[0], 1).mean(axis=1)
    under = np.take_along_axis(bottoms[None], pick[1], 1).mean(axis=1)
    slopes = np.polyfit(np.log(dims), np.log(over / under).T, 1)[0]
    low, high = np.quantile(slopes, [0.025, 0.975])
    return float(low), float(high)


# --- Theorem 4.2 at its own parameters ------------------------------------------------

AXES = {"n": "epsilon", "epsilon": "n"}  # and the key that is fixed along it
DRAWN = ["instance", "case", "sampling"]
FITTED = ("excess", "bound", "expected")
MIN_POINTS = 4  # points of a fit


def rate(swept: pd.DataFrame) -> pd.DataFrame:
    """Exponents in n and in epsilon of the measured and expected excess and the bound.

    They are fitted where the bound is below the excess of w = 0, to the means over the
    transcripts, by least squares in logarithms. Student's interval includes the noise
    of the means and the deviation from a power law. ``theorem`` is the exponent without
    logarithms, ``bound`` that of the bound on the same points.
    """
    learnt = swept.dropna(subset="excess")
    runs = learnt[learnt["start_over_bound"] >= 1].groupby(
        [*DRAWN, *AXES], sort=False
    )
    first_columns = {
        name: (name, "first") for name in ("bound", "expected", "start")
    }
    aggregates = {"excess": ("excess", "mean"), "runs": ("excess", "size")}
    means = runs.agg(**aggregates, **first_columns).reset_index()
    rows = Rows()
    for axis, fixed_axis in AXES.items():
        for group_keys, group in groups(means, [*DRAWN, fixed_axis]):
            if len(group) < MIN_POINTS:
                continue
            x = group[axis].to_numpy(float)
            share = group["excess"] / group["start"]
            fits = {name: power(x, group[name].to_numpy()) for name in FITTED}
            row = {"axis": axis} | {name: group_keys[name] for name in DRAWN}
            names = ("exponent", "ci_low", "ci_high")
            row |= dict(zip(names, fits.pop("excess"), strict=True))
            row |= {name: fit[0] for name, fit in fits.items()}
            row["theorem"] = -1 if group_keys["case"] == "convex" else -2
            row |= {"points": len(group), "runs": int(group["runs"].min())}
            ends = {"least_share": share.min(), "largest_share": share.max()}
            rows.append(row | ends)
    return pd.DataFrame(rows)


# --- ratios of two methods, beside what chance alone does: the same law twice ---------

CONTROL = "control: one law twice"
CONTROL_TUNED = "control: one law twice, tuned twice"


def banded(rows: Rows, control: str) -> pd.DataFrame:
    """Add the band: the widest ratio of the controls, which compare a law with itself.

    Comparisons inside it decide nothing; a control's own band is 1.

    Parameters
    ----------
    rows : list of dict
        Of ``compared``, with a ``question``.
    control : str
        The question of the controls.
    """
    apart = [
        abs(math.log(row["ratio"]))
        for row in rows
        if row["question"] == control
    ]
    band = math.exp(max(apart, default=0.0))
    band_columns = (
        {"band": 1.0 if row["question"] == control else band} for row in rows
    )
    return pd.DataFrame(
        [
            row | band_column
            for row, band_column in zip(rows, band_columns, strict=True)
        ]
    )


PLACED = ["instance", "length", "placement", "n"]  # a problem of the placement


def placement(swept: pd.DataFrame) -> pd.DataFrame:
    """Importance against uniform draws, by the placement of w* among the M_j.

    Inside Section 4.3.2's regime the steep coordinates are the farthest from w = 0. The
    control is the same law on other seeds; its band applies to the whole sweep.
    ``predicted`` is the ratio of Table 1's rows.
    """
    rows: Rows = []
    for placed, group in groups(swept.dropna(subset="excess"), PLACED):
        by = dict(list(group.groupby("sampling", sort=False)))
        base = by.pop(BASE)
        base_run = base.iloc[0]
        for name, runs in by.items():
            first_run = runs.iloc[0]
            inside = placed["placement"] > 0
            row = {"regime": "inside" if inside else "outside", **placed}
            uniform = "against single uniform draws"
            row["question"] = CONTROL if name == AGAIN else uniform
            row |= {"first": name, "second": BASE}
            row |= compared(_measured(runs), _measured(base))
            row["expected"] = first_run["expected"] / base_run["expected"]
            row["predicted"] = first_run["row"] / base_run["row"]
            start = min(
                first_run["start_over_bound"], base_run["start_over_bound"]
            )
            rows.append(row | {"start_over_bound": start})
    return banded(rows, CONTROL)


def _measured(runs: pd.DataFrame) -> Measured:
    """Log mean and its variance, by transcripts alone, since no setting was tuned."""
    logs = np.log(runs["excess"].to_numpy())
    size = len(logs)
    return Measured(
        float(logs.mean()), float(logs.var(ddof=1)) / size, 0.0, size, size
    )


_SINGLE = "dp_skgd"
_IMPORTANCE = "dp_skgd_importance"
_FULL = "dp_skgd_full"
# question: (first solver, second solver); if the ratio is below 1, the first is better
QUESTIONS: dict[str, list[tuple[str, str]]] = {
    "importance against uniform": [
        (_IMPORTANCE, _SINGLE),
        ("dp_skgd_blocks4_importance", "dp_skgd_blocks4"),
        ("dp_skgd_blocks2_importance", "dp_skgd_blocks2"),
    ],
    "blocks against single coordinates": [
        (_FULL, _SINGLE),
        *((f"dp_skgd_blocks{count}", _SINGLE) for count in (2, 4, 20, 100)),
    ],
    "sketches against DP-SGD": [
        (name, "dp_sgd") for name in (_FULL, _SINGLE, _IMPORTANCE)
    ],
    "sketches against DP-SVRG": [
        (name, "dp_svrg") for name in (_FULL, _SINGLE)
    ],
}


def finalists(
    swept: pd.DataFrame, paper: Paper, inputs: Inputs, problems: list[str]
) -> pd.DataFrame:
    """What helps and what hurts, after one more round of every tuning.

    Every question on every problem has a ratio, its interval and the band. If two
    samplings have the same law, their ratio is a control, which shows the effect of
    chance alone.
    """
    rows = Rows()
    swept = swept[swept["status"] != "unavailable"]
    # smoke has several
    swept = swept[swept["replicate"] == swept["replicate"].min()]
    for name in [name for name in problems if name in set(swept["problem"])]:
        (problem, _) = problem_of(inputs, name)
        solver_errors = {}
        for solver, solver_runs in where(swept, problem=name).groupby(
            "solver"
        ):
            fresh = where(solver_runs, stage="fresh")
            choose = where(solver_runs, stage="choose")
            errors = fresh["relative_error"].to_numpy()
            solver_errors[solver] = measured(
                errors, choose.assign(replicate=choose["number"])
            )
        for question, pairs in QUESTIONS.items():
            for first_solver, second_solver in pairs:
                if (
                    first_solver not in solver_errors
                    or second_solver not in solver_errors
                ):
                    continue
                same = same_law(problem, first_solver, second_solver)
                row = {
                    "question": CONTROL_TUNED if same else question,
                    "problem": name,
                }
                names = (
                    plan.label(
                        paper, read("solver", solver_name, inputs.overrides)
                    )
                    for solver_name in (first_solver, second_solver)
                )
                row |= dict(zip(("first", "second"), names, strict=True))
                rows.append(
                    row
                    | compared(
                        solver_errors[first_solver],
                        solver_errors[second_solver],
                    )
                )
    return banded(rows, CONTROL_TUNED)


def same_law(problem: Problem, first_solver: str, second_solver: str) -> bool:
    """Whether two samplings coincide on a problem: importance where all M are equal."""
    chosen = [
        theory.sketching(solver) for solver in (first_solver, second_solver)
    ]
    if not all(chosen):
        return False
    a, b = (SketchLaw(problem, options) for options in chosen if options)
    same = [S.tolist() for S in a.sets] == [S.tolist() for S in b.sets]
    return same and np.allclose(a.q, b.q, rtol=1e-9)
