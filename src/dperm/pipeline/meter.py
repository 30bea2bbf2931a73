"""What the jobs of a run cost: the files that ``dperm.pipeline.launch`` writes.

There is one for each job beside its log, ``logs/<stage>/<name>.json``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dperm.core.experiment import files as store
from dperm.pipeline.jobs import STAGES
from dperm.pipeline.launch import METER

COSTS = {"cpu_seconds", "wall_seconds", "peak_mb", "threads"}  # of every job


def note(**numbers: float) -> None:
    """Add numbers of this stage to the meter of its job, if it runs as one."""
    path = os.environ.get(METER)
    if path:
        store.write_json(
            Path(path), {**(store.known_json(Path(path)) or {}), **numbers}
        )


def read(logs: Path) -> dict[str, dict[str, Any]]:
    """Costs of all jobs that have a meter in a folder of logs, by ``stage/name``."""
    costs = {}
    for stage in STAGES:
        for path in sorted((logs / stage).rglob("*.json")):
            cost = store.known_json(path)
            if cost and COSTS.issubset(cost):
                name = path.relative_to(logs).with_suffix("").as_posix()
                costs[name if STAGES[stage].name else stage] = cost
    return costs
