"""What is printed, and what the claims are judged by."""

import pandas as pd

from dperm.experiments import results
from dperm.numerics.intervals import power


def rounds(config, product, problems):
    """Exponent of the error in the number of releases, with its interval."""
    rows = []
    for rule, part in results.load_sweep(config, "rounds").groupby("rule"):
        means = part.groupby("releases")["error"].mean()
        exponent, low, high = power(means.index.to_numpy(), means.to_numpy())
        rows.append({"rule": rule, "exponent": exponent,
                     "ci_low": low, "ci_high": high})  # fmt: skip
    return pd.DataFrame(rows)
