"""Calibrations of a job, stored beside its results and not repeated.

``ledger.json`` holds, for every calibration and number of passes, the noise multiplier,
the ledger it belongs to, what that ledger costs under its own accountant, and the two
numbers that its true epsilon is proved to lie between, given what is said there.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dperm.core.experiment import files as store
from dperm.core.experiment.inputs import Job
from dperm.core.lanes import trials
from dperm.core.privacy.calibration import Calibration
from dperm.core.privacy.mechanisms import STUDY
from dperm.pipeline import digests

log = logging.getLogger(__name__)


def calibrations(
    job: Job, kinds: Iterable[str], passes: Iterable[float]
) -> dict[tuple[str, float], Calibration]:
    """The calibration of every (kind, passes), from ``ledger.json`` where it has it."""
    path = job.folder / "ledger.json"
    known = _read(path)
    wanted = {
        (kind, value): _key(job, kind, value) for kind in kinds for value in passes
    }
    missing = [pair for pair, key in wanted.items() if key not in known]
    if missing:
        log.info("calibrating %d noises", len(missing))
    with ThreadPoolExecutor(job.config.workers) as pool:
        made = pool.map(
            lambda pair: _entry(job, pair[0], pair[1], wanted[pair]), missing
        )
        known |= {entry["key"]: entry for entry in made}
    first = [known[key] for key in wanted.values()]
    code = digests.noise(job.config.solver.algorithm)
    others = [  # of the paper's other passes; what an older accountant found is gone
        entry
        for key, entry in known.items()
        if key not in wanted.values() and entry.get("code") == code
    ]
    store.write_json(path, first + others)
    return {
        pair: Calibration.from_dict(known[key]["calibrated"])
        for pair, key in wanted.items()
    }


def _entry(job: Job, kind: str, passes: float, key: str) -> dict[str, Any]:
    calibrated = trials.noise(job.problem, job.module, job.options, passes, kind)
    return {
        "key": key,
        "passes": passes,
        "steps": job.steps(passes),
        "code": digests.noise(job.config.solver.algorithm),
        "neighbours": calibrated.ledger.relation,
        "use": " ".join(STUDY.split()),
        "calibrated": calibrated.to_dict(),
    }


def _key(job: Job, kind: str, passes: float) -> str:
    """Everything a calibration depends on."""
    problem = job.problem
    return store.digest(
        [
            *(problem.digest, problem.n, problem.p, problem.epsilon, problem.delta),
            *(kind, job.steps(passes), job.config.solver.algorithm),
            *(asdict(job.options), digests.noise(job.config.solver.algorithm)),
        ]
    )


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        entries = json.loads(path.read_text())
        return {entry["key"]: entry for entry in entries}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError):
        log.warning("%s is unreadable and made anew", path)
        return {}
