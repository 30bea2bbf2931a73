"""Tables of Bassily, Guzmán and Nandi 2021 (DP-SCO)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import results, schema
from dperm.papers.dpsco import bounds
from dperm.papers.dpsco.bounds import RATES, TERMS, growth
from dperm.papers.dpsco.exponents import (
    interval,
    of_dimension,
    of_risk,
    of_time,
    start,
)
from dperm.papers.dpsco.instances import EASY, KEYS
from dperm.papers.dpsco.labels import LABELS, norm
from dperm.papers.dpsco.outcomes import instanced, together
from dperm.papers.dpsco.quantiles import tail
from dperm.present.tables import Table, made_of, number, readable


def exponents(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table 1 with measured exponents of n, for every instance and dimension."""
    table = instanced(config, product)
    rows = []
    for keys, group in table.groupby([*KEYS, "instance", "d"], sort=False):
        statistical, private = TERMS[str(keys[0])]
        named = dict(zip([*KEYS, "instance", "d"], keys, strict=True))
        instance = named.pop("instance")
        row = named | {"statistical_exponent": statistical,
                       "privacy_exponent": private,
                       "bound": RATES[str(keys[0])]}  # fmt: skip
        found = row | of_risk(group, "n")
        found |= {"bound_exponent": local_exponent(found, "n")}
        rows.append(found | {"instance": instance, "worst_bias": _bias(group)})
    data = _sorted(rows, "d")
    return Table(data, _wide(data))


def _bias(group: pd.DataFrame) -> float:
    """The worst bias at the largest size; none of an instance that has no class."""
    if "bias" not in group:
        return math.nan
    return float(group.loc[group["n"] == group["n"].max(), "bias"].iloc[0])


def _sorted(rows: list[dict[str, Any]], *last: str) -> pd.DataFrame:
    """Rows by method and target, those of the easy instance first."""
    data = pd.DataFrame(rows)
    order = data.assign(_hard=data["instance"] != EASY)
    places = order.sort_values(["_hard", *KEYS, *last]).index
    return data.loc[places].reset_index(drop=True)


def local_exponent(
    row: dict[str, Any], axis: str, rate: Callable[..., float] = bounds.theorem
) -> float | None:
    """The exponent of the theorem's bound where a row was fitted; None if it was not.

    ``axis`` is n or d; the other one stands in the row.
    """
    if row["exponent"] is None or pd.isna(row["exponent"]):
        return None
    other = "d" if axis == "n" else "n"
    at = {axis: float(row["from"]), other: float(row[other])}
    ends = (float(row["from"]), float(row["to"]))
    known = (row["method"], row["p"], row["epsilon"])
    return bounds.exponent(*known, at, axis, ends, rate)


def _wide(data: pd.DataFrame) -> pd.DataFrame:
    """One line a (solver, p, target, instance), one column a dimension."""
    lines = []
    for keys, group in data.groupby([*KEYS, "instance"]):
        line = _named(dict(zip(KEYS, keys[:-1], strict=True)))
        first = group.iloc[0]
        line["instance"] = str(keys[-1])
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
    beside = row.get("bound_exponent")
    bound = "" if beside is None or pd.isna(beside) else f", bound {beside:.2f},"
    return f"{_bracketed(row)}{bound} from n = {number(row['from'])}"


def _bracketed(row: dict[str, Any]) -> str:
    """An exponent and its interval, as far as there is one."""
    if pd.isna(row["ci_low"]):
        return f"{row['exponent']:.2f} (one run: no interval)"
    return f"{row['exponent']:.2f} [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"


def dimension_exponents(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Exponents of d, at the largest n where three dimensions have learnt."""
    table = instanced(config, product)
    rows = []
    for keys, group in table.groupby([*KEYS, "instance"], sort=False):
        row, instance = dict(zip(KEYS, keys[:-1], strict=True)), str(keys[-1])
        # the initial risk of the hard instances depends on d
        found = row | of_dimension(group, "share" if instance == EASY else "excess")
        found |= {"bound_exponent": local_exponent(found, "d")}
        printed = local_exponent(found, "d", bounds.printed)
        rows.append(found | {"instance": instance, "table1_exponent": printed})
    data = _sorted(rows)
    shown = [
        _named({key: row[key] for key in KEYS})
        | {"instance": row["instance"]}
        | _dimensions(row)
        | {"Table 1": growth(row["method"], row["p"])}
        for row in data.to_dict("records")
    ]
    return Table(data, pd.DataFrame(shown))


def _dimensions(row: dict[str, Any]) -> dict[str, str]:
    shown = {"n": f"{row['n']:g}"}
    if row["reason"]:
        text = f"not fitted: {row['reason']}"
        return shown | {"d": "", "exponent of d": text, "of the bound": "",
                        "of Table 1": ""}  # fmt: skip
    return shown | {
        "d": f"{row['from']:g} to {row['to']:g}",
        "exponent of d": _bracketed(row),
        "of the bound": f"{row['bound_exponent']:.2f}",
        "of Table 1": f"{row['table1_exponent']:.2f}",
    }


def starts(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """From which n on a method has learnt something."""
    table = together(config, product)
    rows = []
    for keys, group in table.groupby([*KEYS, "d"], sort=False):
        means = group.groupby("n")["share"].mean()
        row = dict(zip([*KEYS, "d"], keys, strict=True))
        rows.append(row | start(means) | {"largest": means.index.max()})
    data = pd.DataFrame(rows).sort_values([*KEYS, "d"], ignore_index=True)
    lines = []
    for keys, group in data.groupby(KEYS, sort=False):
        line = _named(dict(zip(KEYS, keys, strict=True)))
        for row in group.to_dict("records"):
            line[f"d = {row['d']:g}"] = _start_text(row)
        lines.append(line)
    return Table(data, pd.DataFrame(lines))


def _start_text(row: dict[str, Any]) -> str:
    if not pd.isna(row["starts"]):
        return number(row["starts"], 2)
    text = f"> {number(row['largest'], 2)}"
    if not pd.isna(row["extrapolated"]):
        text += f" ({number(row['extrapolated'], 2)})"
    return text


def noise(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Published and strict noise, and what the published one really costs."""
    from dperm.papers.dpsco.noise_costs import costs  # compiles the solvers

    sizes = [1000] if config.scale.problems == "offline" else [1000, 10**5]
    rows = [
        row
        for n in sizes
        for epsilon in (1.0, 8.0)
        for row in costs(n, epsilon, config.seed)
    ]
    data = pd.DataFrame(rows)
    shown = readable(data)
    shown["algorithm"] = [LABELS[name] for name in data["algorithm"]]
    shown["p"] = [norm(p) for p in data["p"]]
    return Table(data, shown)


def peers(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Seconds, their exponent and the excess risk, method by method."""
    table = together(config, product)
    rows = []
    for (solver, epsilon, n), group in table.groupby(["method", "epsilon", "n"]):
        low, high = interval(group["share"].to_numpy())
        power, *ends = of_time(table[table["method"] == solver])
        rows.append(
            {"algorithm": LABELS[solver], "p": group["p"].iloc[0], "epsilon": epsilon,
             "n": n, "seconds": group["seconds"].median(),
             "exponent": power, "exponent_low": ends[0], "exponent_high": ends[1],
             "share": group["share"].mean(), "ci_low": low, "ci_high": high}
        )  # fmt: skip
    data = pd.DataFrame(rows)
    shown = data.drop(columns=["exponent_low", "exponent_high"])
    shown = _worded(shown, "seconds", "share", "ci_low", "ci_high")
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
        for beta, found, low, high in tail(values, (0.1, 0.01, 0.001)):
            rows.append(
                {"algorithm": LABELS[solver], "p": p, "epsilon": epsilon,
                 "runs": len(values), "beta": beta, "median": middle,
                 "quantile": found, "ci_low": low, "ci_high": high,
                 "over_median": found / middle}
            )  # fmt: skip
    data = pd.DataFrame(rows)
    columns = ("beta", "median", "quantile", "ci_low", "ci_high", "over_median")
    return Table(data, _worded(data, *columns))


def _worded(data: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Some columns in words, the others, such as p, with as few digits as they have."""
    return data.assign(**readable(data[list(columns)]))


def real(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Test loss and errors of every method and target."""
    table = results.load_sweep(config, product.sweeps[0])
    rows = []
    for name, part in table.groupby("problem", sort=False):
        if (part["status"] == "unavailable").any():
            rows.append({"problem": name, "algorithm": "not available"})
            continue
        for (solver, p, epsilon, kind), group in part.groupby(KEYS):
            low, high = interval(group["excess"].to_numpy())
            rows.append(
                {"problem": name, "algorithm": LABELS[solver], "p": p,
                 "epsilon": epsilon, "noise": kind, "loss": group["excess"].mean(),
                 "ci_low": low, "ci_high": high, "error": group["error"].mean(),
                 "balanced_error": group["balanced_error"].mean()}
            )  # fmt: skip
    return made_of(rows)


def corollary72(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Phased SGD with noise beside that without, on the worst instances for p > 2.

    ``condition`` is 1 where d log(1/delta) / epsilon^2 <= n, ``shape`` the optimal
    risk's d^(1/2 - 1/p) / sqrt(n), and ``start`` that of w = 0.
    """
    table = instanced(config, product)
    table = table[(table["method"] == "phased_sgd") & (table["p"] > 2)]
    keys, rows = ["p", "d", "n"], []
    free = table[table["calibration"] == "none"].groupby(keys)["excess"].mean()
    noisy = table[table["calibration"] != "none"]
    for key, group in noisy.groupby([*keys, "epsilon", "calibration"]):
        p, d, n, epsilon, _ = key
        low, high = interval(group["excess"].to_numpy())
        inside = d * math.log(n**2) / epsilon**2 <= n
        rows.append(
            dict(zip([*keys, "epsilon", "noise"], key, strict=True))
            | {"condition": float(inside), "mean": group["excess"].mean(),
               "ci_low": low, "ci_high": high, "without_noise": free[p, d, n],
               "shape": d ** (0.5 - (0 if math.isinf(p) else 1 / p)) / math.sqrt(n),
               "start": group["initial"].iloc[0]}
        )  # fmt: skip
    data = pd.DataFrame(rows)
    columns = ("mean", "ci_low", "ci_high", "without_noise", "shape", "start")
    return Table(data, _worded(data, *columns))


def corollary72_rates(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Exponents of n where Corollary 7.2 applies, beside the optimal one, -1/2."""
    table = instanced(config, product)
    table = table[(table["method"] == "phased_sgd") & (table["p"] > 2)]
    needed = table["d"] * np.log(table["n"] ** 2) / table["epsilon"] ** 2
    rows = [
        dict(zip([*KEYS, "d"], keys, strict=True))
        | of_risk(group, "n")
        | {"bound_exponent": -0.5}
        for keys, group in table[needed <= table["n"]].groupby([*KEYS, "d"])
    ]
    return made_of(rows)


def unlearnable(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Excess over that of w = 0 on instances as large as Theorem 5.4 hides.

    ``detectable`` is 1 where the bias is five times what so many records can just tell.
    """
    table = together(config, product)
    rows = []
    keys = ["p", "d", "n", "epsilon", "constant", "calibration"]
    for key, group in table.groupby(keys):
        low, high = interval(group["share"].to_numpy())
        bias = group["bias"].iloc[0]
        rows.append(
            dict(zip(keys, key, strict=True))
            | {"bias": bias, "detectable": float(bias * math.sqrt(key[2]) >= 5),
               "share": group["share"].mean(), "ci_low": low, "ci_high": high,
               "over_bound": group["excess"].mean() / group["bound"].iloc[0]}
        )  # fmt: skip
    data = pd.DataFrame(rows)
    columns = ("bias", "share", "ci_low", "ci_high", "over_bound")
    return Table(data, _worded(data, *columns))


def estimator(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Of all runs the largest error over the lemma's bound, at the errors' own scale.

    ``start`` is what an estimate of 0 has at least; the bound says something where it
    is below that, ``start_over_bound`` above 1.
    """
    table = results.load_sweep(config, product.sweeps[0])
    table = table.assign(ratio=table["error"] / table["bound"])
    table = table.assign(start_over_bound=table["start"] / table["bound"])
    keys, rows = ["instance", "p", "n", "epsilon"], []
    for key, group in table.groupby(["method", *keys]):
        worst = group.loc[group["ratio"].idxmax()]
        least = group["start_over_bound"].min()
        rows.append(
            {"algorithm": LABELS[key[0]], **dict(zip(keys, key[1:], strict=True)),
             "runs": len(group), "error": worst["error"], "bound": worst["bound"],
             "start": least * worst["bound"], "start_over_bound": least}
        )  # fmt: skip
    data = pd.DataFrame(rows)
    columns = ("error", "bound", "start", "start_over_bound")
    return Table(data, _worded(data, *columns))


def nonsmooth(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Exponents of n for losses that bend, beside those of Proposition 7.3's bound."""
    table = instanced(config, product)
    rows = []
    for keys, group in table.groupby(["loss", "p", "epsilon", "calibration", "d"]):
        row = dict(zip(["loss", "p", "epsilon", "calibration", "d"], keys, strict=True))
        found = row | of_risk(group, "n")
        as_phased = found | {"method": "phased_sgd"}
        rows.append(
            found
            | {
                "bound_exponent": local_exponent(as_phased, "n"),
                "worst_bias": _bias(group),
            }
        )
    return made_of(rows)


def nonsmooth_time(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Seconds of a run on a loss that bends, and their exponent of n."""
    table = results.load_sweep(config, product.sweeps[0])
    rows = []
    for loss, part in table.groupby("loss"):
        power, low, high = of_time(part)
        rows += [
            {"loss": loss, "n": n, "seconds": group["seconds"].median(),
             "exponent": power, "exponent_low": low, "exponent_high": high}
            for n, group in part.groupby("n")
        ]  # fmt: skip
    return made_of(rows)
