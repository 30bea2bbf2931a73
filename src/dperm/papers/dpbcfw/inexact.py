"""Assumption 2, Remark 2 and Theorem 2: the errors of a private run, measured.

Assumption 2 allows the partial gradient an error of rho_g gamma_t C / 2 in the largest
entry, and the oracle rho_l gamma_t C / 2 in its inner product, with constants rho_g
and rho_l. Since gamma_t falls like 1/t, so must the errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dperm.core.erm.columns import edges
from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpbcfw import theory
from dperm.papers.dpbcfw.instances import Instance
from dperm.papers.dpbcfw.reading import Reading, noise_under
from dperm.papers.dpbcfw.runs import Setting, options_of
from dperm.present.intervals import power, student
from dperm.solvers.distributed.node import Node
from dperm.solvers.distributed.parts import in_memory
from dperm.solvers.frank_wolfe import dp_bcfw
from dperm.solvers.frank_wolfe.bcfw import step_size

RELEASES = ("gradient", "oracle")
RUN = ["objective", "per", "epsilon", "length"]  # what runs differ in
Rows = list[dict[str, Any]]


def errors(at: Instance, setting: Setting, reading: Reading, seed: int) -> Rows:
    """Both errors at every iteration of a run, and what rho = 1 allows them.

    C is the curvature over the ball of radius K eta, which is what the iterates reach;
    ``gap`` is f at the end less the least f over it.
    """
    options, noise = options_of(at, setting), noise_under(at, setting, reading)
    made = dp_bcfw.Run(at.problem, streams(seed), options, noise)
    public = dp_bcfw.public_of(at.problem, options, noise)
    node = Node(in_memory(at.problem, 1)[0], public, 0)  # all features
    starts = edges(at.problem.p, setting.nodes)
    C = curvature(at, options.reach)
    rows: Rows = []
    for t in range(setting.iterations):
        estimate = node.gradient(node.slopes(made.q))
        exact = _gradient(at, made.x)
        made.advance(1)
        allowed = step_size(t, 1.0) * C / 2
        worse = _oracle(estimate, made.chosen[-1], starts)
        found = (float(np.abs(estimate - exact).max()), options.radius * worse)
        rows += [
            {"release": name, "iteration": t + 1, "error": error, "allowed": allowed}
            for name, error in zip(RELEASES, found, strict=True)
        ]
    value, _ = at.minimum(setting.nodes * setting.share)
    end = at.problem.mean_loss(at.problem.A @ made.x + at.problem.offset) - value
    known = {"curvature": C, "gap": end, "start": at.start - value}
    known |= {"width": 2 * options.reach, "nodes": setting.nodes}
    return [{**row, **known} for row in rows]


def curvature(at: Instance, radius: float) -> float:
    """Max ||A (s - x)||^2 / n over the l1 ball, which vertices attain."""
    return (2 * radius) ** 2 * float(at.columns.square_norms.max()) / at.problem.n


def _gradient(at: Instance, x: np.ndarray) -> np.ndarray:
    problem = at.problem
    slopes = problem.derivatives(problem.A @ x + problem.offset)
    return at.columns.products(slopes) / problem.n


def _oracle(estimate: np.ndarray, signed: np.ndarray, starts: np.ndarray) -> float:
    """The most, over the nodes, that a chosen vertex is worse than the best of ±e_j."""
    chosen = np.sign(signed) * estimate[np.abs(signed) - 1]
    best = np.maximum.reduceat(np.abs(estimate), starts[:-1])
    return float((best - chosen).max())


def summary(swept: pd.DataFrame) -> pd.DataFrame:
    """Errors and what rho = 1 allows them, at the end; Theorem 2's bound.

    ``exponent`` is that of the error in t over the second half of the run, and
    ``step_exponent`` that of gamma_t, which Assumption 2 with constant rho asks for;
    none is fitted to an error of 0. ``rho`` is the largest of the run.
    """
    keys = [*RUN, "release"]
    rows = []
    for values, part in swept.groupby(keys, sort=False):
        part = part.assign(rho=part["error"] / part["allowed"])
        last = part[part["iteration"] == part["iteration"].max()]
        runs = [run for _, run in part.groupby("replicate")]
        found = np.array([_exponent(run, "error") for run in runs])
        low, high = student(found)
        rows.append(
            {**dict(zip(keys, values, strict=True)),
             **_mean("error", last["error"]),
             "allowed": float(last["allowed"].mean()),
             "rho": float(np.mean([run["rho"].max() for run in runs])),
             "exponent": float(found.mean()), "exponent_low": low,
             "exponent_high": high, "step_exponent": _exponent(runs[0], "allowed"),
             "gap": float(last["gap"].mean()), "start": float(last["start"].mean()),
             "curvature": float(last["curvature"].mean()),
             "width": float(last["width"].mean()), "nodes": int(last["nodes"].iloc[0]),
             "steps": int(last["iteration"].max())}
        )  # fmt: skip
    return _bounded(pd.DataFrame(rows))


def _mean(name: str, values: pd.Series) -> dict[str, float]:
    low, high = student(values.to_numpy())
    return {name: float(values.mean()), f"{name}_low": low, f"{name}_high": high}


def _exponent(run: pd.DataFrame, column: str) -> float:
    """Of a column in t; NaN where it is not positive."""
    kept = run[run["iteration"] > run["iteration"].max() / 2]
    if not (kept[column] > 0).all():
        return float("nan")
    return power(kept["iteration"].to_numpy(), kept[column].to_numpy())[0]


def _bounded(table: pd.DataFrame) -> pd.DataFrame:
    """With Theorem 2's bound for p_min = 1, each node's part counted as one block."""
    parts = []
    for _, part in table.groupby(RUN, sort=False):
        rho_g, rho_l = (part.set_index("release").loc[each, "rho"] for each in RELEASES)
        first = part.iloc[0]
        rho = (first["width"] + first["nodes"]) * rho_g + first["nodes"] * rho_l
        spread = (1 + rho) * first["curvature"]
        found = theory.bound(int(first["steps"]), 1.0, first["start"], spread)
        parts.append(part.assign(bound=found))
    return pd.concat(parts, ignore_index=True)
