"""Other libraries on the arena's problems: ``dperm arena --peers``.

Each library runs in its own environment below ``data/peers``, which is made once with
pinned versions. Where the environment cannot be made, the rows state the reason. A
library gets the same records, in units of the public scales, and its weights are
measured by the same objective. ``epsilon`` is the requested value. Where our accountant
can analyse the releases, ``true_epsilon`` is their cost when a record is replaced, and
a second set of rows has the noise whose true epsilon is the requested one.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.compare import results
from dperm.compare.metrics import is_signed
from dperm.core.calibrations import STRICT
from dperm.core.erm.problem import Problem
from dperm.core.experiment import plan, schema
from dperm.core.experiment.files import write_csv
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import Ledger
from dperm.papers.arena import outcomes
from dperm.pipeline import inputs
from dperm.solvers.fits import dp_minibatch
from dperm.solvers.fits.dp_gd import threshold
from dperm.solvers.fits.scaled import Scaled
from dperm.solvers.records import Records

log = logging.getLogger(__name__)

PROBLEMS = ("breast_cancer", "diabetes", "electricity_raw", "california_norm")
LABEL = 3.0  # bound on labels, in units of their scale
LIMIT = 900.0  # seconds allowed for making an environment, or for a problem
COLUMNS = [*results.COLUMNS, outcomes.DATA, "library", "version"]


def clipped_records(problem: Problem, kind: str) -> dict[str, Any]:
    """Records clipped to norm sqrt(p) and labels, as a model's ``fit`` reads them."""
    at, records = both(problem)
    rows = records.clipped(at.radius)
    X = rows if isinstance(rows, np.ndarray) else rows.toarray()
    found: dict[str, Any] = {
        "kind": kind,
        "R": at.radius,
        "label": LABEL * at.label,
        "ridge": float(at.l2.min()),
    }
    if kind == "logistic":
        # any signs will do: the loss reads only the product of record and label
        y = np.where(np.arange(at.n) % 2, 1.0, -1.0)
        return {**found, "X": X * y[:, None], "y": y}
    y = np.clip(-records.offset[:, 0], -LABEL * at.label, LABEL * at.label)
    return {**found, "X": X, "y": y}


def both(problem: Problem) -> tuple[Scaled, Records]:
    """The public view of a problem, and the records behind it."""
    at = Scaled(problem)
    return at, Records(problem, at.S, at.label)


def as_our_minibatches(problem: Problem, kind: str) -> dict[str, Any]:
    """Records, and the default settings of our own DP-SGD with large batches."""
    ours = dp_minibatch.Options()
    at, records = both(problem)
    rows = records.rows
    return {
        "rows": rows if isinstance(rows, np.ndarray) else rows.toarray(),
        "kind": kind,
        "offset": records.offset[:, 0],
        "C": threshold(at, ours.clip),
        "steps": ours.steps,
        "batch": dp_minibatch.batch(at, ours),
        "momentum": ours.momentum,
        "step": ours.step / (at.loss.curvature * at.p),
        "l1": at.l1[:, 0],
        "l2": at.l2[:, 0],
        "delta": at.delta,
    }


def poisson_releases(at: Scaled, noise: float) -> Ledger:
    """Bound on the cost of DP-SGD on Poisson batches, noise in units of the clip C.

    Let a record be replaced, and couple all other draws. With probability 1 - q it is
    not in the batch, and both laws are the same one, P0. With it they are P1 and Q1, at
    distance at most 2 C from each other and C from P0. By advanced joint convexity
    (Balle, Barthe and Gaboardi 2018, Theorem 2) delta' is at most
    q ((1 - b) delta(P1, P0) + b delta(P1, Q1)) for a b in [0, 1]. That is at most
    q delta(2 C), the curve of batches without replacement (their Theorem 11), which our
    own ledger uses.
    """
    return dp_minibatch.ledger(at, noise / 2, dp_minibatch.Options())


@dataclass(frozen=True)
class Peer:
    """Another library that runs on the arena's problems."""

    name: str  #: of its environment
    requires: tuple[str, ...]  #: packages that pip installs
    script: str  #: in ``peer_scripts``
    labels: Mapping[str, str]  #: names of its models, by the kind of loss
    notes: Mapping[str, str]  #: remarks on their privacy claims, by the kind of loss
    #: arrays that the script reads, from a problem and the kind of its loss
    gives: Callable[[Problem, str], dict[str, Any]] = clipped_records
    #: releases, from a scaled problem and the noise that the script reports; None where
    #: our accountant knows no such event
    ledger: Callable[[Scaled, float], Ledger] | None = None


SGD = "jax-privacy DP-SGD"
ADDED = "for a record that is added or removed, the library's claim"
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
    Peer(
        "jax-privacy-2.0.0",
        (
            "jax-privacy==2.0.0",
            "jax==0.10.2",
            "jaxlib==0.10.2",
            "optax==0.2.8",
            "chex==0.1.92",
            "dp-accounting==0.6.0",
            "numpy==2.4.6",
            "scipy==1.17.1",
        ),
        "jax_privacy_sgd.py",
        {"logistic": SGD, "least squares": SGD},
        {"logistic": ADDED, "least squares": ADDED},
        as_our_minibatches,
        poisson_releases,
    ),
)


def run(config: schema.Config) -> list[Path]:
    """Run every peer on ``problem=...``, by default on the four of ``PROBLEMS``."""
    given = any(one.startswith("problem=") for one in config.overrides)
    names = [config.problem.name] if given else [*PROBLEMS]
    found = []
    for peer in PEERS:
        python, reason = environment(peer, Path(config.data.dir))
        for name in names:
            rows = _rows(config, peer, python, reason, name)
            for row in rows:
                log.info("%s", _progress_line(row))
            found += rows
    table = pd.DataFrame(found).reindex(columns=COLUMNS)
    path = plan.results_folder(config, config.paper.name, "peers.csv")
    write_csv(path, table)
    return [path]


def _progress_line(row: dict[str, Any]) -> str:
    known = f"{row['problem']}, {row['algorithm']}"
    if row["status"] != "ok":
        return f"{known}: left out: {row['reason']}"
    return f"{known}, epsilon {row['epsilon']:g}: {row['mean']:.4g}"


def environment(peer: Peer, data: Path) -> tuple[Path, str]:
    """Path of a peer's Python, and the reason if there is none, else empty."""
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
    """Reason why a command failed; empty if it did not."""
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
    """Rows for every epsilon of the arena, or one row with the reason for none."""
    at = plan.at_problem(config, name)
    known = {
        "problem": name,
        "solver": peer.name,
        "tuning": "default",
        "public_scales": True,
    }
    if not reason:
        for stage in (inputs.fetch, inputs.prepare, inputs.optimum):
            stage(at)
    problem = None if reason else inputs.load_problem(at)
    if problem is None:
        reason = reason or inputs.unavailable_reason(at)
        label = ", ".join(dict.fromkeys(peer.labels.values()))
        return [{**known, "algorithm": label, "status": "left out", "reason": reason}]
    kind = "logistic" if is_signed(problem) else "least squares"
    known["algorithm"] = peer.labels[kind]
    what, scaled = config.paper.sweeps["contest"].options, Scaled(problem)
    own = [
        plan.seed_of(config.seed, "peers", name, peer.name, 0, k) % 2**31
        for k in range(what["fresh"])
    ]
    asked = {**peer.gives(problem, kind), "epsilons": what["epsilons"], "seeds": own}
    optimum = inputs.load_optimum(at).value
    rows = []
    for more, noise in _noises(peer, scaled, kind, what["epsilons"]):
        found, reason = _ran(peer, python, {**asked, "noise": noise})
        if reason:
            return [{**known, "status": "left out", "reason": reason}]
        for i, epsilon in enumerate(what["epsilons"]):
            rows.append(
                {
                    **known,
                    "epsilon": epsilon,
                    "status": "ok",
                    **_measured(problem, scaled, optimum, found["W"][i]),
                    "seconds": float(found["seconds"][i].mean()),
                    "true_epsilon": _true(peer, scaled, found, i),
                    "library": str(found["library"]),
                    "version": str(found["version"]),
                    **more,
                }
            )
    return rows


def _noises(
    peer: Peer, at: Scaled, kind: str, epsilons: Sequence[float]
) -> list[tuple[dict[str, Any], list[float]]]:
    """Columns of each set of rows, and its noise: the library's (NaN), or ours."""
    own = [np.nan] * len(epsilons)
    if peer.ledger is None:
        return [({"given": peer.notes[kind]}, own)]
    find = partial(
        calibrate, partial(peer.ledger, at), delta=at.delta, calibration=STRICT
    )
    ours = [find(epsilon=epsilon).noise_multiplier for epsilon in epsilons]
    public = peer.ledger(at, 1.0).assuming(*at.given).given
    return [
        ({"given": "; ".join((peer.notes[kind], *public))}, own),
        (
            {
                "given": "; ".join(public),
                "algorithm": f"{peer.labels[kind]}, our noise",
            },
            ours,
        ),
    ]


def _ran(peer: Peer, python: Path, asked: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Arrays that the peer's script wrote, and the reason if it failed, else empty."""
    with tempfile.TemporaryDirectory() as folder:
        read, written = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(read, **asked)
        script = Path(__file__).parent / "peer_scripts" / peer.script
        reason = _failed([str(python), "-I", str(script), str(read), str(written)])
        if reason:
            return {}, reason
        with np.load(written) as made:
            return {key: made[key] for key in made.files}, ""


def _true(peer: Peer, at: Scaled, found: Mapping[str, Any], i: int) -> float:
    """True epsilon of the noise that the script reports, if a record is replaced."""
    if peer.ledger is None:
        return np.nan
    ledger = peer.ledger(at, float(found["noise"][i]))
    return true_epsilon(ledger, at.delta)


def _measured(
    problem: Problem, at: Scaled, optimum: float, U: np.ndarray
) -> dict[str, Any]:
    """Relative error of weights in units of the scales (L, p), with its interval."""
    errors = (problem.objective(U / at.S) - optimum) / optimum
    mean, low, high = results.interval(errors)
    return {
        "mean": mean,
        "ci_low": low,
        "ci_high": high,
        "runs": len(errors),
        "median": float(np.median(errors)),
    }
