"""Fit models of diffprivlib to arrays from a file, in the library's own environment.

Usage: python diffprivlib_models.py in.npz out.npz. In: X (n, p) clipped to norm R, y,
kind, R, label (a bound on |y|), ridge (per record), epsilons (E,), seeds (L,) and,
optionally, bound (on entries of X; else R). Out: W (E, L, p), seconds (E, L), library
and version.
"""

import sys
import time
import warnings

import diffprivlib
import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression

warnings.simplefilter("ignore")


def fitted(given, epsilon, seed):
    """Coefficients of one fit, (p,)."""
    X, y, n = given["X"], given["y"], len(given["y"])
    if str(given["kind"]) == "logistic":
        ridge = max(float(given["ridge"]), 1e-6)
        model = LogisticRegression(
            epsilon=epsilon,
            data_norm=float(given["R"]),
            C=1 / (n * ridge),
            fit_intercept=False,
            tol=1e-8,
            max_iter=1000,
            random_state=seed,
        )
    else:
        bound, label = float(given.get("bound", given["R"])), float(given["label"])
        model = LinearRegression(
            epsilon=epsilon,
            bounds_X=(-bound, bound),
            bounds_y=(-label, label),
            fit_intercept=False,
            random_state=seed,
        )
    return np.ravel(model.fit(X, y).coef_)


def main(read, written):
    """All fits, one after another."""
    given = np.load(read)
    shape = (len(given["epsilons"]), len(given["seeds"]))
    W, seconds = np.empty((*shape, given["X"].shape[1])), np.empty(shape)
    given = {key: given[key] for key in given.files}
    for i, epsilon in enumerate(given["epsilons"]):
        for k, seed in enumerate(given["seeds"]):
            start = time.perf_counter()
            W[i, k] = fitted(given, float(epsilon), int(seed))
            seconds[i, k] = time.perf_counter() - start
    np.savez(
        written,
        W=W,
        seconds=seconds,
        library="diffprivlib",
        version=diffprivlib.__version__,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
