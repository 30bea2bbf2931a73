"""What helps and what hurts on each problem, and whether Table 1 said so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dperm.core.erm.problem import Problem
from dperm.core.experiment import results, schema
from dperm.core.experiment.results import Result
from dperm.core.lanes.dp_skgd import Sketch
from dperm.papers.dpskgd.bounds import loaded, sketching, solver_bounds
from dperm.papers.dpskgd.directions import CONTROL, agrees
from dperm.papers.dpskgd.theory import Bound
from dperm.present.intervals import compared, measured, verdict, widest

# question: (first solver, second solver); below 1 the first is better
QUESTIONS: dict[str, list[tuple[str, str]]] = {
    "importance against uniform": [
        ("dp_skgd_importance", "dp_skgd"),
        ("dp_skgd_blocks4_importance", "dp_skgd_blocks4"),
        ("dp_skgd_blocks2_importance", "dp_skgd_blocks2"),
    ],
    "blocks against single coordinates": [
        (f"dp_skgd_{kind}", "dp_skgd")
        for kind in ("full", "blocks2", "blocks4", "blocks20", "blocks100")
    ],
    "tau-nice against a partition": [
        ("dp_skgd_nice2", "dp_skgd_blocks4"),
        ("dp_skgd_nice4", "dp_skgd_blocks2"),
    ],
    "sketches against DP-SGD": [
        ("dp_skgd_full", "dp_sgd"),
        ("dp_skgd", "dp_sgd"),
        ("dp_skgd_importance", "dp_sgd"),
    ],
    "sketches against DP-SVRG": [("dp_skgd_full", "dp_svrg"), ("dp_skgd", "dp_svrg")],
    "uniform draws against a cycle": [("dp_skgd", "dp_cd")],
}


def comparisons(
    config: schema.Config,
    product: schema.Product,
    problems: list[str],
    found: dict[str, list[Result]] | None = None,
) -> list[dict[str, Any]]:
    """Every question on every problem: measured ratio, predicted ratios, verdict.

    Where two samplings have one law, their ratio shows what luck alone can do. The
    widest such ratio is a band: no ratio inside it is called decided elsewhere.

    Parameters
    ----------
    config, product, problems
        Of a table.
    found : dict, optional
        Results by problem, in place of those of the paper's runs.
    """
    found = results.load(config, problems) if found is None else found
    rows: list[dict[str, Any]] = []
    for name in problems:
        by_name = {r.solver: r for r in found[name] if r.available}
        rows += _asked(config, name, by_name, product.calibration)
    controls = [row["ratio"] for row in rows if row["question"] == CONTROL]
    for row in rows:
        row["band"] = 1.0 if row["question"] == CONTROL else widest(controls)
        row["verdict"] = verdict(row, row["band"])
        for key in ("convex", "strong"):
            row[f"{key}_right"] = agrees(row[f"predicted_{key}"], row["verdict"])
    return rows


def _asked(
    config: schema.Config, name: str, by_name: dict[str, Result], kind: str
) -> list[dict[str, Any]]:
    """The questions that a problem's solvers can answer."""
    terms = solver_bounds(config, name, list(by_name)) if by_name else {}
    problem, _ = loaded(config, name)
    known = {
        solver: measured(
            result.final(kind)["relative_error"].to_numpy(),
            result.tuned[result.tuned["calibration"] == kind],
        )
        for solver, result in by_name.items()
    }
    return [
        {"question": CONTROL if same_law(problem, first, second) else question,
         "problem": name, "first": by_name[first].label,
         "second": by_name[second].label, **compared(known[first], known[second]),
         **_predicted(terms[first], terms[second])}
        for question, pairs in QUESTIONS.items()
        for first, second in pairs
        if first in known and second in known
    ]  # fmt: skip


def same_law(problem: Problem | None, first: str, second: str) -> bool:
    """Whether two samplings coincide on a problem: importance where all M are equal."""
    chosen = [sketching(solver) for solver in (first, second)]
    if problem is None or not all(chosen):
        return False
    a, b = (Sketch(problem, options) for options in chosen if options)
    if a.nice or b.nice or len(a.sets) != len(b.sets):
        return False
    return np.allclose(a.q, b.q, rtol=1e-9) and all(
        np.array_equal(*pair) for pair in zip(a.sets, b.sets, strict=True)
    )


def _predicted(first: Bound, second: Bound) -> dict[str, float]:
    strong = math.isfinite(first.strong) and math.isfinite(second.strong)
    return {
        "predicted_convex": first.convex / second.convex,
        "predicted_strong": first.strong / second.strong if strong else math.nan,
    }
