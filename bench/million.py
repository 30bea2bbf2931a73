"""One private fit of many records, beside other libraries: CPU time, memory, error.

``python -m bench.million /path/to/python`` runs it, where that Python has diffprivlib
(0.6.4 with scikit-learn 1.3: later ones fit mean losses under noise for sums). Every
fit is a process of its own on one thread, which has the data and has fitted 1000 of
them before the clock starts. Writes ``results/million.md``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from tabulate import tabulate

from dperm.storage import files as store
from dperm.workflow.manifest import machine

HEAD = (
    "data",
    "method",
    "CPU s",
    "peak memory / data",
    "relative error",
    "accuracy",
)
DENSE, SPARSE = "1e6 x 100", "1e5 x 5000, 1 % not zero"
UNFIT = ("diffprivlib", "dp_gram")  # for sparse data, or so many columns
OURS = "dperm.fit(X, y, {}, classes=(0, 1), bounds=(-5 * SCALE, 5 * SCALE))"
DIFFPRIVLIB = "from diffprivlib.models import LogisticRegression"
THEIRS = (
    "LogisticRegression(epsilon=1, data_norm=float(np.sqrt(X.shape[1])), "
    "random_state=0).fit(X, y)"
)
METHODS = {
    "scikit-learn, not private": "linear_model.LogisticRegression().fit(X, y)",
    "diffprivlib": THEIRS,
    "dperm, its choice": OURS.format("'auto'"),
    **{
        f"dperm, {name}": OURS.format(repr(name))
        for name in ("dp_gram", "dp_gd", "dp_cd")
    },
}
# Prints CPU seconds, peak memory with the data, what was chosen, and the weights.
CHILD = """
import json, sys, time, warnings
from pathlib import Path
IMPORT
import numpy as np
from scipy import sparse
warnings.simplefilter("ignore")
folder, SCALE = Path(sys.argv[1]), float(sys.argv[2])
is_sparse = (folder / "X.npz").exists()
X = sparse.load_npz(folder / "X.npz") if is_sparse else np.load(folder / "X.npy")
y = np.load(folder / "y.npy")
size = X.data.nbytes + (X.indices.nbytes + X.indptr.nbytes if is_sparse else 0)
def fit(X, y):
    return FIT
few = fit(X[:1000], y[:1000])  # imports, compiled code
Path("/proc/self/clear_refs").write_text("5")  # the peak from now on
def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))
before, start = memory("VmRSS") - size, time.process_time()
model = fit(X, y)
spent = time.process_time() - start
print(json.dumps([spent, (memory("VmHWM") - before) / size,
                  getattr(model, "solver_", ""), np.ravel(model.coef_).tolist(),
                  float(np.ravel(model.intercept_)[0])]))
"""


def table(other: str) -> list[list[Any]]:
    """A row for every method on both sizes."""
    rows = []
    for name, make, scale in ((DENSE, _dense, 1.0), (SPARSE, _sparse, 0.1)):
        with tempfile.TemporaryDirectory() as folder:
            X, y = make(Path(folder))
            best = LogisticRegression(tol=1e-8, max_iter=1000).fit(X, y)
            least = objective(X, y, best.coef_[0], best.intercept_[0])
            zero = objective(X, y, np.zeros(X.shape[1]), 0.0) / least - 1
            rows.append(
                [name, "w = 0", 0.0, 0.0, zero, max(y.mean(), 1 - y.mean())]
            )
            for method, call in METHODS.items():
                if name == SPARSE and any(word in method for word in UNFIT):
                    continue
                found = _run(folder, method, call, scale, other)
                spent, memory, chosen, w, b = found
                error = objective(X, y, np.array(w), b) / least - 1
                right = float(np.mean((X @ np.array(w) + b > 0) == (y > 0)))
                told = f"{method} ({chosen})" if "choice" in method else method
                rows.append([name, told, spent, memory, error, right])
                print(rows[-1], flush=True)
    return rows


def objective(X: Any, y: np.ndarray, w: np.ndarray, b: float) -> float:
    """Mean logistic loss and ||w||^2 / (2 n), which all of them minimise."""
    margins = (2 * y - 1) * (X @ w + b)
    return float(np.logaddexp(0, -margins).mean() + w @ w / (2 * len(y)))


def _run(folder: str, method: str, call: str, scale: float, other: str) -> Any:
    theirs = method == "diffprivlib"
    ours = (
        "from sklearn import linear_model"
        if "scikit" in method
        else "import dperm"
    )
    code = CHILD.replace("IMPORT", DIFFPRIVLIB if theirs else ours)
    code = code.replace("FIT", call)
    command = [
        other if theirs else sys.executable,
        "-c",
        code,
        folder,
        str(scale),
    ]
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **one}
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def _labels(rng: np.random.Generator, scores: np.ndarray) -> np.ndarray:
    return (rng.random(len(scores)) < 1 / (1 + np.exp(-scores))).astype(float)


def _dense(folder: Path) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10**6, 100))
    y = _labels(rng, X @ rng.standard_normal(100) / 5)
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    return X, y


def _sparse(folder: Path) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(0)
    X = sparse.random_array(
        (10**5, 5000), density=0.01, format="csr", rng=rng,
        data_sampler=rng.standard_normal,
    )  # fmt: skip
    y = _labels(rng, X @ rng.standard_normal(5000) / 2)
    sparse.save_npz(folder / "X.npz", X)
    np.save(folder / "y.npy", y)
    return X, y


if __name__ == "__main__":
    rows = tabulate(table(sys.argv[1]), HEAD, "pipe", floatfmt=".3g")
    text = f"Machine: {machine()}; {store.versions()}. epsilon 1, one run.\n\n{rows}\n"
    print(text)
    store.write_text(Path("results/million.md"), text)
