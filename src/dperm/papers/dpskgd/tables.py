"""Tables of Maranjyan et al. 2024 (DP-SkGD): bounds, errors, and comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dperm.core.erm.problem import Problem
from dperm.core.experiment import plan, results
from dperm.core.experiment.results import Result
from dperm.core.experiment.schema import Config, Product
from dperm.kinds.sweeps import problem_of
from dperm.kinds.tables import swept_of
from dperm.papers.dpskgd import measures
from dperm.papers.dpskgd import theory as bounds
from dperm.papers.dpskgd.measures import CONTROL_TUNED, FINAL_CALIBRATION
from dperm.present.intervals import compared, measured
from dperm.present.tables import Rows, groups, where
from dperm.solvers.lanes.dp_skgd import Sketch

_SINGLE, _IMPORTANCE, _FULL = "dp_skgd", "dp_skgd_importance", "dp_skgd_full"
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
    "sketches against DP-SVRG": [(name, "dp_svrg") for name in (_FULL, _SINGLE)],
}


def utility(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Table 1: symbols, and numbers for each problem and sampling that is run."""
    ran = results.load(config, problems)
    rows = (bounds.table1(config, name, ran[name]) for name in problems)
    return pd.DataFrame([row for group in rows for row in group])


def exponents(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Exponent in d of each regime's gain: measured, and of the rows of Table 1."""
    return pd.DataFrame(measures.fitted(swept_of(config, product)))


def noise(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Noise by Theorem 4.1, by its Renyi curve and exactly; true cost of the first."""
    loaded = filter(None, (problem_of(config, name) for name in problems))
    return pd.DataFrame([row for each in loaded for row in bounds.noise_costs(each[0])])


def as_dp_cd(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Objectives of DP-SkGD with single draws and of DP-CD, by DP-CD's order."""
    swept = swept_of(config, product)
    columns = ["problem", "order", "algorithm", "objective"]
    return swept.reindex(columns=columns).dropna(ignore_index=True)


def theorem(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Theorem 4.2 at its own parameters: the excess and the bound."""
    return pd.DataFrame(measures.beside_bounds(swept_of(config, product)))


def rate(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Exponents in n and epsilon at the theorem's parameters, and the theorem's own."""
    return pd.DataFrame(measures.exponents(swept_of(config, product)))


def placement(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Importance against uniform draws, by the placement of w* among the M_j.

    Inside Section 4.3.2's regime the steep coordinates are the farthest from w = 0.
    """
    found = measures.orders(swept_of(config, product))
    found.insert(0, "regime", np.where(found["placement"] > 0, "inside", "outside"))
    return found


# --- what helps and what hurts --------------------------------------------------------


def finalists(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """What helps and what hurts, after one more round of every tuning."""
    last = last_round(config, swept_of(config, product), problems)
    return pd.DataFrame(comparisons(config, last, product.calibration))


def last_round(
    config: Config, swept: pd.DataFrame, problems: list[str]
) -> dict[str, list[Result]]:
    """The sweep of finalists as results of tuning and evaluation, by problem."""
    by_problem: dict[str, list[Result]] = {name: [] for name in problems}
    if "stage" not in swept:
        return by_problem
    first = swept["replicate"] == swept["replicate"].min()  # small scales have several
    usable = swept[first & (swept["status"] != "unavailable")]
    usable = usable.assign(
        calibration=FINAL_CALIBRATION,
        replicate=usable["number"],
        checkpoint=usable["passes"],
    )
    for at, part in groups(usable, ["problem", "solver"]):
        if at["problem"] in by_problem:
            choose, fresh = (
                part[part["stage"] == name] for name in ("choose", "fresh")
            )
            names = (at["problem"], at["solver"], plan.label(config, at["solver"]))
            by_problem[at["problem"]].append(Result(*names, choose, fresh, ""))
    return by_problem


def comparisons(config: Config, ran: dict[str, list[Result]], calibration: str) -> Rows:
    """Every question on every problem: the ratio, its interval and the band.

    If two samplings have the same law, their ratio is a control, which shows the effect
    of chance alone.

    Parameters
    ----------
    ran : dict
        Results by problem.
    """
    rows: Rows = []
    asked = [(key, *pair) for key, pairs in QUESTIONS.items() for pair in pairs]
    for name, listed in ran.items():
        by_name = {result.solver: result for result in listed if result.available}
        loaded, known = problem_of(config, name), {}
        for solver, result in by_name.items():
            tuning = where(result.tuned, calibration=calibration)
            errors = result.final(calibration)["relative_error"].to_numpy()
            known[solver] = measured(errors, tuning)
        for question, first, second in asked:
            if first not in known or second not in known:
                continue
            same = loaded is not None and same_law(loaded[0], first, second)
            row: dict[str, Any] = {"question": CONTROL_TUNED if same else question}
            row |= {"problem": name, "first": by_name[first].label}
            row["second"] = by_name[second].label
            row |= compared(known[first], known[second])
            rows.append(row)
    return measures.banded(rows, CONTROL_TUNED)


def same_law(problem: Problem, first: str, second: str) -> bool:
    """Whether two samplings coincide on a problem: importance where all M are equal."""
    chosen = [bounds.sketching(solver) for solver in (first, second)]
    if not all(chosen):
        return False
    a, b = (Sketch(problem, options) for options in chosen if options)
    if len(a.sets) != len(b.sets):
        return False
    return np.allclose(a.q, b.q, rtol=1e-9) and all(
        np.array_equal(*pair) for pair in zip(a.sets, b.sets, strict=True)
    )
