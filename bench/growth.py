"""How time and memory grow over two decades of everything a run is made of.

``python -m bench.growth`` runs it alone. The exponent is that of the last decade, 1 for
linear growth: in the first, a call costs most, whatever it does.
"""

from __future__ import annotations

import math
import os
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from tabulate import tabulate

from bench.shared import in_turns
from dperm.privacy.noise import streams
from dperm.problems.penalties import Penalty
from dperm.problems.problem import build
from dperm.solvers.batched import BatchedSettings, dp_cd, dp_gcd, dp_sgd
from dperm.workflow import jobs

DECADES = (1, 10, 100)
BASE = {"n": 400, "p": 8, "settings": 10}
KERNELS = {  # with how many steps are one pass over n records of p features
    "dp_cd": (dp_cd, lambda n, p: p),
    "dp_sgd": (dp_sgd, lambda n, p: n),
    "dp_gcd": (dp_gcd, lambda n, p: 1),
}
HEAD = (
    "what",
    "grows",
    "1",
    "10",
    "100",
    "exponent",
    "MB at 1",
    "at 10",
    "at 100",
)


def table() -> list[list]:
    """A row for each kernel and size, for replicates and for problems."""
    rows = [
        [name, size, *_measured([_run(name, size, k) for k in DECADES])]
        for name in KERNELS
        for size in BASE
    ]
    rows.append(["a tuning", "replicates", *_measured(
        [_replicated(k) for k in DECADES])])  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        calls = [_composing(Path(folder), k) for k in DECADES]
        rows.append(["a start", "problems", *_measured(calls)])
    return rows


def _measured(calls: list[Callable[[], Any]]) -> list[float]:
    """Seconds at each size, the last decade's exponent, and peak memory in MB."""
    spent = in_turns(*calls)
    slope = math.log10(spent[-1] / spent[-2])
    return [*spent, slope, *(_peak(call) for call in calls)]


def _peak(call: Callable[[], Any]) -> float:
    """What Python and numpy had allocated at once during a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def _problem(n: int, p: int) -> Any:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    y = np.sign(X[:, 0] + rng.standard_normal(n))
    return build("growth", X, y, "logistic", Penalty(l1=0.01, l2=0.001))


def _settings(count: int) -> BatchedSettings:
    steps, clips = (
        np.geomspace(1e-5, 1e-3, count),
        np.geomspace(0.1, 10, count),
    )
    return BatchedSettings(steps, clips, 1.0, "tight")


def _run(name: str, size: str, factor: int) -> Callable[[], Any]:
    """One pass with one of the sizes so many times as large."""
    sizes = {**BASE, size: BASE[size] * factor}
    module, steps = KERNELS[name]
    made, settings = (
        _problem(sizes["n"], sizes["p"]),
        _settings(sizes["settings"]),
    )
    count = steps(sizes["n"], sizes["p"])

    def call() -> Any:
        run = module.Run(
            made, settings, streams(1), module.Options(), total=count
        )
        run.advance(count)
        return run.weights

    return call


def _replicated(count: int) -> Callable[[], Any]:
    """So many seeds of one block of settings."""
    made, settings = _problem(BASE["n"], BASE["p"]), _settings(100)

    def call() -> None:
        for seed in range(count):
            run = dp_cd.Run(made, settings, streams(seed), dp_cd.Options())
            run.advance(BASE["p"])

    return call


def _composing(folder: Path, count: int) -> Callable[[], Any]:
    """Composing the run table of a paper of so many problems, as a start does."""
    home = folder / str(count)
    names = [f"problem{k}" for k in range(count)]
    paper = {
        "name": "many", "problems": names, "small_problems": names,
        "calibrations": ["tight"],
        "runs": {"dp_cd": {"grid": {"passes": [2], "step": [0.1, 1.0], "clip": [1.0]}}},
    }  # fmt: skip
    _write(home / "conf/paper/many/paper.yaml", paper)
    for name in names:
        _write(home / f"conf/problem/{name}.yaml", {
            "defaults": [{"/dataset@dataset": "diabetes"}], "name": name, "title": name,
            "loss": "least_squares", "penalty": {"l1": 1.0},
        })  # fmt: skip

    def call() -> Any:
        before = Path.cwd()
        os.chdir(home)
        try:
            return jobs.compose(["many"], ["scale=smoke"])
        finally:
            os.chdir(before)

    return call


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))


if __name__ == "__main__":
    print(tabulate(table(), HEAD, "pipe", floatfmt=".3g"))
