"""What is printed, and what the claims are judged by."""

import pandas as pd

from dperm.numerics.intervals import power


def rounds(swept):
    """Exponent of the error in the number of releases, with its interval."""
    rows = []
    for rule, part in swept.groupby("rule"):
        means = part.groupby("releases")["error"].mean()
        exponent, low, high = power(means.index.to_numpy(), means.to_numpy())
        rows.append({"rule": rule, "exponent": exponent,
                     "ci_low": low, "ci_high": high})  # fmt: skip
    return pd.DataFrame(rows)
