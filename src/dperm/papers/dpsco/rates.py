"""Rates that the paper proves, and the measured rates of the sweeps.

Rates are measured on an easy instance and on the worst of a class: linear losses of
coins whose bias is 2^k times the least that n records can detect, up to 1. The measured
quantity is the largest mean excess risk in the class, as a worst-case rate requires.
The excess of w = 0 grows with the bias, so that its worst case is the largest bias.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.config.schema import Product
from dperm.experiments import results
from dperm.numerics.intervals import student
from dperm.papers.shared.tables import slopes

METHOD_LABELS = {
    "noisy_sfw": "NoisySFW",
    "poly_sfw": "PolySFW",
    "phased_sgd": "PhasedSGD",
    "sco_dp_sgd": "DP-SGD, one pass",
    "sco_mirror_descent": "DP mirror descent, full batches",
}
EASY = "well-specified least squares"
LARGE = "linear loss, biased coins, from a million records"  # sums by their exact law
METHOD_KEYS = ["method", "p", "epsilon", "calibration"]
HARD_INSTANCES = {  # which of the hard coins are biased, and name of the instance
    "poly_sfw": ("one of them", "one informative coordinate"),
    "noisy_sfw": ("all", "linear loss, biased coins"),
    "phased_sgd": ("one a record", "linear loss, one coin a record"),
}


def norm(p: float) -> str:
    """The p of a norm as text, for titles."""
    return "\N{INFINITY}" if math.isinf(p) else f"{p:g}"


# --- Table 1 --------------------------------------------------------------------------

RATES = {  # Table 1's upper bounds, logarithms left out
    "poly_sfw": "log(d) / (eps sqrt(n))",
    "noisy_sfw": "sqrt(kappa/n) + kappa sqrt(d) / (eps n)",
    "phased_sgd": "d^(1/2-1/p) / sqrt(n) + d^(1-1/p) / (eps n)",
}
TERMS = {  # their exponents of n: statistical term, privacy term
    "poly_sfw": (-0.5, -0.5),
    "noisy_sfw": (-0.5, -1.0),
    "phased_sgd": (-0.5, -1.0),
}


BETA = 0.05  # probability of failure of Theorem 5.2 and Proposition 7.1


def bound(
    solver: str,
    p: float,
    epsilon: float,
    n: float,
    d: float,
    printed: bool = False,
) -> float:
    """A theorem's bound with its logarithms; constants, L and M left out.

    The bounds are Theorem 6.3 (K = 2 d vertices), Theorem 5.2 and Proposition 7.1, at
    delta = 1 / n^2 and beta = 1/20. If ``printed``, as in Table 1, there are no other
    logarithms than those of ``RATES``. At epsilon infinity the terms of the noise
    vanish. Theorem 6.3 then has its sampling error, log(d) / sqrt(n) as printed.
    """
    private = 1 / epsilon
    delta = 1.0 if printed else math.sqrt(math.log(n**2))
    if solver == "poly_sfw":
        logs = math.log(d)
        if not printed:
            logs = math.log(n / math.log(2 * d)) * math.log(2 * d * n / BETA)
        return logs * (private * delta if private else 1.0) / math.sqrt(n)
    if solver == "phased_sgd":
        statistical = d ** (0.5 - 1 / p) / math.sqrt(n)
        return statistical + d ** (1 - 1 / p) * delta * private / n
    kappa = _regularity(p, d, printed)
    if printed:
        return math.sqrt(kappa / n) + private * kappa * math.sqrt(d) / n
    leading = math.sqrt(kappa) + math.sqrt(math.log(n / BETA))
    noise = math.log(n) ** 3 * math.sqrt(kappa * d) * delta * private / n
    return leading * (math.log(n) ** 2 / math.sqrt(n) + noise)


def _regularity(p: float, d: float, printed: bool) -> float:
    """Table 1's kappa: min(1 / (p - 1), 2 e log d), without the e if ``printed``."""
    of_dimension = 2 * (1.0 if printed else math.e) * math.log(d)
    return min(of_dimension, 1 / (p - 1)) if p > 1 else of_dimension


def bound_exponent(
    row: dict[str, Any], axis: str, printed: bool = False
) -> float | None:
    """Exponent of the bound between the ends of a row's fit; None without a fit.

    ``axis`` is n or d; the row contains the other one.
    """
    if row["exponent"] is None or pd.isna(row["exponent"]):
        return None
    ends = (row["from"], row["to"])
    bounds = []
    for end in ends:
        n, d = (end, row["d"]) if axis == "n" else (row["n"], end)
        bound_terms = (
            row["method"],
            row["p"],
            row["epsilon"],
            float(n),
            float(d),
        )
        bounds.append(bound(*bound_terms, printed))
    first_bound, last_bound = bounds
    return math.log(last_bound / first_bound) / math.log(ends[1] / ends[0])


# --- results of the sweeps ------------------------------------------------------------


def together(swept: pd.DataFrame) -> pd.DataFrame:
    """Rows of sweeps, with ``share``: excess over the initial."""
    return swept.assign(share=swept["excess"] / swept["initial"])


def instanced(folder: Path, product: Product) -> pd.DataFrame:
    """As ``together``, with ``instance``; a class has its worst bias at each size."""
    tables = [results.load_sweep(folder, name) for name in product.sweeps]
    tables_of_instances = [
        worst(table) if "bias" in table else table.assign(instance=EASY)
        for table in tables
    ]
    return together(pd.concat(tables_of_instances, ignore_index=True))


def biases(biased: str, n: int, d: int) -> list[float]:
    """Biases 1/sqrt(n), or sqrt(d/n) if a record shows one column, doubled up to 1."""
    records_of_column = n / d if biased == "one a record" else n
    least_bias = 1 / math.sqrt(max(1.0, records_of_column))
    count = max(0, math.ceil(-math.log2(least_bias) - 1e-9))
    return [*(least_bias * 2.0**k for k in range(count)), 1.0]


def worst(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the bias with the largest mean excess, at every size.

    Parameters
    ----------
    table : DataFrame
        Of the sweep ``hard``: METHOD_KEYS, instance, d, n, bias, excess and initial.

    Returns
    -------
    DataFrame
        With ``initial`` that of the largest bias: the worst case of w = 0.
    """
    keys = [*METHOD_KEYS, "instance", "d", "n"]
    means = table.groupby([*keys, "bias"], as_index=False)["excess"].mean()
    chosen = means.loc[means.groupby(keys)["excess"].idxmax(), [*keys, "bias"]]
    top = table.groupby(keys, as_index=False)["initial"].max()
    rows = table.drop(columns="initial").merge(chosen, on=[*keys, "bias"])
    return rows.merge(top, on=keys)


# --- exponents, and the range in which they are fitted --------------------------------

BELOW = 0.5  # of the initial excess: above it nothing has been learnt
LEAST_POINTS = 3
FITTED = ("exponent", "ci_low", "ci_high", "from", "to", "runs")


def interval(numbers: np.ndarray) -> tuple[float, float]:
    """Student's 95 % interval of a mean; NaN for a single run."""
    return student(numbers) if len(numbers) > 1 else (math.nan, math.nan)


def of_risk(
    table: pd.DataFrame, axis: str, column: str = "share"
) -> dict[str, Any]:
    """Exponent of the excess risk in an axis, where it is below half the initial one.

    Each replicate gives one slope; the interval is Student's. Without three values of
    the axis, or two replicates that have them all, nothing is fitted and ``reason``
    explains why. The fitted ``column`` is ``share`` or ``excess``.
    """
    means = table.groupby(axis)["share"].mean()
    learnt_sizes = means.index[means < BELOW]
    nothing = dict.fromkeys(FITTED)
    if len(learnt_sizes) < LEAST_POINTS:
        return nothing | {
            "reason": f"{len(learnt_sizes)} of {len(means)} below half"
        }
    exponents = slopes(table[table[axis].isin(learnt_sizes)], axis, column)
    if len(exponents) < 2:
        return nothing | {"reason": f"{len(exponents)} run"}
    ends = float(min(learnt_sizes)), float(max(learnt_sizes))
    fit = (
        float(exponents.mean()),
        *interval(exponents),
        *ends,
        len(exponents),
    )
    return dict(zip(FITTED, fit, strict=True)) | {"reason": ""}


def of_dimension(table: pd.DataFrame, column: str = "share") -> dict[str, Any]:
    """Exponent of d at the largest n that has one; else ``reason`` at the largest n."""
    sizes = sorted(table["n"].unique(), reverse=True)
    fits = [
        {"n": n} | of_risk(table[table["n"] == n], "d", column) for n in sizes
    ]
    return next((fit for fit in fits if not fit["reason"]), fits[0])


def of_time(
    table: pd.DataFrame, start: float = 1e4
) -> tuple[float, float, float]:
    """Exponent of time in n and its interval, from ``start`` on (or everywhere)."""
    late = table[table["n"] >= start]
    exponents = slopes(
        late if late["n"].nunique() > 1 else table, "n", "seconds"
    )
    return (float(exponents.mean()), *interval(exponents))
