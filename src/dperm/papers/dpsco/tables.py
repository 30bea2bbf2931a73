"""Tables of Bassily, Guzmán and Nandi 2021 (DP-SCO)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dperm import schema
from dperm.papers.dpsco.figures import (
    LABELS,
    LEAST_BEYOND,
    TERMS,
    interval,
    norm,
    quantile,
    time_exponent,
    together,
)
from dperm.papers.dpsco.figures import exponents as replicate_slopes
from dperm.pipeline import results
from dperm.present.tables import Table, number
from dperm.privacy.accounting import gaussian_epsilon, true_epsilon
from dperm.privacy.generalised_gaussian import (
    noise_multiplier,
    regularity,
    smooth_order,
    strict_epsilon,
)
from dperm.solvers.streams import Target, phased_sgd, poly_sfw
from dperm.solvers.streams.setup import Setup

KEYS = ["method", "p", "epsilon", "calibration"]
BELOW = 0.5  # of the initial excess: above it nothing has been learnt
LEAST_POINTS = 3
RATES = {  # Table 1's upper bounds, logarithms left out
    "poly_sfw": "log(d) / (eps sqrt(n))",
    "noisy_sfw": "sqrt(kappa/n) + kappa sqrt(d) / (eps n)",
    "noisy_sfw_all": "sqrt(kappa/n) + kappa sqrt(d) / (eps n)",
    "phased_sgd": "d^(1/2-1/p) / sqrt(n) + d^(1-1/p) / (eps n)",
}


FITTED = ("exponent", "ci_low", "ci_high", "from", "to", "runs")


def slope(table: pd.DataFrame, axis: str) -> dict[str, Any]:
    """Exponent of the excess risk in an axis, where it is below half the initial one.

    Each replicate gives a slope of its own; the interval is Student's. Without three
    values of the axis, or two replicates that have them all, ``reason`` says so and
    nothing is fitted.
    """
    means = table.groupby(axis)["share"].mean()
    kept = means.index[means < BELOW]
    nothing = dict.fromkeys(FITTED)
    if len(kept) < LEAST_POINTS:
        return nothing | {"reason": f"{len(kept)} of {len(means)} below half"}
    slopes = replicate_slopes(table[table[axis].isin(kept)], axis, "share")
    if len(slopes) < 2:
        return nothing | {"reason": f"{len(slopes)} run"}
    low, high = interval(slopes)
    ends = float(min(kept)), float(max(kept))
    found = (float(slopes.mean()), low, high, *ends, len(slopes))
    return dict(zip(FITTED, found, strict=True)) | {"reason": ""}


def exponents(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table 1 with measured exponents of n, for every dimension."""
    table = together(config, product)
    rows = []
    for keys, group in table.groupby([*KEYS, "d"], sort=False):
        statistical, private = TERMS[str(keys[0])]
        row = dict(zip([*KEYS, "d"], keys, strict=True))
        row |= {"statistical_exponent": statistical, "privacy_exponent": private,
                "bound": RATES[str(keys[0])]}  # fmt: skip
        rows.append(row | slope(group, "n"))
    data = pd.DataFrame(rows).sort_values([*KEYS, "d"], ignore_index=True)
    return Table(data, _wide(data))


def _wide(data: pd.DataFrame) -> pd.DataFrame:
    """One line a (solver, p, target), one column a dimension."""
    lines = []
    for keys, group in data.groupby(KEYS, sort=False):
        line = _named(dict(zip(KEYS, keys, strict=True)))
        first = group.iloc[0]
        line["Table 1"] = first["bound"]
        line["exponents"] = (
            f"{first['statistical_exponent']:g}, {first['privacy_exponent']:g}"
        )
        for row in group.to_dict("records"):
            line[f"d = {row['d']:g}"] = _interval(row)
        lines.append(line)
    return pd.DataFrame(lines)


def _named(keys: dict[str, Any]) -> dict[str, str]:
    private = not math.isinf(keys["epsilon"])
    return {
        "algorithm": LABELS[keys["method"]],
        "p": norm(keys["p"]),
        "epsilon": f"{keys['epsilon']:g}" if private else "no noise",
        "noise": keys["calibration"] if private else "",
    }


def _interval(row: dict[str, Any]) -> str:
    if row["reason"]:
        return f"not fitted: {row['reason']}"
    return f"{_bracketed(row)} from n = {number(row['from'])}"


def _bracketed(row: dict[str, Any]) -> str:
    """An exponent and its interval, as far as there is one."""
    if pd.isna(row["ci_low"]):
        return f"{row['exponent']:.2f} (one run: no interval)"
    return f"{row['exponent']:.2f} [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"


def dimension_exponents(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Exponents of d, at the largest n where three dimensions have learnt."""
    table = together(config, product)
    rows = []
    for keys, group in table.groupby(KEYS, sort=False):
        row = dict(zip(KEYS, keys, strict=True))
        rows.append(row | _largest(group))
    data = pd.DataFrame(rows).sort_values(KEYS, ignore_index=True)
    shown = [
        _named({key: row[key] for key in KEYS})
        | _dimensions(row)
        | {"Table 1": _table1_d(row["method"], row["p"])}
        for row in data.to_dict("records")
    ]
    return Table(data, pd.DataFrame(shown))


def _largest(table: pd.DataFrame) -> dict[str, Any]:
    """Exponent of d at the largest n that gives one; else what the largest n lacks."""
    sizes = sorted(table["n"].unique(), reverse=True)
    found = [slope(table[table["n"] == n], "d") for n in sizes]
    fitted = [k for k in range(len(sizes)) if not found[k]["reason"]]
    at = fitted[0] if fitted else 0
    return {"n": sizes[at]} | found[at]


def _dimensions(row: dict[str, Any]) -> dict[str, str]:
    shown = {"n": f"{row['n']:g}"}
    if row["reason"]:
        return shown | {"d": "", "exponent of d": f"not fitted: {row['reason']}"}
    return shown | {
        "d": f"{row['from']:g} to {row['to']:g}",
        "exponent of d": _bracketed(row),
    }


def _table1_d(solver: str, p: float) -> str:
    if solver == "poly_sfw":
        return "log d"
    if p <= 2:
        return "0 (statistical), 0.5 (privacy)"
    inverse = 0.0 if math.isinf(p) else 1 / p
    return f"{0.5 - inverse:g} (statistical), {1 - inverse:g} (privacy)"


def starts(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """From which n on a method has learnt something."""
    table = together(config, product)
    rows = []
    for keys, group in table.groupby([*KEYS, "d"], sort=False):
        means = group.groupby("n")["share"].mean()
        row = dict(zip([*KEYS, "d"], keys, strict=True))
        rows.append(row | _start(means) | {"largest": means.index.max()})
    data = pd.DataFrame(rows).sort_values([*KEYS, "d"], ignore_index=True)
    lines = []
    for keys, group in data.groupby(KEYS, sort=False):
        line = _named(dict(zip(KEYS, keys, strict=True)))
        for row in group.to_dict("records"):
            line[f"d = {row['d']:g}"] = _start_text(row)
        lines.append(line)
    return Table(data, pd.DataFrame(lines))


def _start(means: pd.Series) -> dict[str, float | None]:
    """Smallest n from which the mean share stays below half; else an extrapolation."""
    above = means.index[means >= BELOW]
    later = means.index[means.index > (above.max() if len(above) else 0)]
    if len(later):
        return {"starts": float(later.min()), "extrapolated": None}
    if len(means) < 2:
        return {"starts": None, "extrapolated": None}
    (n0, n1), (y0, y1) = means.index[-2:], np.log(means.iloc[-2:])
    if y1 >= y0 - 0.05:
        return {"starts": None, "extrapolated": None}
    rate = (y1 - y0) / math.log(n1 / n0)
    reached = n1 * math.exp((math.log(BELOW) - y1) / rate)
    return {"starts": None, "extrapolated": float(reached)}


def _start_text(row: dict[str, Any]) -> str:
    if not pd.isna(row["starts"]):
        return number(row["starts"], 2)
    text = f"> {number(row['largest'], 2)}"
    if not pd.isna(row["extrapolated"]):
        text += f" ({number(row['extrapolated'], 2)})"
    return text


def noise(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Published and strict noise, and what the published one really costs."""
    small = config.scale.problems == "offline"
    sizes = [1000] if small else [1000, 10**5]
    rows = [
        row
        for n in sizes
        for epsilon in (1.0, 8.0)
        for row in (*_tree_noise(n, epsilon), _poly_noise(n, epsilon),
                    _phased_noise(n, epsilon))
    ]  # fmt: skip
    data = pd.DataFrame(rows)
    shown = data.copy()
    shown["algorithm"] = [LABELS[name] for name in data["algorithm"]]
    shown["p"] = [norm(p) for p in data["p"]]
    for column in data.columns[3:]:
        shown[column] = [number(value) for value in data[column]]
    return Table(data, shown)


def _noise_row(
    name: str,
    p: float,
    n: int,
    epsilon: float,
    proved: float,
    true: float,
    ratio: float,
) -> dict[str, Any]:
    return {
        "algorithm": name, "p": p, "n": n, "target_epsilon": epsilon,
        "epsilon_of_the_proof": proved, "true_epsilon": true,
        "strict_over_published_noise": ratio,
    }  # fmt: skip


def _tree_noise(n: int, epsilon: float, d: int = 64) -> list[dict[str, Any]]:
    """Algorithm 1, root and right children; exact for p = 2, proved for the others."""
    from dperm.privacy.generalised_gaussian import proof_epsilon

    delta, rows = n**-2.0, []
    for p in (1.0, 1.25, 1.5, 2.0):
        setup = Setup("least_squares", p, d)
        paper, strict = (
            noise_multiplier(setup.q, d, epsilon, delta, kind)
            for kind in ("paper", "strict")
        )
        kappa, order = regularity(setup.q, d), smooth_order(setup.q, d)
        true = strict_epsilon(order, kappa, paper, delta)
        proved = proof_epsilon(kappa, paper, delta)
        ratio = strict / paper
        rows.append(_noise_row("noisy_sfw", p, n, epsilon, proved, true, ratio))
    return rows


def _poly_noise(n: int, epsilon: float, d: int = 64) -> dict[str, Any]:
    """Algorithm 2: as composed in the paper, and for the costliest record."""
    setup, delta = Setup("least_squares", 1.0, d), n**-2.0
    paper, strict = (
        poly_sfw.noise(setup, n, Target(epsilon, delta, kind), poly_sfw.Options())
        for kind in ("paper", "strict")
    )
    proved = epsilon + epsilon**2 / (2 * math.log(1 / delta))
    true = true_epsilon(paper.ledger, delta)
    ratio = strict.scales[1] / paper.scales[1]
    return _noise_row("poly_sfw", 1.0, n, epsilon, proved, true, ratio)


def _phased_noise(n: int, epsilon: float) -> dict[str, Any]:
    setup, delta = Setup("linear", 2.0, 1), n**-2.0
    paper, strict = (
        phased_sgd.noise(setup, n, Target(epsilon, delta, kind), phased_sgd.Options())
        for kind in ("paper", "strict")
    )
    true = gaussian_epsilon(1 / paper.scales[0], delta)
    ratio = strict.scales[0] / paper.scales[0]
    return _noise_row("phased_sgd", 2.0, n, epsilon, epsilon, true, ratio)


def peers(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Seconds, their exponent and the excess risk, method by method."""
    table = together(config, product)
    rows = []
    for (solver, epsilon, n), group in table.groupby(["method", "epsilon", "n"]):
        low, high = interval(group["share"].to_numpy())
        power, *ends = time_exponent(table[table["method"] == solver])
        rows.append(
            {"algorithm": LABELS[solver], "p": group["p"].iloc[0], "epsilon": epsilon,
             "n": n, "seconds": group["seconds"].median(),
             "exponent": power, "exponent_low": ends[0], "exponent_high": ends[1],
             "share": group["share"].mean(), "ci_low": low, "ci_high": high}
        )  # fmt: skip
    data = pd.DataFrame(rows)
    shown = data.drop(columns=["exponent_low", "exponent_high"])
    for column in ("seconds", "share", "ci_low", "ci_high"):
        shown[column] = [number(value) for value in data[column]]
    shown["exponent"] = [
        _bracketed({"exponent": power, "ci_low": low, "ci_high": high})
        for power, low, high in data[["exponent", "exponent_low", "exponent_high"]]
        .itertuples(index=False)
    ]  # fmt: skip
    return Table(data, shown)


def tails(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Quantiles for beta = 0.1, 0.01 and 0.001, over the median, from enough runs."""
    table = together(config, product)
    rows = []
    for (solver, p, epsilon), group in table.groupby(["method", "p", "epsilon"]):
        values = group["share"].to_numpy()
        middle = float(np.median(values))
        for beta in (0.1, 0.01, 0.001):
            if len(values) * beta < LEAST_BEYOND:
                continue
            found, low, high = quantile(values, beta)
            rows.append(
                {"algorithm": LABELS[solver], "p": p, "epsilon": epsilon,
                 "runs": len(values), "beta": beta, "median": middle,
                 "quantile": found, "ci_low": low, "ci_high": high,
                 "over_median": found / middle}
            )  # fmt: skip
    data = pd.DataFrame(rows)
    shown = data.copy()
    for column in ("beta", "median", "quantile", "ci_low", "ci_high", "over_median"):
        shown[column] = [number(value) for value in data[column]]
    return Table(data, shown)


def real(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Test loss and errors of every method and target."""
    table = results.load_sweep(config, product.sweeps[0])
    rows = []
    for name, part in table.groupby("problem", sort=False):
        if (part["status"] == "unavailable").any():
            rows.append({"problem": name, "algorithm": "not available"})
            continue
        keys = ["method", "p", "epsilon", "calibration"]
        for (solver, p, epsilon, kind), group in part.groupby(keys):
            low, high = interval(group["excess"].to_numpy())
            rows.append(
                {"problem": name, "algorithm": LABELS[solver], "p": p,
                 "epsilon": epsilon, "noise": kind, "loss": group["excess"].mean(),
                 "ci_low": low, "ci_high": high, "error": group["error"].mean(),
                 "balanced_error": group["balanced_error"].mean()}
            )  # fmt: skip
    data = pd.DataFrame(rows)
    shown = data.copy()
    for column in set(data.columns) - {"problem", "algorithm", "noise"}:
        shown[column] = [number(value) for value in data[column]]
    return Table(data, shown)
