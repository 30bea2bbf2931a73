"""A script: fits and sums over two Dask workers, and the same in this process alone.

It imports dperm first, as users are told to, so that all processes have one BLAS.
"""

import json
import os
import signal
import sys
from pathlib import Path

import dperm  # isort: skip
import distributed
import numpy as np
import pandas as pd

from dperm.data import blocks as data
from dperm.solvers.blocks import Blocks
from dperm.solvers.records import Records

N, P = 4000, 5
SOLVERS = ("dp_gd", "dp_gram", "objective_perturbation")


def written(folder: Path) -> Path:
    """Two Parquet files of eight row groups in all."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    y = np.where(X[:, 0] + rng.standard_normal(N) > 0, "yes", "no")
    table = pd.DataFrame(X, columns=[*"abcde"]).assign(label=y)
    folder.mkdir()
    for k in range(2):
        part = table[k * N // 2 : (k + 1) * N // 2]
        part.to_parquet(folder / f"{k}.parquet", row_group_size=500, index=False)
    return folder


def fit(folder: Path, solver: str) -> list[float]:
    how = {"classes": ("no", "yes"), "feature_scale": 1.0, "random_state": 0}
    model = dperm.fit(folder, "label", solver, **how)
    return [*model.coef_[0], *model.intercept_]


def dying(records: Records, u: np.ndarray, folder: str) -> np.ndarray:
    """A sum of gradients; the first three workers that come to it are killed by it."""
    for k in range(3):
        try:
            Path(folder, f"killed{k}").touch(exist_ok=False)
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)
    return Records.gradient(records, u, 0.5)


def main(top: Path) -> dict:
    data.PART, folder, u = 500 * P, written(top / "data"), np.ones(P)
    blocks = dperm.DPClassifier(classes=("no", "yes"))._ready(folder, "label")[0]
    found = {"alone": {one: fit(folder, one) for one in SOLVERS}}
    found["sum alone"] = blocks.total(Records.gradient, u, 0.5).tolist()
    read, here = data.Parquet.read, []
    data.Parquet.read = lambda *given: here.append(given) or read(*given)
    given = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**given) as cluster,
        distributed.Client(cluster) as at,
    ):
        assert Blocks.workers(blocks) is at
        found["spread"] = {one: fit(folder, one) for one in SOLVERS}
        first = {*at.run(os.getpid).values()}
        found["sum"] = blocks.total(dying, u, str(top)).tolist()
        found["lost"] = len(first - {*at.run(os.getpid).values()})
    found["read here"] = len(here)
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
