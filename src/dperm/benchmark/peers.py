"""Other libraries on the data sets of a race, each in an environment of its own.

They are told the same ranges, and measured by the same excess. Their epsilon is the
library's own claim: diffprivlib's is pure, and for regressions one that our audit
refutes. The additive models of interpret (DP-EBM, Nori et al. 2021, arXiv:2106.09680)
are no linear functions, so that their excess may be below 0.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dperm.benchmark.race import SLOW, Case, Row, ends, unique
from dperm.numerics.kernels import cache_folder
from dperm.storage import files as store

log = logging.getLogger(__name__)

SCRIPT = Path(__file__).parent / "peer_files" / "fits.py"
LIMIT = 900.0  # seconds allowed for making an environment, or for a data set
# Several processes run at a time, and more threads of each would wait for each other.
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Library:
    """Another library, and how it is run."""

    name: str  #: of its package, and of its rows
    requires: tuple[str, ...]
    script: Path  #: fits its models to arrays; see ``peer_files``
    note: str  #: what its epsilon is
    #: whether its scores are affine functions of the columns
    is_affine: bool = True
    is_slow: bool = False  #: whether large data have one fit for each epsilon


DIFFPRIVLIB = Library(
    "diffprivlib",
    ("diffprivlib==0.6.6", "scikit-learn==1.7.2"),
    SCRIPT,
    "the library's own claim, at delta 0",
)
INTERPRET = Library(
    "interpret",
    ("interpret-core==0.7.8", "scikit-learn==1.7.2"),
    SCRIPT,
    "the library's own claim",
    is_affine=False,
    is_slow=True,
)
LIBRARIES = {library.name: library for library in (DIFFPRIVLIB, INTERPRET)}
PEER_LABELS = {"interpret": "DP-EBM of interpret"}


def environments() -> dict[str, tuple[str, str]]:
    """``environment`` of every library, by its name; they are made side by side."""
    with ThreadPoolExecutor(len(LIBRARIES)) as pool:
        outcomes = pool.map(environment, LIBRARIES.values())
        return dict(zip(LIBRARIES, outcomes, strict=True))


def environment(library: Library) -> tuple[str, str]:
    """A Python that has the library, or why there is none; one of the two is empty.

    This process's own Python is taken if it has it. Otherwise there is an environment
    in the user's folder of caches, which all runs share: it is made at the first use,
    and anew if it is broken.
    """
    if importlib.util.find_spec(library.name):
        return sys.executable, ""
    try:
        return str(_python(library)), ""
    except (OSError, RuntimeError) as error:
        return "", f"its environment cannot be made: {error}"


def environment_folder(library: Library) -> Path:
    """Where a library's environment lies; another Python or platform has another."""
    platform = (sys.version.split()[0], sysconfig.get_platform())
    key = store.digest([library.requires, *platform])
    return cache_folder() / "dperm" / "peers" / f"{library.name}-{key}"


@functools.cache
def _python(library: Library) -> Path:
    """The Python of a library's environment, which is made if it does not work.

    Raises RuntimeError with the reason if it cannot be made, which is not remembered.
    """
    folder = environment_folder(library)
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "environment" / "bin" / "python"
    unfinished = folder / "unfinished"
    imports = ["-I", "-c", f"import {library.name}"]
    with store.locked(folder):
        if python.is_file() and not failed([str(python), *imports]):
            return python
        shutil.rmtree(unfinished, ignore_errors=True)
        log.info("%s: an environment is made in %s", library.name, folder)
        new = str(unfinished / "bin" / "python")
        install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-compile",
            *library.requires,
        ]
        for step in (
            [sys.executable, "-m", "venv", str(unfinished)],
            [new, *install],
            [new, *imports],
        ):
            if reason := failed(step):
                raise RuntimeError(reason)
        shutil.rmtree(python.parents[1], ignore_errors=True)
        unfinished.rename(python.parents[1])
    return python


def failed(command: Sequence[str]) -> str:
    """Reason why a command failed; empty if it did not."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    try:
        settings: dict[str, Any] = {
            "timeout": LIMIT,
            "capture_output": True,
            "text": True,
        }
        ended = subprocess.run(
            command, env={**clean, **THREADS}, check=False, **settings
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = ended.stderr.strip().splitlines() or ["no message"]
    return lines[-1] if ended.returncode else ""


def rows(
    case: Case,
    python: str,
    epsilons: Sequence[float],
    seeds: Sequence[int],
    library: Library = DIFFPRIVLIB,
) -> list[Row]:
    """A row for each epsilon and seed, or one with the reason for none."""
    common = {**case.known(library.name), "tuning": "default"}
    epsilons = unique(epsilons)
    seeds = unique(seeds)
    if library.is_slow and case.X.size >= SLOW:
        seeds = seeds[:1]
    low, high = ends(case.X)
    n = len(case.y)
    asked: dict[str, Any] = {"X": case.X, "X_held": case.X_held, "y": case.y}
    asked |= {"label": np.ravel(ends(case.y)), "signed": case.signed}
    asked |= {
        "low": low,
        "high": high,
        "epsilons": [*epsilons],
        "seeds": [*seeds],
    }
    asked["library"] = library.name
    asked["delta"] = case.declared.get("delta") or 1 / n**2
    with tempfile.TemporaryDirectory() as folder:
        read = Path(folder, "in.npz")
        written = Path(folder, "out.npz")
        np.savez(read, **asked)
        script = [python, "-I", str(library.script), str(read), str(written)]
        if reason := failed(script):
            return [{**common, "status": "gap", "reason": reason}]
        with np.load(written) as file:
            outputs = {key: file[key] for key in file.files}
    table = []
    for i, epsilon in enumerate(epsilons):
        for k, seed in enumerate(seeds):
            row = {**common, "epsilon": epsilon, "run_seed": seed}
            scores = (outputs["scores"][i, k], outputs["held_out"][i, k])
            row |= case.measured(*scores, library.is_affine)
            row |= {"seconds": outputs["seconds"][i, k], "given": library.note}
            table.append(row)
    return table
