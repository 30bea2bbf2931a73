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
        given = {key: file[key] for key in file.files}
    X, held, y, low, high = (given[k] for k in ("X", "X_held", "y", "low", "high"))
    signed = bool(given["signed"])
    if signed:
        X, held = (2 * (one - low) / (high - low) - 1 for one in (X, held))
    found, tests, seconds = [], [], []
    for epsilon in given["epsilons"]:
        for seed in given["seeds"]:
            start = time.perf_counter()
            known = {"epsilon": float(epsilon), "random_state": int(seed)}
            if signed:
                norm = float(np.sqrt(X.shape[1]))
                model = LogisticRegression(data_norm=norm, max_iter=1000, **known)
                score = model.fit(X, y).decision_function
            else:
                ends = {"bounds_X": (low, high), "bounds_y": tuple(given["label"])}
                score = LinearRegression(**ends, **known).fit(X, y).predict
            seconds.append(time.perf_counter() - start)
            found.append(score(X))
            tests.append(score(held))
    shape = (len(given["epsilons"]), len(given["seeds"]))
    np.savez(
        written,
        scores=np.reshape(found, (*shape, -1)),
        held=np.reshape(tests, (*shape, -1)),
        seconds=np.reshape(seconds, shape),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
