"""diffprivlib on the data sets of a race, in an environment of its own.

It is told the same ranges, and is measured by the same excess. Its epsilon is the
library's own claim: pure, and for regressions one that our audit refutes.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dperm.compare.race import Case, Row, ends, unique

NAME = "diffprivlib"
REQUIRES = ("diffprivlib==0.6.6", "scikit-learn==1.7.2")
SCRIPT = Path(__file__).parent / "peer_scripts" / "diffprivlib_models.py"
NOTE = "the library's own claim"
LIMIT = 900.0  # seconds allowed for making an environment, or for a data set


def environment(data: Path) -> tuple[str, str]:
    """A Python that has the library, made below ``data/peers``, or why there is none.

    One of the two is empty. This process's own Python is taken if it has it.
    """
    if importlib.util.find_spec(NAME):
        return sys.executable, ""
    folder = data.absolute() / "peers" / REQUIRES[0].replace("==", "-")
    python = folder / "bin" / "python"
    done = folder / "installed"
    if done.is_file():
        return str(python), ""
    for step in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", *REQUIRES],
    ):
        if reason := failed(step):
            return "", f"its environment cannot be made: {reason}"
    done.touch()
    return str(python), ""


def failed(command: Sequence[str]) -> str:
    """Reason why a command failed; empty if it did not."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    try:
        settings: dict[str, Any] = {
            "timeout": LIMIT,
            "capture_output": True,
            "text": True,
        }
        ended = subprocess.run(command, env=clean, check=False, **settings)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = ended.stderr.strip().splitlines() or ["no message"]
    return lines[-1] if ended.returncode else ""


def rows(
    case: Case, python: str, epsilons: Sequence[float], seeds: Sequence[int]
) -> list[Row]:
    """A row for each epsilon and seed, or one with the reason for none."""
    common = {**case.known(NAME), "tuning": "default"}
    epsilons = unique(epsilons)
    seeds = unique(seeds)
    low, high = ends(case.X)
    asked: dict[str, Any] = {"X": case.X, "X_held": case.X_held, "y": case.y}
    asked |= {"label": np.ravel(ends(case.y)), "signed": case.signed}
    asked |= {"low": low, "high": high, "epsilons": [*epsilons], "seeds": [*seeds]}
    with tempfile.TemporaryDirectory() as folder:
        read = Path(folder, "in.npz")
        written = Path(folder, "out.npz")
        np.savez(read, **asked)
        if reason := failed([python, "-I", str(SCRIPT), str(read), str(written)]):
            return [{**common, "status": "gap", "reason": reason}]
        with np.load(written) as file:
            outputs = {key: file[key] for key in file.files}
    table = []
    for i, epsilon in enumerate(epsilons):
        for k, seed in enumerate(seeds):
            row = {**common, "epsilon": epsilon, "run_seed": seed}
            row |= case.measured(outputs["scores"][i, k], outputs["held"][i, k])
            row |= {"seconds": outputs["seconds"][i, k], "given": NOTE}
            table.append(row)
    return table
