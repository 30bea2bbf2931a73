"""What is printed, and what the claims are judged by."""

from dperm.core.experiment import results
from dperm.present.intervals import power
from dperm.present.tables import made_of


def rounds(config, product, problems):
    """Exponent of the error in the number of releases, with its interval."""
    rows = []
    for rule, part in results.load_sweep(config, "rounds").groupby("rule"):
        means = part.groupby("releases")["error"].mean()
        exponent, low, high = power(means.index.to_numpy(), means.to_numpy())
        rows.append({"rule": rule, "exponent": exponent,
                     "ci_low": low, "ci_high": high})  # fmt: skip
    return made_of(rows)
