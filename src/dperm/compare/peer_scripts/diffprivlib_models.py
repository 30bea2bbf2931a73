"""Fit models of diffprivlib to arrays from a file, in the library's own environment.

Usage: python diffprivlib_models.py in.npz out.npz. In: X (n, p), y, X_held, low and
high (p,) of columns, label (its two ends), signed, epsilons (E,) and seeds (L,). Out:
scores (E, L, n) and held (E, L, held n), seconds (E, L).
"""

import sys
import time
import warnings

import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression

warnings.simplefilter("ignore")


def main(read, written):
    """All fits, one after another; columns of a classification in [-1, 1]."""
    with np.load(read) as file:
        inputs = {key: file[key] for key in file.files}
    X, held, y, low, high = (inputs[k] for k in ("X", "X_held", "y", "low", "high"))
    signed = bool(inputs["signed"])
    if signed:
        X = 2 * (X - low) / (high - low) - 1
        held = 2 * (held - low) / (high - low) - 1
    scores = []
    tests = []
    seconds = []
    for epsilon in inputs["epsilons"]:
        for seed in inputs["seeds"]:
            start = time.perf_counter()
            arguments = {"epsilon": float(epsilon), "random_state": int(seed)}
            if signed:
                norm = float(np.sqrt(X.shape[1]))
                model = LogisticRegression(data_norm=norm, max_iter=1000, **arguments)
                score = model.fit(X, y).decision_function
            else:
                ends = {"bounds_X": (low, high), "bounds_y": tuple(inputs["label"])}
                score = LinearRegression(**ends, **arguments).fit(X, y).predict
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
