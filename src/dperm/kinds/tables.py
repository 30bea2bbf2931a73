"""Tables that any paper may name."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dperm import schema
from dperm.pipeline import inputs, results
from dperm.present.tables import Table, number


def noise(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """What the published noise costs, and the noise its epsilon really needs."""
    rows = []
    labels = results.load(config, problems)
    for problem, solver in inputs.runs(config):
        if problem not in problems:
            continue
        label = next(r.label for r in labels[problem] if r.solver == solver)
        entries = results.ledgers(config, problem, solver)
        by_passes: dict[float, dict[str, dict]] = {}
        for entry in entries:
            calibrated = entry["calibrated"]
            kinds = by_passes.setdefault(entry["passes"], {})
            kinds.setdefault(calibrated["calibration"], calibrated)
        for passes in sorted(by_passes):
            kinds = by_passes[passes]
            if set(kinds) == {"paper", "strict"}:
                rows.append(_noise_row(problem, label, passes, kinds))
    data = pd.DataFrame(rows)
    shown = data.copy()
    for column in data.columns[2:]:
        shown[column] = [number(value) for value in data[column]]
    return Table(data, shown)


def _noise_row(problem: str, label: str, passes: float, kinds: dict) -> dict[str, Any]:
    paper, strict = kinds["paper"], kinds["strict"]
    return {
        "problem": problem,
        "algorithm": label,
        "passes": passes,
        "target_epsilon": paper["target_epsilon"],
        "delta": paper["delta"],
        "paper_noise": paper["noise_multiplier"],
        "true_epsilon": paper["true_epsilon"],
        "strict_noise": strict["noise_multiplier"],
        "ratio": strict["noise_multiplier"] / paper["noise_multiplier"],
    }
