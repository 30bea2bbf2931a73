"""Fit models of another library to arrays from a file, in an environment that has it.

Usage: python fits.py in.npz out.npz. In: library, X (n, p), y, X_held, low and high
(p,) of columns, label (its two ends), signed, delta, epsilons (E,) and seeds (L,). Out:
scores (E, L, n) and held_out (E, L, number of held-out records), seconds (E, L).
"""

import sys
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")


def of_diffprivlib(inputs):
    """A function that fits and returns the scores; classes have columns in [-1, 1]."""
    from diffprivlib.models import LinearRegression, LogisticRegression

    X, y, low, high = (inputs[key] for key in ("X", "y", "low", "high"))
    if not inputs["signed"]:
        ends = {"bounds_X": (low, high), "bounds_y": tuple(inputs["label"])}
        return lambda **target: (
            LinearRegression(**ends, **target).fit(X, y).predict
        )

    def unit(columns):
        return 2 * (columns - low) / (high - low) - 1

    X = unit(X)
    settings = {"data_norm": float(np.sqrt(X.shape[1])), "max_iter": 1000}

    def fit(**target):
        model = LogisticRegression(**settings, **target).fit(X, y)
        return lambda columns: model.decision_function(unit(columns))

    return fit


def of_interpret(inputs):
    """A function that fits with the library's own settings and returns the scores."""
    from interpret.privacy import (
        DPExplainableBoostingClassifier,
        DPExplainableBoostingRegressor,
    )

    X, y, low, high = (inputs[key] for key in ("X", "y", "low", "high"))
    p = X.shape[1]
    bounds = {j: (float(low[j]), float(high[j])) for j in range(p)}
    common: dict[str, object] = {"privacy_bounds": bounds, "n_jobs": 1}
    common |= {
        "feature_types": ["continuous"] * p,
        "delta": float(inputs["delta"]),
    }
    if inputs["signed"]:
        model = DPExplainableBoostingClassifier
        return lambda **target: (
            model(**common, **target).fit(X, y).decision_function
        )
    least, largest = map(float, inputs["label"])
    common |= {"privacy_target_min": least, "privacy_target_max": largest}
    model = DPExplainableBoostingRegressor
    return lambda **target: model(**common, **target).fit(X, y).predict


LIBRARIES = {"diffprivlib": of_diffprivlib, "interpret": of_interpret}


def main(read, written):
    """All fits, one after another."""
    with np.load(read) as file:
        inputs = {key: file[key] for key in file.files}
    fit = LIBRARIES[str(inputs["library"])](inputs)
    scores = []
    tests = []
    seconds = []
    for epsilon in inputs["epsilons"]:
        for seed in inputs["seeds"]:
            start = time.perf_counter()
            score = fit(epsilon=float(epsilon), random_state=int(seed))
            seconds.append(time.perf_counter() - start)
            scores.append(score(inputs["X"]))
            tests.append(score(inputs["X_held"]))
    shape = (len(inputs["epsilons"]), len(inputs["seeds"]))
    np.savez(
        written,
        scores=np.reshape(scores, (*shape, -1)),
        held_out=np.reshape(tests, (*shape, -1)),
        seconds=np.reshape(seconds, shape),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
