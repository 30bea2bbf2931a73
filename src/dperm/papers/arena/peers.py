"""Other libraries on the arena's problems: ``dperm arena --peers``.

Each runs in an environment of its own below ``data/peers``, made once, with the library
and what it needs pinned; where that cannot be made, its rows say why. It gets the same
records, in units of the public scales and clipped as our methods clip them, and its
weights are measured by the same objective. Its epsilon is the library's own claim: the
noise of these models is no event that our accountant knows.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm import schema
from dperm.erm.problem import Problem
from dperm.papers.arena import outcomes
from dperm.papers.arena.metrics import is_signed
from dperm.pipeline import inputs, plan, problems, seeds
from dperm.present.tables import made_of, save
from dperm.solvers.fits.scaled import Scaled

log = logging.getLogger(__name__)

PROBLEMS = ("breast_cancer", "diabetes", "electricity_raw", "california_norm")
LABEL = 3.0  # bound on labels, in their scale
LIMIT = 900.0  # seconds that making an environment, or a problem, may take
COLUMNS = [*outcomes.COLUMNS, "library", "version"]


@dataclass(frozen=True)
class Peer:
    """A library beside ours.

    Attributes
    ----------
    name : str
        Of its environment.
    requires : tuple of str
        What pip installs.
    script : str
        In ``peer_scripts``.
    labels : dict
        What its models are called, by the kind of loss.
    notes : dict
        What is known of their claims, by the kind of loss.
    """

    name: str
    requires: tuple[str, ...]
    script: str
    labels: dict[str, str]
    notes: dict[str, str]


PEERS = (
    Peer(
        "diffprivlib-0.6.6",
        ("diffprivlib==0.6.6", "scikit-learn==1.7.2"),
        "diffprivlib_models.py",
        {
            "logistic": "diffprivlib LogisticRegression",
            "least squares": "diffprivlib LinearRegression",
        },
        {
            "logistic": "pure, the library's claim",
            "least squares": "pure, the library's claim, which our audit refutes",
        },
    ),
)


def run(config: schema.Config) -> list[Path]:
    """Run every peer on ``problem=...``, or on the four of ``PROBLEMS``."""
    given = any(one.startswith("problem=") for one in config.overrides)
    names = [config.problem.name] if given else [*PROBLEMS]
    found = []
    for peer in PEERS:
        python, reason = environment(peer, Path(config.data.dir))
        for name in names:
            rows = _rows(config, peer, python, reason, name)
            for row in rows:
                log.info("%s", _said(row))
            found += rows
    table = pd.DataFrame(found).reindex(columns=COLUMNS)
    stem = plan.results_folder(config, config.paper.name) / "peers"
    caption = "Other libraries on the same records, by default settings, measured by "
    caption += "the same objective; epsilon as each claims it."
    return save(made_of(table.to_dict("records")), stem, caption)


def _said(row: dict[str, Any]) -> str:
    known = f"{row['problem']}, {row['algorithm']}"
    if row["status"] != "ok":
        return f"{known}: left out: {row['reason']}"
    return f"{known}, epsilon {row['epsilon']:g}: {row['mean']:.4g}"


def environment(peer: Peer, data: Path) -> tuple[Path, str]:
    """Its Python, and why there is none; empty if there is one."""
    folder = data.absolute() / "peers" / peer.name
    python, done = folder / "bin" / "python", folder / "installed"
    if done.is_file():
        return python, ""
    log.info("%s: making %s", peer.name, folder)
    steps = (
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", *peer.requires],
    )
    for step in steps:
        reason = _failed(step)
        if reason:
            return python, f"its environment cannot be made: {reason}"
    done.touch()
    return python, ""


def _failed(command: Sequence[str]) -> str:
    """Why a command failed; empty if it did not."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    try:
        ended = subprocess.run(
            command,
            env=clean,
            timeout=LIMIT,
            capture_output=True,
            text=True,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = ended.stderr.strip().splitlines() or ["no message"]
    return lines[-1] if ended.returncode else ""


def _rows(
    config: schema.Config, peer: Peer, python: Path, reason: str, name: str
) -> list[dict[str, Any]]:
    """A row for every epsilon of the arena, or one with the reason."""
    at = plan.at_problem(config, name)
    known = {"problem": name, "solver": peer.name, "tuning": "default",
             "public_scales": True}  # fmt: skip
    if not reason:
        for stage in (problems.fetch, problems.prepare, problems.optimum):
            stage(at)
    problem = None if reason else inputs.load_problem(at)
    if problem is None:
        reason = reason or inputs.unavailable_reason(at)
        label = ", ".join(peer.labels.values())
        return [{**known, "algorithm": label, "status": "left out", "reason": reason}]
    kind = "logistic" if is_signed(problem) else "least squares"
    known["algorithm"] = peer.labels[kind]
    what = config.paper.sweeps["contest"].options
    own = [seeds.seed(config.seed, "peers", name, peer.name, 0, k) % 2**31
           for k in range(what["fresh"])]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        read, written = Path(folder) / "in.npz", Path(folder) / "out.npz"
        scaled = Scaled(problem)
        np.savez(read, **_given(scaled, kind), epsilons=what["epsilons"], seeds=own)
        script = Path(__file__).parent / "peer_scripts" / peer.script
        reason = _failed([str(python), "-I", str(script), str(read), str(written)])
        if reason:
            return [{**known, "status": "left out", "reason": reason}]
        with np.load(written) as made:
            found = {key: made[key] for key in made.files}
    optimum = inputs.load_optimum(at).value
    return [
        {**known, "epsilon": epsilon, "status": "ok", "given": peer.notes[kind],
         **_measured(problem, scaled, optimum, found["W"][i]),
         "seconds": float(found["seconds"][i].mean()), "true_epsilon": np.nan,
         "library": str(found["library"]), "version": str(found["version"])}
        for i, epsilon in enumerate(what["epsilons"])
    ]  # fmt: skip


def _given(at: Scaled, kind: str) -> dict[str, Any]:
    """Records in units of the scales, clipped to sqrt(p), and labels."""
    rows = at.clipped(at.radius)
    X = rows if isinstance(rows, np.ndarray) else rows.toarray()
    found: dict[str, Any] = {"kind": kind, "R": at.radius, "label": LABEL * at.label,
                             "ridge": float(at.l2.min())}  # fmt: skip
    if kind == "logistic":
        # any signs will do: a record times its label is what the loss reads
        y = np.where(np.arange(at.n) % 2, 1.0, -1.0)
        return {**found, "X": X * y[:, None], "y": y}
    y = np.clip(-at.offset[:, 0], -LABEL * at.label, LABEL * at.label)
    return {**found, "X": X, "y": y}


def _measured(
    problem: Problem, at: Scaled, optimum: float, U: np.ndarray
) -> dict[str, Any]:
    """Relative error of weights in units of the scales (L, p), with its interval."""
    errors = (problem.objective(U / at.S) - optimum) / optimum
    mean, low, high = outcomes.interval(errors)
    return {"mean": mean, "ci_low": low, "ci_high": high, "runs": len(errors),
            "median": float(np.median(errors))}  # fmt: skip
