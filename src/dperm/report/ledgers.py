"""What the runs of a paper cost, from the ledgers that its results hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dperm import schema
from dperm.pipeline import plan
from dperm.store import files as store


class Ledgers:
    """The ledgers of one paper, each read once.

    Attributes
    ----------
    solvers : dict
        Label of a method in the paper to the name of its solver.
    """

    def __init__(self, config: schema.Config) -> None:
        self._config = config
        self._known: dict[Path, list[dict[str, Any]]] = {}
        self.solvers = {plan.label(config, name): name for name in config.paper.runs}

    def path(self, problem: str, label: str) -> Path | None:
        """The ledger of a method on a problem; None where there is none."""
        if label not in self.solvers:
            return None
        names = (self._config.paper.name, problem, self.solvers[label])
        path = plan.results_folder(self._config, *names, "ledger.json")
        return path if path.is_file() else None

    def epsilon(self, row: dict[str, Any], calibration: str) -> float | None:
        """True epsilon of the runs of a row: problem, algorithm, passes.

        The largest, if several settings of these passes differ in it; None where no
        ledger knows it.
        """
        path = self.path(row["problem"], row["algorithm"])
        if path is None:
            return None
        if path not in self._known:
            self._known[path] = store.read_json(path)
        costs = [
            entry["calibrated"]["true_epsilon"]
            for entry in self._known[path]
            if entry["calibrated"]["calibration"] == calibration
            and entry["passes"] == row.get("passes")
        ]
        return max(costs) if costs and None not in costs else None
