"""The pipeline at sizes of its own: seconds, memory and files of every stage.

``python -m bench.sizes`` runs it alone; it takes minutes and a few GB of disk. Every
stage is the command that a user types, in a process whose memory the system counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from tabulate import tabulate

HEAD = ("what", "command", "seconds", "CPU s", "peak MB", "files", "MB on disk")
STAGES = ("fetch", "prepare", "optimum", "solve")
Row = list[Any]


def table() -> list[Row]:
    """A row for every stage of every size."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        return [
            *_many_points(top / "points"),
            *_many_pairs(top / "pairs"),
            *_many_records(top / "records"),
            *_many_features(top / "features"),
        ]


def _many_points(home: Path) -> list[Row]:
    """A grid of a million points, composed and run: two passes, 10 features."""
    every = {"logspace": [1e-4, 1.0, 1000]}
    clips = {"logspace": [0.1, 1e4, 1000]}
    grid = {"passes": [2], "step": every, "clip": clips}
    _paper(home, ["diabetes"], {"dp_cd": {"grid": grid}}, replicates=1)
    _problem(home, "diabetes", "diabetes", "least_squares")
    return _stages("1e6 points of a grid", home, "diabetes", "dp_cd", composed=True)


def _many_pairs(home: Path) -> list[Row]:
    """A dry run of 100 problems and five solvers."""
    names = [f"problem{k}" for k in range(100)]
    grid = {"grid": {"passes": [2], "step": [0.1, 1.0], "clip": [1.0]}}
    solvers = ("dp_cd", "dp_sgd", "dp_gcd", "dp_svrg", "dp_skgd_full")
    _paper(home, names, dict.fromkeys(solvers, grid), replicates=5)
    for name in names:
        _problem(home, name, "diabetes", "least_squares")
    what = "500 pairs of problem and solver"
    first = _measured(what, home, ["-n", "many", "-q"], "dperm -n many")
    return [first, _measured(what, home, ["-n", "many", "-q"], "again")]


def _many_records(home: Path) -> list[Row]:
    """A million records of 100 features, dense."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10**6, 100))
    y = np.sign(X[:, :3].sum(axis=1) + rng.standard_normal(len(X)))
    home.mkdir()
    np.savez(home / "large.npz", X=X, y=y)
    del X
    grid = {"passes": [1], "step": [0.1, 1.0], "clip": [1.0, 10.0]}
    _own(home, "large.npz", {"format": "arrays"}, {"dp_cd": {"grid": grid}})
    return _stages("1e6 records of 100 features", home, "own", "dp_cd")


def _many_features(home: Path) -> list[Row]:
    """A million features of 1000 records, 1000 of them in each, sparse."""
    rng = np.random.default_rng(0)
    home.mkdir()
    with open(home / "wide.svm", "w") as file:
        for _ in range(1000):
            found = np.unique(rng.integers(1, 10**6 + 1, 1000))
            values = rng.standard_normal(len(found))
            pairs = zip(found.tolist(), values.tolist(), strict=True)
            said = " ".join(f"{j}:{value:.4f}" for j, value in pairs)
            file.write(f"{1 if rng.random() < 0.5 else -1} {said}\n")
    reader = {"format": "libsvm", "options": {"n_features": 10**6}}
    grid = {"passes": [1, 10], "step": [0.1, 1.0], "clip": [1.0, 10.0]}
    _own(home, "wide.svm", reader, {"dp_gcd_gumbel": {"grid": grid}})
    return _stages("1e6 features, sparse", home, "own", "dp_gcd_gumbel")


def _stages(
    what: str, home: Path, problem: str, solver: str, composed: bool = False
) -> list[Row]:
    """The stages of one pair, one after the other; first a dry run, if asked for."""
    keys = ["paper=many", f"problem={problem}"]
    own = {"solve": [f"solver={solver}"]}
    rows = [_measured(what, home, [stage, *keys, *own.get(stage, [])])
            for stage in STAGES]  # fmt: skip
    dry = ["-n", "many", "-q"]
    return [_measured(what, home, dry, "dperm -n many"), *rows] if composed else rows


def _measured(what: str, home: Path, command: Sequence[str], name: str = "") -> Row:
    """A command in a folder: its time and memory, and what lies there afterwards."""
    start = time.perf_counter()
    words = [sys.executable, "-P", "-m", "dperm", *command]
    with open(home / "said.txt", "w") as said:
        child = subprocess.Popen(words, cwd=home, stdout=said, stderr=said)
        _, status, used = os.wait4(child.pid, 0)
    spent = time.perf_counter() - start
    if status:
        raise RuntimeError((home / "said.txt").read_text()[-2000:])
    found = [path for path in home.rglob("*") if path.is_file()]
    return [what, name or f"dperm {command[0]}", spent, used.ru_utime + used.ru_stime,
            used.ru_maxrss / 1024, len(found),
            sum(path.stat().st_size for path in found) / 1e6]  # fmt: skip


def _own(home: Path, file: str, reader: dict[str, Any], runs: dict[str, Any]) -> None:
    """A paper of one problem, whose data are a file."""
    _paper(home, ["own"], runs, replicates=1)
    data = {"name": "own", "title": "own", "reader": reader,
            "sources": [{"kind": "file", "files": [file]}]}  # fmt: skip
    _write(home / "conf/dataset/own.yaml", data)
    _problem(home, "own", "own", "logistic")


def _paper(
    home: Path, problems: list[str], runs: dict[str, Any], replicates: int
) -> None:
    content = {"name": "many", "problems": problems, "offline": problems,
               "calibrations": ["strict"], "replicates": replicates, "fresh": 2,
               "runs": runs}  # fmt: skip
    _write(home / "conf/paper/many/paper.yaml", content)


def _problem(home: Path, name: str, dataset: str, loss: str) -> None:
    content = {"defaults": [{"/dataset@dataset": dataset}], "name": name,
               "title": name, "loss": loss, "penalty": {"l2": 0.001}}  # fmt: skip
    _write(home / f"conf/problem/{name}.yaml", content)


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))


if __name__ == "__main__":
    print(tabulate(table(), HEAD, "pipe", floatfmt=".3g"))
