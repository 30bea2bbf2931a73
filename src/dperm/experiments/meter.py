"""What the jobs of a run cost: the files that ``dperm.experiments.launch`` writes.

There is one for each job beside its log, ``logs/<stage>/<name>.json``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dperm.experiments.launch import METER
from dperm.storage import files as store

COSTS = {"cpu_seconds", "wall_seconds", "peak_mb", "threads"}  # of every job


def note(**numbers: float) -> None:
    """Add numbers of this stage to the meter of its job, if it runs as one."""
    path = os.environ.get(METER)
    if path:
        store.write_json(
            Path(path), {**(store.known_json(Path(path)) or {}), **numbers}
        )


def read(logs: Path, stages: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Costs of all jobs that have a meter in a folder of logs, by ``stage/name``.

    ``stages`` has the pattern of the names of a stage's jobs; empty if it has one job.
    """
    costs = {}
    for stage, pattern in stages.items():
        for path in sorted((logs / stage).rglob("*.json")):
            cost = store.known_json(path)
            if cost and COSTS.issubset(cost):
                name = path.relative_to(logs).with_suffix("").as_posix()
                costs[name if pattern else stage] = cost
    return costs
