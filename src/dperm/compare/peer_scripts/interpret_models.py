"""Fit models of interpret to arrays from a file, in the library's own environment.

Usage: python interpret_models.py in.npz out.npz. In: X (n, p), y, X_held, low and high
(p,) of columns, label (its two ends), signed, delta, epsilons (E,) and seeds (L,). Out:
scores (E, L, n) and held (E, L, held n), seconds (E, L).
"""

import sys
import time
import warnings

import numpy as np
from interpret.privacy import (
    DPExplainableBoostingClassifier,
    DPExplainableBoostingRegressor,
)

warnings.simplefilter("ignore")


def main(read, written):
    """All fits, one after another, with the library's own settings."""
    with np.load(read) as file:
        inputs = {key: file[key] for key in file.files}
    X, held, y, low, high = (inputs[k] for k in ("X", "X_held", "y", "low", "high"))
    p = X.shape[1]
    bounds = {j: (float(low[j]), float(high[j])) for j in range(p)}
    common: dict[str, object] = {"privacy_bounds": bounds, "n_jobs": 1}
    common |= {"feature_types": ["continuous"] * p, "delta": float(inputs["delta"])}
    if not inputs["signed"]:
        least, largest = map(float, inputs["label"])
        common |= {"privacy_target_min": least, "privacy_target_max": largest}
    scores = []
    tests = []
    seconds = []
    for epsilon in inputs["epsilons"]:
        for seed in inputs["seeds"]:
            start = time.perf_counter()
            arguments = {**common, "epsilon": float(epsilon), "random_state": int(seed)}
            if inputs["signed"]:
                model = DPExplainableBoostingClassifier(**arguments).fit(X, y)
                score = model.decision_function
            else:
                score = DPExplainableBoostingRegressor(**arguments).fit(X, y).predict
            seconds.append(time.perf_counter() - start)
            scores.append(score(X))
            tests.append(score(held))
    shape = (len(inputs["epsilons"]), len(inputs["seeds"]))
    np.savez(
        written,
        scores=np.reshape(scores, (*shape, -1)),
        held=np.reshape(tests, (*shape, -1)),
        seconds=np.reshape(seconds, shape),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
