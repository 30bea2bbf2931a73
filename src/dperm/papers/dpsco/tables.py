"""Tables of Bassily, Guzmán and Nandi 2021 (DP-SCO)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import results
from dperm.core.experiment.schema import Config, Product
from dperm.papers.dpsco import rates
from dperm.papers.dpsco.rates import EASY, KEYS, LABELS, instanced, together
from dperm.present.tables import (
    Table,
    groups,
    made_of,
    number,
    readable,
    where,
    with_interval,
)

SHARE = ("share", "ci_low", "ci_high")
POWER = ("exponent", "exponent_low", "exponent_high")


def exponents(config: Config, product: Product, problems: list[str]) -> Table:
    """Table 1 with measured exponents of n, for every instance and dimension."""
    rows = []
    for at, group in groups(instanced(config, product), [*KEYS, "instance", "d"]):
        instance, method = at.pop("instance"), at["method"]
        names = ("statistical_exponent", "privacy_exponent")
        row = at | dict(zip(names, rates.TERMS[method], strict=True))
        row |= {"bound": rates.RATES[method]} | rates.of_risk(group, "n")
        row |= {"bound_exponent": rates.bound_exponent(row, "n"), "instance": instance}
        rows.append(row | {"worst_bias": _bias(group)})
    data = _sorted(rows, "d")
    lines = []
    for at, group in groups(data, [*KEYS, "instance"], sort=True):
        first = group.iloc[0]
        line = _named(at) | {"instance": at["instance"], "Table 1": first["bound"]}
        terms = first[["statistical_exponent", "privacy_exponent"]]
        line["exponents"] = ", ".join(f"{term:g}" for term in terms)
        for row in group.to_dict("records"):
            line[f"d = {row['d']:g}"] = _interval(row)
        lines.append(line)
    return Table(data, pd.DataFrame(lines))


def _bias(group: pd.DataFrame) -> float:
    """The worst bias at the largest size; NaN for an instance without a class."""
    if "bias" not in group:
        return math.nan
    return float(group.loc[group["n"] == group["n"].max(), "bias"].iloc[0])


def _sorted(rows: list[dict[str, Any]], *last: str) -> pd.DataFrame:
    """Rows by method and target, those of the easy instance first."""
    data = pd.DataFrame(rows)
    order = data.assign(_hard=data["instance"] != EASY)
    order = order.sort_values(["_hard", *KEYS, *last], ignore_index=True)
    return order.drop(columns="_hard")


def _named(at: dict[str, Any]) -> dict[str, str]:
    private = not math.isinf(at["epsilon"])
    return {
        "algorithm": LABELS[at["method"]],
        "p": rates.norm(at["p"]),
        "epsilon": f"{at['epsilon']:g}" if private else "no noise",
        "noise": at["calibration"] if private else "",
    }


def _interval(row: dict[str, Any]) -> str:
    if row["reason"]:
        return f"not fitted: {row['reason']}"
    proved = row.get("bound_exponent")
    bound = "" if proved is None or pd.isna(proved) else f", bound {proved:.2f},"
    return f"{_bracketed(row)}{bound} from n = {number(row['from'])}"


def _bracketed(row: dict[str, Any]) -> str:
    """An exponent and its interval, if there is one."""
    if pd.isna(row["ci_low"]):
        return f"{row['exponent']:.2f} (one run: no interval)"
    return f"{row['exponent']:.2f} [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"


def dimension_exponents(config: Config, product: Product, problems: list[str]) -> Table:
    """Exponents of d, at the largest n where three dimensions have learnt."""
    rows, lines = [], []
    for at, group in groups(instanced(config, product), [*KEYS, "instance"]):
        instance = at.pop("instance")
        # the initial risk of the hard instances depends on d
        row = at | rates.of_dimension(group, "share" if instance == EASY else "excess")
        row |= {"bound_exponent": rates.bound_exponent(row, "d"), "instance": instance}
        rows.append(
            row | {"table1_exponent": rates.bound_exponent(row, "d", printed=True)}
        )
    data = _sorted(rows)
    for row in data.to_dict("records"):
        line = _named(row) | {"instance": row["instance"], "n": f"{row['n']:g}"}
        cells = ["", f"not fitted: {row['reason']}", "", ""]
        if not row["reason"]:
            cells = [f"{row['from']:g} to {row['to']:g}", _bracketed(row)]
            ends = ("bound_exponent", "table1_exponent")
            cells += [f"{row[key]:.2f}" for key in ends]
        names = ("d", "exponent of d", "of the bound", "of Table 1")
        line |= dict(zip(names, cells, strict=True))
        lines.append(line | {"Table 1": rates.growth(row["method"], row["p"])})
    return Table(data, pd.DataFrame(lines))


def noise(config: Config, product: Product, problems: list[str]) -> Table:
    """Published and strict noise, and the true cost of the published one."""
    from dperm.papers.dpsco.proofs import costs  # compiles the solvers

    sizes = [1000] if config.scale.problems == "offline" else [1000, 10**5]
    targets = [(n, epsilon) for n in sizes for epsilon in (1.0, 8.0)]
    data = pd.DataFrame([row for at in targets for row in costs(*at)])
    shown = readable(data)
    shown["algorithm"] = [LABELS[name] for name in data["algorithm"]]
    shown["p"] = [rates.norm(p) for p in data["p"]]
    return Table(data, shown)


def sampler(config: Config, product: Product, problems: list[str]) -> Table:
    """Tests of Remark 1's sampler against the laws that it must have."""
    from dperm.papers.dpsco.proofs import sampled

    return made_of(list(sampled(config.seed)))


def peers(config: Config, product: Product, problems: list[str]) -> Table:
    """Seconds, their exponent and the excess risk of every method."""
    table = together(config, product)
    rows, texts = [], []
    for at, group in groups(table, ["method", "epsilon", "n"], sort=True):
        power = rates.of_time(where(table, method=at["method"]))
        row = {"algorithm": LABELS[at.pop("method")], "p": group["p"].iloc[0], **at}
        row["seconds"] = group["seconds"].median()
        row |= dict(zip(POWER, power, strict=True))
        share = with_interval(group["share"], *SHARE, interval=rates.interval)
        rows.append(row | share)
        of_power = ("exponent", "ci_low", "ci_high")
        texts.append(_bracketed(dict(zip(of_power, power, strict=True))))
    data = pd.DataFrame(rows)
    shown = data.drop(columns=["exponent_low", "exponent_high"])
    shown = _worded(shown, "seconds", *SHARE)
    return Table(data, shown.assign(exponent=texts))


def _table(rows: list[dict[str, Any]], *columns: str) -> Table:
    data = pd.DataFrame(rows)
    return Table(data, _worded(data, *columns))


def _worded(data: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """These columns as text; the others, such as p, keep their few digits."""
    return data.assign(**readable(data[list(columns)]))


def corollary72_rates(config: Config, product: Product, problems: list[str]) -> Table:
    """Exponents of n where Corollary 7.2 applies, with the optimal one, -1/2."""
    table = instanced(config, product)
    table = table[(table["method"] == "phased_sgd") & (table["p"] > 2)]
    n = table["n"]  # delta is 1 / n^2
    inside = table[table["d"] * np.log(n**2) / table["epsilon"] ** 2 <= n]
    return made_of(
        [
            at | rates.of_risk(group, "n") | {"bound_exponent": -0.5}
            for at, group in groups(inside, [*KEYS, "d"], sort=True)
        ]
    )


def empirical(config: Config, product: Product, problems: list[str]) -> Table:
    """Theorem A.2: exponents of the empirical excess, and those of the bound.

    Each size has the c with the largest mean excess, and ``over_bound`` is the least
    ratio of excess to bound there. At c = 1, ``share`` is the least excess over that of
    w = 0, and ``share_none`` the largest without noise.
    """
    table, rows = together(config, product), []
    table = table.assign(over=table["excess"] / table["bound"], gap=table["p"] - 1)
    shares = (
        where(table, constant=1.0)
        .set_index(["method", "calibration"])["share"]
        .sort_index()
    )
    noisy = where(table, calibration=product.calibration)
    keys = ["method", "p", "d", "n", "epsilon"]
    means = noisy.groupby([*keys, "constant"])["excess"].mean()
    chosen = means.loc[means.groupby(level=keys).idxmax()].reset_index()
    kept = noisy.merge(chosen[[*keys, "constant"]])
    for axis in ("n", "d", "epsilon", "gap"):
        held = ["method"] if axis == "gap" else ["method", "p"]
        for at, group in groups(kept, held, sort=True):
            private = shares[at["method"], product.calibration]
            row = {"method": at["method"], "axis": axis, "p": at.get("p", "all")}
            row |= with_interval(_slopes(group, axis, "excess"), *POWER)
            row |= {"bound_exponent": _slopes(group, axis, "bound").mean()}
            row |= {"over_bound": group["over"].min(), "share": private.min()}
            rows.append(row | {"share_none": shares[at["method"], "none"].max()})
    return made_of(rows)


def _slopes(group: pd.DataFrame, axis: str, column: str) -> np.ndarray:
    """Exponent of each replicate, by geometric means over all other axes."""
    logs = np.log(group[column]).groupby([group["replicate"], group[axis]]).mean()
    return rates.by_replicate(np.exp(logs).reset_index(), axis, column)


def estimator(config: Config, product: Product, problems: list[str]) -> Table:
    """Error and bound of the run with the largest ratio of error to the lemma's bound.

    ``start`` is the least error of an estimate of 0. The bound is informative if it is
    smaller, that is if ``start_over_bound`` is above 1.
    """
    table, rows = results.load_sweep(config, product.sweeps[0]), []
    keys = ["method", "instance", "p", "n", "epsilon"]
    for at, group in groups(table, keys, sort=True):
        largest = (group["error"] / group["bound"]).idxmax()
        error, bound = group.loc[largest, ["error", "bound"]]
        least = (group["start"] / group["bound"]).min()
        row = {"algorithm": LABELS[at.pop("method")], **at, "runs": len(group)}
        row |= {"error": error, "bound": bound, "start": least * bound}
        rows.append(row | {"start_over_bound": least})
    return _table(rows, "error", "bound", "start", "start_over_bound")
