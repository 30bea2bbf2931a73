"""Fits on real data at four epsilons: ours, diffprivlib's, without privacy, none.

``python -m bench.fits /path/to/python`` runs it, where that Python has diffprivlib
(0.6.6 with scikit-learn 1.6) and pandas; data are those of the folder DPERM_MIRROR.
Every private method is told the same ranges, the least and largest value of each column
in the whole data set. That tells it more than a user may know, in equal measure. A
fifth of the records is held out, another for each seed. Writes
``results/arena/fits.csv``: accuracy for classes, else the root mean squared error;
``python -m bench.fits`` alone prints a summary of it, and of the rule by which a fit
of numbers takes a method: its mean regret in the arena's cells, by threshold of n
epsilon / p, and that of the threshold which the other data sets choose.

``python -m bench.fits times /path/to/python`` measures CPU time and memory instead,
cold and warm, of fits of several sizes by dperm, scikit-learn and diffprivlib, each in
a process of its own, one after another. Writes ``results/fits.csv``: ``cold`` are CPU
seconds from the start of Python until its first fit is done, on 1,000 x 10; ``warm``
those of a fit when such a small one has been made; ``memory`` is the peak of that fit
above what the process held before, the data included, over the size of the data.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dperm
from dperm.estimators import methods
from dperm.storage import files as store

EPSILONS, SEEDS = (0.3, 1.0, 3.0, 10.0), range(5)
WRITTEN = Path("results/arena/fits.csv")
CLASSES = {  # the file, and how it is read
    "a9a": "libsvm/a9a",
    "phishing": "libsvm/phishing",
    "mushrooms": "libsvm/mushrooms",
    "german": "libsvm/german_scale",
    "splice": "libsvm/splice",
    "magic04": "uci/magic04.data",
    "electricity": "electricity/elecNormNew.arff",
}
NUMBERS = {
    "airfoil": "uci/airfoil_self_noise.dat",
    "california": "california_housing/cal_housing.data",
    "concrete": "uci/concrete.txt",
    "energy": "uci/energy.txt",
    "red_wine": "uci/winequality-red.csv",
}
# Fits of diffprivlib: arguments are a file of arrays and the file to be written.
THEIRS = """
import sys, time, warnings
import numpy as np, pandas as pd
from diffprivlib.models import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
warnings.simplefilter("ignore")
given = np.load(sys.argv[1])
X, y, low, high = (given[key] for key in ("X", "y", "low", "high"))
norm, rows = float(np.sqrt(X.shape[1])), []
for epsilon in given["epsilons"]:
    for seed in given["seeds"]:
        A, B, a, b = train_test_split(X, y, test_size=0.2, random_state=int(seed))
        known = {"epsilon": float(epsilon), "random_state": int(seed)}
        start = time.process_time()
        if given["signed"]:
            unit = lambda X: 2 * (X - low) / (high - low) - 1
            model = LogisticRegression(data_norm=norm, max_iter=1000, **known)
            value = np.mean(model.fit(unit(A), a).predict(unit(B)) == b)
        else:
            ends = {"bounds_X": (low, high), "bounds_y": (y.min(), y.max())}
            model = LinearRegression(**ends, **known).fit(A, a)
            value = np.sqrt(np.mean((model.predict(B) - b) ** 2))
        rows.append(("diffprivlib", epsilon, seed, value, time.process_time() - start))
pd.DataFrame(rows).to_csv(sys.argv[2], index=False)
"""


SIZES = {  # records, features, and entries of sparse data; 0 for dense data
    "small": (1000, 10, 0),
    "tall": (100_000, 50, 0),
    "million": (1_000_000, 100, 0),
    "sparse": (20_000, 50_000, 1_000_000),
    "wide": (3000, 100_000, 300_000),
}
LIBRARIES = ("dperm", "scikit-learn", "diffprivlib")
PATIENCE = 300  # seconds of the clock for a cell
TIMES = Path("results/fits.csv")
ARENA = Path("results/arena/arena.csv")
THRESHOLDS = (0.0, 100.0, 300.0, 1000.0, np.inf)  # 0: always noisy moments
CUT = 2.0  # of an excess, so that no cell decides alone
# One cell: arguments are the library, n, p, entries, and whether labels are real.
CELL = """
import sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
library, is_real = sys.argv[1], sys.argv[5] == "True"
n, p, entries = map(int, sys.argv[2:5])

def drawn(n, p, entries):
    rng = np.random.default_rng(0)
    if entries:
        from scipy.sparse import csr_matrix
        places = rng.integers(0, n, entries), rng.integers(0, p, entries)
        X = csr_matrix((rng.uniform(-1, 1, entries), places), shape=(n, p))
        first = np.asarray(X[:, : p // 10].sum(axis=1)).ravel()
    else:
        X = rng.random((n, p))
        X *= 2
        X -= 1
        first = X[:, 0]
    y = np.clip(first + rng.uniform(-0.1, 0.1, n), -1.2, 1.2)
    return X, (y if is_real else (y > 0).astype(int))

def fit(X, y):
    if library == "dperm":
        import dperm
        labels = {"label_bounds": (-1.2, 1.2)} if is_real else {"classes": (0, 1)}
        dperm.fit(X, y, epsilon=1.0, bounds=(-1, 1), random_state=0, **labels)
    elif library == "scikit-learn":
        from sklearn.linear_model import LogisticRegression, Ridge
        (Ridge() if is_real else LogisticRegression()).fit(X, y)
    elif is_real:
        from diffprivlib.models import LinearRegression
        LinearRegression(bounds_X=(-1, 1), bounds_y=(-1.2, 1.2)).fit(X, y)
    else:
        from diffprivlib.models import LogisticRegression
        LogisticRegression(data_norm=float(np.sqrt(X.shape[1]))).fit(X, y)

def held(key):
    with open("/proc/self/status") as lines:
        line = next(line for line in lines if line.startswith(key))
    return 1024 * int(line.split()[1])

fit(*drawn(1000, 10, 0))
cold = time.process_time()
X, y = drawn(n, p, entries)
parts = (X.data, X.indices, X.indptr) if entries else (X,)
size = sum(part.nbytes for part in parts)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before, start = held("VmRSS"), time.process_time()
fit(X, y)
warm = time.process_time() - start
print(cold, warm, (held("VmHWM") - before + size) / size, size)
"""


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """X (n, p) and y (n,) of a data set; classes as 0 and 1."""
    file = Path(os.environ["DPERM_MIRROR"], {**CLASSES, **NUMBERS}[name])
    if file.parent.name == "libsvm":
        X, y = load_svmlight_file(str(file))
        return X.toarray(), (y == y.max()).astype(int)
    lines = file.read_text(encoding="utf-8").splitlines()
    skipped = sum(not line or line[0] in "@%" for line in lines)
    how: dict[str, Any] = {
        "skiprows": skipped if file.suffix == ".arff" else 0
    }
    how["sep"] = "," if "," in lines[-1] else r"\s+"
    how["header"] = 0 if file.suffix == ".csv" else None
    table = pd.read_csv(file, **how).dropna()
    if name == "energy":
        table = table.iloc[:, :9]  # the first of two targets
    y = table.iloc[:, -1]
    if name in CLASSES:
        y = (y == y.max()).astype(int)
    return table.iloc[:, :-1].to_numpy(float), y.to_numpy()


def ranges(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends of columns X (n, p), each (p,)."""
    low, high = X.min(axis=0), X.max(axis=0)
    return low, np.where(high > low, high, low + 1)


def ours(X: np.ndarray, y: np.ndarray, signed: bool) -> Iterator[tuple]:
    """Method, epsilon, seed, metric and CPU seconds of every fit here."""
    labels = {"label_bounds": (float(y.min()), float(y.max()))}
    told: dict[str, Any] = {"classes": (0, 1)} if signed else labels
    told["bounds"] = ranges(X)
    plain: Any = LogisticRegression(max_iter=1000) if signed else Ridge()
    for seed in SEEDS:
        A, B, a, b = train_test_split(X, y, test_size=0.2, random_state=seed)

        def metric(found: Any, b: np.ndarray = b) -> float:
            right, error = (
                np.mean(found == b),
                np.sqrt(np.mean((found - b) ** 2)),
            )
            return float(right if signed else error)

        for epsilon in EPSILONS:
            start = time.process_time()
            known = {"epsilon": epsilon, "random_state": seed, **told}
            found = dperm.fit(A, a, **known).predict(B)
            yield (
                "dperm",
                epsilon,
                seed,
                metric(found),
                time.process_time() - start,
            )
        start = time.process_time()
        found = make_pipeline(StandardScaler(), plain).fit(A, a).predict(B)
        spent = time.process_time() - start
        yield "scikit-learn", np.inf, seed, metric(found), spent
        constant = round(a.mean()) if signed else a.mean()
        yield "constant", np.inf, seed, metric(constant), 0.0


def theirs(
    X: np.ndarray, y: np.ndarray, signed: bool, python: str
) -> pd.DataFrame:
    """Fits of diffprivlib, by that Python."""
    low, high = ranges(X)
    with tempfile.TemporaryDirectory() as folder:
        given, written = Path(folder, "given.npz"), Path(folder, "found.csv")
        seeds = np.array(SEEDS)
        np.savez(given, X=X, y=y, low=low, high=high, signed=signed,
                 epsilons=EPSILONS, seeds=seeds)  # fmt: skip
        subprocess.run(
            [python, "-c", THEIRS, str(given), str(written)], check=True
        )
        return pd.read_csv(written)


def table(python: str) -> pd.DataFrame:
    """All fits, a row each."""
    head = ["method", "epsilon", "seed", "value", "seconds"]
    found = []
    for name in (*CLASSES, *NUMBERS):
        X, y = read(name)
        signed = name in CLASSES
        rows = pd.DataFrame(ours(X, y, signed), columns=head)
        other = theirs(X, y, signed, python).set_axis(head, axis=1)
        metric = "accuracy" if signed else "rmse"
        both = pd.concat([rows, other]).assign(
            data=name, n=len(y), metric=metric
        )
        found.append(both[["data", "n", "metric", *head]])
        print(name, flush=True)
    return pd.concat(found)


def summary(rows: pd.DataFrame) -> str:
    """Means by data set and epsilon, and how many cells meet the goals."""
    keys = ["metric", "data", "epsilon", "method"]
    means = rows.groupby(keys, sort=False)["value"].mean().unstack()
    ends = means.xs(np.inf, level="epsilon")[["constant", "scikit-learn"]]
    cells = means.drop(np.inf, level="epsilon")[["dperm", "diffprivlib"]]
    cells = cells.join(ends, on=["metric", "data"])
    lines = [cells.round(4).to_string()]
    for metric, sign in (("accuracy", 1), ("rmse", -1)):
        some = cells.loc[metric]
        worse = (
            sign * (some["constant"] - some["dperm"]) > 0.02 * some["constant"]
        )
        gain = sign * (some["dperm"] - some["diffprivlib"])
        near = 0.005 if sign > 0 else 0.0
        lines.append(
            f"{metric}, {len(some)} cells: {worse.sum()} worse than the constant by "
            f"more than 2 %; against diffprivlib {(gain > near).sum()} ahead, "
            f"{(gain < -near).sum()} behind (by more than {near:g})"
        )
    return "\n".join(lines)


def times(python: str) -> pd.DataFrame:
    """CPU seconds and memory of every library on every size, a row each."""
    rows = []
    for (name, size), is_real in itertools.product(
        SIZES.items(), (False, True)
    ):
        for library in LIBRARIES:
            runner = python if library == "diffprivlib" else sys.executable
            command = [
                runner,
                "-c",
                CELL,
                library,
                *map(str, size),
                str(is_real),
            ]
            row = [name, *size, "numbers" if is_real else "classes", library]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=PATIENCE
                )
                words = (done.stderr.strip().splitlines() or [""])[-1]
                measured = [*map(float, done.stdout.split()), words[:80]]
            except subprocess.TimeoutExpired:
                measured = [f"no answer in {PATIENCE} s"]
            row += [np.nan] * (5 - len(measured)) + measured
            rows.append(row)
            print(*row, flush=True)
    head = ["data", "n", "p", "entries", "labels", "library"]
    head += ["cold", "warm", "memory", "bytes", "note"]
    return pd.DataFrame(rows, columns=head)


def regrets(arena: pd.DataFrame) -> str:
    """Mean regret of the default rule in the arena's cells of numbers.

    A cell's regret is the mean excess of the method that is taken, cut at 2, less that
    of the best method without tuning.
    """
    known = (arena["tuning"] == "default") & (arena["loss"] == "least_squares")
    cells = arena[known & (arena["status"] == "ok")].pivot_table(
        index=["data", "problem", "epsilon", "n", "p"],
        columns="algorithm",
        values="mean",
    )
    cells = cells.clip(upper=CUT)
    keys = cells.index.to_frame(index=False)
    size = (keys["n"] * keys["epsilon"] / keys["p"]).to_numpy()
    few, many = (
        cells[methods.method(names[0]).label].to_numpy()
        for names in (
            methods.usual(True, 1, 0.0),
            methods.usual(True, 1, np.inf),
        )
    )
    best = cells.min(axis=1).to_numpy()
    by_threshold = {
        least: np.where(size < least, few, many) - best for least in THRESHOLDS
    }
    own = by_threshold[methods.FEW_RECORDS]
    left_out, chosen = np.empty(len(keys)), []
    for name in keys["data"].unique():
        other = (keys["data"] != name).to_numpy()
        means = {
            least: own[other].mean() for least, own in by_threshold.items()
        }
        chosen.append(min(means, key=means.__getitem__))
        left_out[~other] = by_threshold[chosen[-1]][~other]
    means = {least: own.mean() for least, own in by_threshold.items()}
    listed = ", ".join(
        f"{least:g}: {mean:.3f}" for least, mean in means.items()
    )
    return (
        f"regret of the default in {len(keys)} cells of numbers: {own.mean():.4f}\n"
        f"by threshold of n epsilon / p: {listed}\n"
        f"leaving each data set out: {left_out.mean():.4f}, threshold "
        f"{min(chosen):g} to {max(chosen):g}"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["times"]:
        text = times(sys.argv[2]).to_csv(
            index=False, float_format="%.3g", lineterminator="\n"
        )
        store.write_text(TIMES, text)
        sys.exit()
    if len(sys.argv) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = table(sys.argv[1])
        text = made.to_csv(
            index=False, float_format="%.6g", lineterminator="\n"
        )
        store.write_text(WRITTEN, text)
    print(summary(pd.read_csv(WRITTEN)))
    print(regrets(pd.read_csv(ARENA)))
