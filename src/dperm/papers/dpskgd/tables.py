"""Tables of Maranjyan et al. 2024 (DP-SkGD): bounds, errors, and comparisons."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.calibrations import STRICT
from dperm.core.erm.problem import Problem
from dperm.core.experiment import plan, results
from dperm.core.experiment.results import Result
from dperm.core.experiment.schema import Config, Product
from dperm.core.lanes import dp_cd, trials
from dperm.kinds.sweeps import problem_of
from dperm.papers.dpskgd import measures
from dperm.papers.dpskgd import theory as bounds
from dperm.papers.dpskgd.measures import CONTROL_TUNED, FINAL_CALIBRATION
from dperm.present.intervals import compared, measured, widest
from dperm.present.tables import (
    Rows,
    Table,
    groups,
    made_of,
    number,
    where,
)
from dperm.solvers.lanes import dp_skgd
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
    "tau-nice against a partition": [
        ("dp_skgd_nice2", "dp_skgd_blocks4"),
        ("dp_skgd_nice4", "dp_skgd_blocks2"),
    ],
    "sketches against DP-SGD": [
        (name, "dp_sgd") for name in (_FULL, _SINGLE, _IMPORTANCE)
    ],
    "sketches against DP-SVRG": [(name, "dp_svrg") for name in (_FULL, _SINGLE)],
    "uniform draws against a cycle": [(_SINGLE, "dp_cd")],
}


def utility(config: Config, product: Product, problems: list[str]) -> Table:
    """Table 1: symbols, and numbers for each problem and sampling that is run."""
    ran = results.load(config, problems)
    rows = (bounds.table1(config, name, ran[name]) for name in problems)
    return made_of([row for group in rows for row in group])


def exponents(config: Config, product: Product, problems: list[str]) -> Table:
    """Exponent in d of each regime's gain: measured, and of the rows of Table 1."""
    return made_of(measures.fitted(_swept(config, product)))


def noise(config: Config, product: Product, problems: list[str]) -> Table:
    """Noise by Theorem 4.1, by its Renyi curve and exactly; true cost of the first."""
    loaded = filter(None, (problem_of(config, name) for name in problems))
    return made_of([row for each in loaded for row in bounds.noise_costs(each[0])])


def as_dp_cd(config: Config, product: Product, problems: list[str]) -> Table:
    """Objectives of DP-SkGD with single uniform draws and of DP-CD, by DP-CD's order.

    Both have the same seed and clip, step 1, two passes and strict noise. If DP-CD
    draws uniformly as well, both are the same algorithm.
    """
    rows: Rows = []
    known = filter(None, (problem_of(config, name) for name in problems))
    at = {"passes": 2, "step": 1.0, "clip": 5.0}
    for problem, _ in known:
        for order in ("uniform", "cyclic"):
            plain = trials.Trials(problem, dp_cd, dp_cd.Options(order), STRICT)
            single = trials.Trials(problem, dp_skgd, dp_skgd.Options(), STRICT)
            for method, on in (("DP-SkGD single", single), ("DP-CD", plain)):
                end = float(on.fresh(at, [config.seed])[0])
                row = {"problem": problem.name, "order": order, "algorithm": method}
                rows.append(row | {"objective": end})
    return made_of(rows)


def theorem(config: Config, product: Product, problems: list[str]) -> Table:
    """Theorem 4.2 at its own parameters: the excess and the bound."""
    return made_of(measures.beside_bounds(_swept(config, product)))


def rate(config: Config, product: Product, problems: list[str]) -> Table:
    """Exponents in n and epsilon at the theorem's parameters, and the theorem's own."""
    return made_of(measures.exponents(_swept(config, product)))


def placement(config: Config, product: Product, problems: list[str]) -> Table:
    """Importance against uniform draws, by the placement of w* among the M_j.

    Inside Section 4.3.2's regime the steep coordinates are the farthest from w = 0.
    """
    rows = measures.orders(_swept(config, product), product.options["keys"])
    inside = {True: "inside", False: "outside"}
    return made_of([{"regime": inside[row["placement"] > 0], **row} for row in rows])


def _swept(config: Config, product: Product) -> pd.DataFrame:
    return results.load_sweep(config, product.sweeps[0])


# --- what helps, what hurts, and whether Table 1 predicts it --------------------------


def finalists(config: Config, product: Product, problems: list[str]) -> Table:
    """What helps, what hurts, and whether Table 1 predicts it.

    The comparisons are made after one more round of every tuning. ``epochs`` is the
    smaller T that Theorem 4.2 has for the two methods of a comparison, in the strongly
    convex case. If T is negative the theorem does not apply.
    """
    last = last_round(config, _swept(config, product), problems)
    rows = comparisons(config, last, product.calibration)
    epochs = {
        (name, result.label): found.get(result.solver, math.nan)
        for name, listed in last.items()
        for found in (bounds.solver_epochs(config, name, [r.solver for r in listed]),)
        for result in listed
    }
    for row in rows:
        row["epochs"] = min(
            epochs[row["problem"], row[key]] for key in ("first", "second")
        )
    return Table(pd.DataFrame(rows), pd.DataFrame(_answers(rows)).fillna(""))


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
    """Every question on every problem: measured ratio, predicted ratios, verdict.

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
        terms = bounds.solver_bounds(config, name, list(by_name)) if by_name else {}
        loaded, known = problem_of(config, name), {}
        for solver, result in by_name.items():
            tuning = where(result.tuned, calibration=calibration)
            errors = result.final(calibration)["relative_error"].to_numpy()
            known[solver] = measured(errors, tuning)
        for question, first, second in asked:
            if first not in known or second not in known:
                continue
            same = loaded is not None and same_law(loaded[0], first, second)
            one, other = terms[first], terms[second]
            finite = math.isfinite(one.strong) and math.isfinite(other.strong)
            row: dict[str, Any] = {"question": CONTROL_TUNED if same else question}
            row |= {"problem": name, "first": by_name[first].label}
            row["second"] = by_name[second].label
            row |= compared(known[first], known[second])
            row["predicted_convex"] = one.convex / other.convex
            row["predicted_strong"] = one.strong / other.strong if finite else math.nan
            rows.append(row)
    answers = {f"{key}_right": f"predicted_{key}" for key in bounds.TERMS}
    return measures.decide(rows, CONTROL_TUNED, answers)


def same_law(problem: Problem, first: str, second: str) -> bool:
    """Whether two samplings coincide on a problem: importance where all M are equal."""
    chosen = [bounds.sketching(solver) for solver in (first, second)]
    if not all(chosen):
        return False
    a, b = (Sketch(problem, options) for options in chosen if options)
    if a.nice or b.nice or len(a.sets) != len(b.sets):
        return False
    return np.allclose(a.q, b.q, rtol=1e-9) and all(
        np.array_equal(*pair) for pair in zip(a.sets, b.sets, strict=True)
    )


def _answers(rows: Rows) -> list[dict[str, str]]:
    """The band, counts of each question, and all rows of two questions and controls."""
    in_full = (*list(QUESTIONS)[:2], CONTROL_TUNED)
    counts = [_summary(question, rows) for question in (*QUESTIONS, CONTROL_TUNED)]
    lines = [_line(row) for row in rows if row["question"] in in_full]
    return [band_line(rows), *counts, *lines]


def band_line(rows: list[dict[str, Any]]) -> dict[str, str]:
    """The band of the controls, and how many their intervals alone would decide."""
    controls = [row for row in rows if row["question"] == CONTROL_TUNED]
    if not controls:
        return {"what": "band of the controls", "measured": "no control"}
    wrong = sum(row["verdict"] != "undecided" for row in controls)
    band = number(widest([row["ratio"] for row in controls]))
    return {
        "what": "band of the controls: a factor below it decides nothing",
        "measured": f"{band}; by the interval alone {wrong} of {len(controls)} "
        "controls would be decided",
    }


def _cells(what: str, measured: str, convex: str, strong: str) -> dict[str, str]:
    cells = {"what": what, "measured": measured, "convex row": convex}
    return cells | {"strongly convex row": strong}


def _summary(question: str, rows: list[dict[str, Any]]) -> dict[str, str]:
    answers = [row for row in rows if row["question"] == question]
    verdicts = [row["verdict"] for row in answers]
    helps, hurts, open_ = map(verdicts.count, ("helps", "hurts", "undecided"))
    right = (
        sum(row[f"{key}_right"] == "yes" for row in answers) for key in bounds.TERMS
    )
    text = (
        f"better in {helps}, worse in {hurts}, undecided in {open_} of {len(answers)}"
    )
    directions = (f"direction right in {each} of {helps + hurts}" for each in right)
    return _cells(question, text, *directions)


def _line(row: dict[str, Any]) -> dict[str, str]:
    what = f"{row['problem']}: {row['first']} / {row['second']}"
    predicted = (
        f"{number(row[f'predicted_{key}'], 2)} {row[f'{key}_right']}".strip()
        for key in bounds.TERMS
    )
    return _cells(what, _ratio(row, row["verdict"]), *predicted)


def _ratio(row: dict[str, Any], decision: str) -> str:
    """A ratio with its interval and its verdict."""
    low, high = (number(row[key], 2) for key in ("ci_low", "ci_high"))
    return f"{number(row['ratio'], 2)} [{low}, {high}], {decision}"
