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


def starts(config: Config, product: Product, problems: list[str]) -> Table:
    """The n from which a method has learnt something."""
    rows, lines = [], []
    for at, group in groups(together(config, product), [*KEYS, "d"]):
        means = group.groupby("n")["share"].mean()
        rows.append(at | rates.start(means) | {"largest": means.index.max()})
    data = pd.DataFrame(rows).sort_values([*KEYS, "d"], ignore_index=True)
    for at, group in groups(data, KEYS):
        line = _named(at)
        for row in group.to_dict("records"):
            text = f"> {number(row['largest'], 2)}"
            if not pd.isna(row["starts"]):
                text = number(row["starts"], 2)
            elif not pd.isna(row["extrapolated"]):
                text += f" ({number(row['extrapolated'], 2)})"
            line[f"d = {row['d']:g}"] = text
        lines.append(line)
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
        rows.append(row | _share(group))
        of_power = ("exponent", "ci_low", "ci_high")
        texts.append(_bracketed(dict(zip(of_power, power, strict=True))))
    data = pd.DataFrame(rows)
    shown = data.drop(columns=["exponent_low", "exponent_high"])
    shown = _worded(shown, "seconds", "share", "ci_low", "ci_high")
    return Table(data, shown.assign(exponent=texts))


def _share(group: pd.DataFrame, column: str = "share", name: str = "") -> dict:
    """The mean of a column and its interval, NaN for a single run."""
    names = (name or column, "ci_low", "ci_high")
    return with_interval(group[column], *names, interval=rates.interval)


def tails(config: Config, product: Product, problems: list[str]) -> Table:
    """Quantiles for beta = 0.1, 0.01 and 0.001, over the median, if runs suffice."""
    rows, names = [], ("beta", "median", "quantile", "ci_low", "ci_high", "over_median")
    for at, group in groups(together(config, product), KEYS[:3], sort=True):
        values = group["share"].to_numpy()
        middle = float(np.median(values))
        known = {"algorithm": LABELS[at.pop("method")], **at, "runs": len(values)}
        for beta, *found in rates.tail(values, (0.1, 0.01, 0.001)):
            cells = (beta, middle, *found, found[0] / middle)
            rows.append(known | dict(zip(names, cells, strict=True)))
    return _table(rows, *names)


def _table(rows: list[dict[str, Any]], *columns: str) -> Table:
    data = pd.DataFrame(rows)
    return Table(data, _worded(data, *columns))


def _worded(data: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """These columns as text; the others, such as p, keep their few digits."""
    return data.assign(**readable(data[list(columns)]))


def real(config: Config, product: Product, problems: list[str]) -> Table:
    """Test loss and errors of every method and target."""
    rows = []
    table = results.load_sweep(config, product.sweeps[0])
    for at, part in groups(table, ["problem"]):
        if (part["status"] == "unavailable").any():
            rows.append(at | {"algorithm": "not available"})
            continue
        for known, group in groups(part, KEYS, sort=True):
            row = at | {"algorithm": LABELS[known.pop("method")], **known}
            row["noise"] = row.pop("calibration")
            errors = {key: group[key].mean() for key in ("error", "balanced_error")}
            rows.append(row | _share(group, "excess", "loss") | errors)
    return made_of(rows)


def corollary72(config: Config, product: Product, problems: list[str]) -> Table:
    """Phased SGD with and without noise, on the worst instances for p > 2.

    ``condition`` is 1 where d log(1/delta) / epsilon^2 <= n, ``shape`` the optimal
    risk's d^(1/2 - 1/p) / sqrt(n), and ``start`` the excess of w = 0.
    """
    table, rows = _of_corollary72(config, product), []
    keys = ["p", "d", "n"]
    free = where(table, calibration="none").groupby(keys)["excess"].mean()
    noisy = table[table["calibration"] != "none"]
    for at, group in groups(noisy, [*keys, "epsilon", "calibration"], sort=True):
        p, d, n, epsilon, kind = at.values()
        row = {"p": p, "d": d, "n": n, "epsilon": epsilon, "noise": kind}
        row["condition"] = float(_needed(d, n, epsilon) <= n)
        row |= _share(group, "excess", "mean") | {"without_noise": free[p, d, n]}
        row["shape"] = d ** (0.5 - 1 / p) / math.sqrt(n)
        rows.append(row | {"start": group["initial"].iloc[0]})
    columns = ("mean", "ci_low", "ci_high", "without_noise", "shape", "start")
    return _table(rows, *columns)


def _of_corollary72(config: Config, product: Product) -> pd.DataFrame:
    table = instanced(config, product)
    return table[(table["method"] == "phased_sgd") & (table["p"] > 2)]


def _needed(d: Any, n: Any, epsilon: Any) -> Any:
    """Records from which on Corollary 7.2 applies, if delta is 1 / n^2."""
    return d * np.log(n**2) / epsilon**2


def corollary72_rates(config: Config, product: Product, problems: list[str]) -> Table:
    """Exponents of n where Corollary 7.2 applies, with the optimal one, -1/2."""
    table = _of_corollary72(config, product)
    inside = table[_needed(table["d"], table["n"], table["epsilon"]) <= table["n"]]
    return made_of(
        [
            at | rates.of_risk(group, "n") | {"bound_exponent": -0.5}
            for at, group in groups(inside, [*KEYS, "d"], sort=True)
        ]
    )


def unlearnable(config: Config, product: Product, problems: list[str]) -> Table:
    """Excess over that of w = 0 on instances with biases that Theorem 5.4 hides.

    ``detectable`` is 1 if the bias is at least five times 1/sqrt(n), the least that n
    records can detect.
    """
    rows = []
    keys = ["p", "d", "n", "epsilon", "constant", "calibration"]
    for at, group in groups(together(config, product), keys, sort=True):
        bias, bound = group[["bias", "bound"]].iloc[0]
        row = at | {"bias": bias, "detectable": float(bias * math.sqrt(at["n"]) >= 5)}
        rows.append(
            row | _share(group) | {"over_bound": group["excess"].mean() / bound}
        )
    return _table(rows, "bias", "share", "ci_low", "ci_high", "over_bound")


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


def nonsmooth(config: Config, product: Product, problems: list[str]) -> Table:
    """Exponents of n for losses that bend, and those of Proposition 7.3's bound."""
    rows, keys = [], ["loss", "p", "epsilon", "calibration", "d"]
    for at, group in groups(instanced(config, product), keys, sort=True):
        row = at | rates.of_risk(group, "n")
        proved = rates.bound_exponent(row | {"method": "phased_sgd"}, "n")
        rows.append(row | {"bound_exponent": proved, "worst_bias": _bias(group)})
    return made_of(rows)


def nonsmooth_time(config: Config, product: Product, problems: list[str]) -> Table:
    """Seconds of a run on a loss that bends, and their exponent of n."""
    rows = []
    table = results.load_sweep(config, product.sweeps[0])
    for at, group in groups(table, ["loss", "n"], sort=True):
        power = dict(
            zip(POWER, rates.of_time(where(table, loss=at["loss"])), strict=True)
        )
        rows.append(at | {"seconds": group["seconds"].median()} | power)
    return made_of(rows)
