"""Fits on real data at four epsilons: ours, diffprivlib's, without privacy, none.

``python -m bench.fits /path/to/python`` runs it, where that Python has diffprivlib
(0.6.6 with scikit-learn 1.6) and pandas; data are those of the folder DPERM_MIRROR.
Every private method is told the same ranges, the least and largest value of each column
in the whole data set. That tells it more than a user may know, in equal measure. A
fifth of the records is held out, another for each seed. Writes
``results/arena/fits.csv``: accuracy for classes, else the root mean squared error;
``python -m bench.fits`` alone prints a summary of it.
"""

from __future__ import annotations

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
from dperm.core.experiment import files as store

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


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """X (n, p) and y (n,) of a data set; classes as 0 and 1."""
    file = Path(os.environ["DPERM_MIRROR"], {**CLASSES, **NUMBERS}[name])
    if file.parent.name == "libsvm":
        X, y = load_svmlight_file(str(file))
        return X.toarray(), (y == y.max()).astype(int)
    lines = file.read_text(encoding="utf-8").splitlines()
    skipped = sum(not line or line[0] in "@%" for line in lines)
    how: dict[str, Any] = {"skiprows": skipped if file.suffix == ".arff" else 0}
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
            right, error = np.mean(found == b), np.sqrt(np.mean((found - b) ** 2))
            return float(right if signed else error)

        for epsilon in EPSILONS:
            start = time.process_time()
            known = {"epsilon": epsilon, "random_state": seed, **told}
            found = dperm.fit(A, a, **known).predict(B)
            yield "dperm", epsilon, seed, metric(found), time.process_time() - start
        start = time.process_time()
        found = make_pipeline(StandardScaler(), plain).fit(A, a).predict(B)
        spent = time.process_time() - start
        yield "scikit-learn", np.inf, seed, metric(found), spent
        constant = round(a.mean()) if signed else a.mean()
        yield "constant", np.inf, seed, metric(constant), 0.0


def theirs(X: np.ndarray, y: np.ndarray, signed: bool, python: str) -> pd.DataFrame:
    """Fits of diffprivlib, by that Python."""
    low, high = ranges(X)
    with tempfile.TemporaryDirectory() as folder:
        given, written = Path(folder, "given.npz"), Path(folder, "found.csv")
        seeds = np.array(SEEDS)
        np.savez(given, X=X, y=y, low=low, high=high, signed=signed,
                 epsilons=EPSILONS, seeds=seeds)  # fmt: skip
        subprocess.run([python, "-c", THEIRS, str(given), str(written)], check=True)
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
        both = pd.concat([rows, other]).assign(data=name, n=len(y), metric=metric)
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
        worse = sign * (some["constant"] - some["dperm"]) > 0.02 * some["constant"]
        gain = sign * (some["dperm"] - some["diffprivlib"])
        near = 0.005 if sign > 0 else 0.0
        lines.append(
            f"{metric}, {len(some)} cells: {worse.sum()} worse than the constant by "
            f"more than 2 %; against diffprivlib {(gain > near).sum()} ahead, "
            f"{(gain < -near).sum()} behind (by more than {near:g})"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = table(sys.argv[1])
        text = made.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        store.write_text(WRITTEN, text)
    print(summary(pd.read_csv(WRITTEN)))
