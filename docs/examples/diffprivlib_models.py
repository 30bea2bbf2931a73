"""Models of diffprivlib as functions of data and a seed."""

from diffprivlib.models import LinearRegression, LogisticRegression


def linear(X, y, seed):
    """Least squares on features in [0, 1] and labels in [-1, 1]."""
    bounds = {"bounds_X": (0, 1), "bounds_y": (-1, 1)}
    model = LinearRegression(
        epsilon=1.0, fit_intercept=False, random_state=seed, **bounds
    )
    return model.fit(X, y)


def logistic(X, y, seed):
    """Logistic regression on records of norm 1 at most."""
    model = LogisticRegression(epsilon=1.0, data_norm=1.0, random_state=seed)
    return model.fit(X, y)
