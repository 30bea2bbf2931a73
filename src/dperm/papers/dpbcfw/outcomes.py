"""Results of the sweeps for figures and tables, without importing solvers.

The statements of the figures of Lou and Cheung 2020 are judged under each reading. A
sentence is a list of margins, which are negative where it holds, with one value per
draw of the data. Losses are final ones over f(0). That something was learnt is a margin
as well: the best private curve must fall by ``learnt``. A figure holds under a reading
if the 95 % intervals of all its mean margins lie below 0, and fails if one lies above.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import results
from dperm.core.experiment.schema import Config
from dperm.present.intervals import power, student
from dperm.present.tables import Rows, groups, where

OBJECTIVES = ("mean", "sum")  # equation 4
BUDGETS = ("total", "iteration")  # epsilon of the run, or of each iteration


def read(config: Config, name: str) -> pd.DataFrame:
    """A sweep's rows, with ``relative``, the loss over f(0), where there is a loss."""
    table = results.load_sweep(config, name)
    if "loss" in table:
        table = table.assign(relative=table["loss"] / table["start"])
    return table


def last(table: pd.DataFrame) -> pd.DataFrame:
    """The last row of every run."""
    return table[table["iteration"] == table["iterations"]]


def central(noise: str) -> str:
    """DP-FW's noise for that of DP-BCFW: in its formula, noise and scores agree."""
    return "strict" if noise == "strict" else "scaled"


def with_interval(name: str, values: np.ndarray) -> dict[str, float]:
    """Mean of the values as ``name``, and its 95 % interval as _low and _high."""
    low, high = student(values)
    return {name: float(values.mean()), f"{name}_low": low, f"{name}_high": high}


def exponent(x: pd.Series, y: pd.Series) -> float:
    """Exponent of y in x; NaN if a y is not positive."""
    return power(x.to_numpy(), y.to_numpy())[0] if (y > 0).all() else math.nan


# --- excess risk against n: Figure 4 and Theorem 4 ------------------------------------

THEORY = -2 / 3  # exponent of n, Theorem 4


def excess(config: Config, name: str) -> pd.DataFrame:
    """Last rows of a sweep, with ``excess``, the loss less that of x_true."""
    table = last(read(config, name))
    return table.assign(excess=table["loss"] - table["truth"])


def slope(runs: pd.DataFrame) -> tuple[float, float, float]:
    """Exponent of the excess in n and its 95 % interval; NaN if an excess is <= 0."""
    if len(runs) < 3 or not (runs["excess"] > 0).all():
        return math.nan, math.nan, math.nan
    return power(runs["n"].to_numpy(), runs["excess"].to_numpy())


def theory_line(sizes: np.ndarray, runs: pd.DataFrame) -> np.ndarray:
    """Theorem 4's line at ``sizes`` (k,), through the mean excess at the least n."""
    height = runs.groupby("n")["excess"].mean().iloc[0]
    return height * (sizes / sizes[0]) ** THEORY


# --- bytes that runs send up, with and without the savings ----------------------------

NUMBER = 8  # bytes
HEAD = 16  # bytes of a message besides its numbers: their count and a signed index


def share_of_raw(table: pd.DataFrame) -> float:
    """Bytes of the tuned runs, over n numbers per node and iteration."""
    tuned = where(last(table), rule="tuned")
    raw = float(NUMBER) * tuned["n"] * tuned["nodes"] * tuned["iterations"]
    return float((tuned["bytes_up"] / raw).mean())


def bytes_by_records(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Rows with ``bytes_up`` of whole runs, measured and by the printed counts."""
    ends = last(table)
    return {
        "measured, T of Theorem 4": where(ends, rule="theorem 4"),
        "measured, T tuned": where(ends, rule="tuned"),
        "Corollary 1": ends.assign(bytes_up=NUMBER * ends["corollary"]),
        "one-shot sketch": ends.assign(bytes_up=ends["one_shot"]),
    }


def bytes_so_far(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Bytes so far of the tuned runs at the largest n, measured and with resending.

    A feature is never sent twice; with resending each iteration costs K features.
    """
    runs = where(table, rule="tuned", n=table["n"].max())
    runs = runs[runs["iteration"] > 0]
    K, m = runs["nodes"].iloc[0], runs["sketch"].iloc[0]
    return runs, runs.assign(bytes_up=runs["iteration"] * K * (HEAD + NUMBER * m))


# --- Theorems 1 and 2, and the sketch -------------------------------------------------

RELEASES = ("gradient", "oracle")  # those that may have errors by Assumption 2
RUN = ["objective", "per", "epsilon", "length"]  # keys of the runs of Theorem 2
QUANTITIES = {  # of the sketch: axis of measurement, exponent in the paper
    "distortion": ("m", -0.5),
    "sketched": ("n", -1.0),
    "sketched_noise": ("n", -1.0),
    "plain_noise": ("n", -0.5),
}


def bound(t: int, p_min: float, start: float, curvature: float) -> float:
    """Theorem 1: 2 (h_0 + C / p_min) / (p_min t + 2); h_0 is at most f(0)."""
    return 2 * (start + curvature / p_min) / (p_min * t + 2)


def printed_column(
    p_min: float, t: int, d: int, start: float, curvature: float
) -> float:
    """Printed column of Table III, (2 d) (s h_0 + C) / (s^2 t + 2 d s), s = p_min d.

    Theorem 1 with the same p_min has d C in place of C. The row of p_min = 1 is that of
    the theorem.
    """
    if p_min == 1.0:
        return bound(t, p_min, start, curvature)
    s = p_min * d
    return 2 * d * (s * start + curvature) / (s * s * t + 2 * d * s)


def gap_exponents(swept: pd.DataFrame) -> pd.DataFrame:
    """Exponent of the gap in t over the last decade, one row per set and sampling.

    ``bound_exponent`` is that of Theorem 1's bound there, the same for every curvature;
    ``left`` is the final gap over that of x = 0.
    """
    rows = []
    for row, part in groups(swept, ["panel", "sampling"]):
        runs = [run for _, run in part.groupby("replicate")]
        fits = np.array([exponent(run["iteration"], run["gap"]) for run in runs])
        ends = np.array([run["gap"].iloc[-1] / run["start"].iloc[-1] for run in runs])
        t, p_min = runs[0]["iteration"].to_numpy(), float(part["p_min"].iloc[0])
        bounds = np.array([bound(int(each), p_min, 1.0, 0.0) for each in t])
        row |= {"p_min": p_min}
        row |= with_interval("exponent", fits) | {"bound_exponent": power(t, bounds)[0]}
        rows.append(row | {"left": float(ends.mean()), "steps": int(t[-1])})
    return pd.DataFrame(rows)


def approximation_summary(swept: pd.DataFrame) -> pd.DataFrame:
    """Final errors, those allowed at rho = 1, and Theorem 2's bound.

    ``exponent`` is that of the error in t over the second half of the run, and
    ``step_exponent`` that of gamma_t, which Assumption 2 with constant rho requires;
    none is fitted to an error of 0. ``rho`` is the largest of the run. The bound is
    for p_min = 1, with each node's part as one block.
    """
    keys, tables = [*RUN, "release"], []
    for _, of_run in swept.groupby(RUN, sort=False):
        rows = [at | _approximation(part) for at, part in groups(of_run, keys)]
        rho_g, rho_l = (
            next(row["rho"] for row in rows if row["release"] == name)
            for name in RELEASES
        )
        at = rows[0]
        rho = (at["width"] + at["nodes"]) * rho_g + at["nodes"] * rho_l
        limit = bound(at["steps"], 1.0, at["start"], (1 + rho) * at["curvature"])
        tables.append(pd.DataFrame(rows).assign(bound=limit))
    return pd.concat(tables, ignore_index=True)


def _approximation(part: pd.DataFrame) -> dict[str, Any]:
    """Summary of one release over runs that differ only in their draws."""
    steps = int(part["iteration"].max())
    end, late = part[part["iteration"] == steps], part[part["iteration"] > steps / 2]
    ratio = (part["error"] / part["allowed"]).groupby(part["replicate"]).max()
    runs = [run for _, run in late.groupby("replicate")]
    fits = np.array([exponent(run["iteration"], run["error"]) for run in runs])
    step = exponent(runs[0]["iteration"], runs[0]["allowed"])
    means = {key: float(end[key].mean()) for key in ("gap", "start", "curvature")}
    return {
        **with_interval("error", end["error"].to_numpy()),
        "allowed": float(end["allowed"].mean()),
        "rho": float(np.mean(ratio.to_numpy())),
        **with_interval("exponent", fits),
        "step_exponent": step,
        **means,
        "width": float(end["width"].mean()),
        "nodes": int(end["nodes"].iloc[0]),
        "steps": steps,
    }


def sketch_exponents(swept: pd.DataFrame) -> pd.DataFrame:
    """Exponents in m at the largest n, and in n at Table IV's m, with intervals.

    ``ratio`` is the error at the largest size over that without a sketch. Means are
    over draws of the data.
    """
    rows = []
    largest = swept[swept["n"] == swept["n"].max()]
    for quantity, (along, paper) in QUANTITIES.items():
        part = largest[~largest["table"]] if along == "m" else swept[swept["table"]]
        fits = np.array(
            [
                power(run[along].to_numpy(), run[quantity].to_numpy())[0]
                for _, run in part.groupby("replicate")
            ]
        )
        end = part[part[along] == part[along].max()]
        ratios = (end[quantity] / end["plain_noise"]).to_numpy()
        row = {"quantity": quantity, "along": along, "paper": paper}
        rows.append(
            row | with_interval("exponent", fits) | with_interval("ratio", ratios)
        )
    return pd.DataFrame(rows)


# --- statements of the figures, judged under each reading -----------------------------

LEARNT = 0.25  # of f(0): the least drop that counts as learning
FLAT = 0.1  # of the drop: "almost unaffected"
REASONABLE = 0.25  # of FW's drop: "within a reasonable range"
RATE = -0.47  # exponent of the excess in n; Theorem 4's is -2/3, with logarithms
READING = ("ball", "objective", "per", "iterations")
NODES = (2, 4, 8, 16)
PLAIN: dict[str, Any] = {"epsilon": 1.0, "split": 0.5, "sketch": 80, "nodes": 4}
FAMILIES: dict[str, tuple[str, tuple[float, ...]]] = {  # what Figures 6 to 8 vary
    "6": ("epsilon", (0.001, 0.01, 0.1, 1.0, 10.0)),
    "7": ("split", (0.1, 0.3, 0.5, 0.7, 0.9)),
    "8": ("sketch", (8, 40, 80, 400, 800)),
}
SENTENCES = {  # in our words
    "1": "the smaller the smallest chance of a coordinate, the higher the loss",
    "2": "more nodes end lower, without noise",
    "3": "DP-BCFW ends above FW and below DP-FW, DP-FW above FW",
    "4": "the excess risk falls with n, and with the number of nodes",
    "4, rate": "the excess risk falls about like n^(-2/3) for every K",
    "5": "more nodes end lower",
    "6": "epsilon from 0.001 to 10 hardly matters",
    "7": "the split of the budget hardly matters",
    "8": "the length of a sketched feature hardly matters, down to 1 %",
    "9": "more nodes end lower on real data",
    "9, range": "DP-BCFW with K = 16 ends within a reasonable range of FW",
}
STATED = {  # p_min in the step: the order of curves that Figure 1 should then show
    "as printed": ("elementary", "tau-nice", "(K, tau), published"),
    "right": ("elementary", "(K, tau), corrected", "tau-nice"),
}
COLUMNS = [
    *("figure", "reading", "data", "holds"),
    *("drop", "without_learning", "worst", "margin"),
]
NAMED = 4  # readings that a sentence names
DP_FW = {False: "as DP-BCFW's", True: "of its own paper"}  # the noise of DP-FW


@dataclass(frozen=True)
class Sentence:
    """Margins of a sentence, and the drop of its best private curve."""

    margins: dict[str, np.ndarray]  #: by condition
    #: shape (replicates,); 1 less the loss over f(0) of the lowest curve
    drop: np.ndarray

    def row(self, learnt: float = LEARNT) -> dict[str, Any]:
        """Whether it holds, its drop and its worst margin, with intervals."""
        every = {f"falls by {learnt:g} f(0)": learnt - self.drop, **self.margins}
        means = {key: with_interval("margin", each) for key, each in every.items()}
        worst = max(
            means, key=lambda key: (means[key]["margin_low"] > 0, means[key]["margin"])
        )
        draws, others = len(self.drop), [means[key] for key in self.margins]
        return {
            "holds": _holds(means.values(), draws),
            **with_interval("drop", self.drop),
            "without_learning": _holds(others, draws),
            "worst": worst,
            **means[worst],
            "replicates": draws,
        }


def _holds(margins: Iterable[dict[str, float]], draws: int) -> str:
    """``yes``, ``no`` or ``undecided``, from the intervals of the margins.

    A single draw has no interval, and decides nothing. Identical draws can refute a
    sentence, but cannot confirm it.
    """
    ends = [(each["margin_low"], each["margin_high"]) for each in margins]
    if draws > 1 and any(low > 0 for low, _ in ends):
        return "no"
    return "yes" if all(low < high < 0 for low, high in ends) else "undecided"


# --- sentences of the figures ---------------------------------------------------------


def ends(runs: pd.DataFrame, **keys: Any) -> np.ndarray:
    """Final losses over f(0) of one curve, by replicate."""
    return where(runs, **keys).sort_values("replicate")["relative"].to_numpy()


def of_nodes(runs: pd.DataFrame, method: str = "dp_bcfw") -> dict[int, np.ndarray]:
    """``ends`` by K; for Algorithm 2 all other keys are those of ``PLAIN``."""
    plain = {**PLAIN, "method": method} if method == "dp_bcfw" else {"method": method}
    return {K: ends(runs, **{**plain, "nodes": K}) for K in NODES}


def family(runs: pd.DataFrame, figure: str) -> dict[float, pd.DataFrame]:
    """The runs of Figure 6, 7 or 8, by the value that varies."""
    key, values = FAMILIES[figure]
    plain = {**PLAIN, "method": "dp_bcfw"}
    return {value: where(runs, **{**plain, key: value}) for value in values}


def _lowest(curves: Iterable[np.ndarray]) -> np.ndarray:
    """The curve that is lowest on average."""
    return min(curves, key=lambda values: values.mean())


def ordered(curves: dict[Any, np.ndarray], name: str = "K = {}") -> Sentence:
    """Each curve ends below the one before it."""
    steps = {
        f"{name.format(b)} below {name.format(a)}": curves[b] - curves[a]
        for a, b in pairwise(curves)
    }
    return Sentence(steps, 1.0 - _lowest(curves.values()))


def flat(curves: dict[Any, np.ndarray]) -> Sentence:
    """The spread between the curves is at most ``FLAT`` of the drop to the lowest."""
    drop = 1.0 - _lowest(curves.values())
    highest = max(curves.values(), key=lambda values: values.mean())
    margin = highest - (1.0 - drop) - FLAT * drop
    return Sentence({f"spread at most {FLAT:g} of the drop": margin}, drop)


def figure1(runs: pd.DataFrame, chances: str) -> Sentence:
    """The larger the p_min of the step, the lower the loss."""
    names = STATED[chances]
    curves = {name: ends(runs, sampling=name) for name in reversed(names)}
    return replace(ordered(curves, "{}"), drop=1.0 - curves[names[0]])


def figure2(runs: pd.DataFrame) -> Sentence:
    """More nodes end lower without noise, Algorithm 2 as published."""
    return ordered(of_nodes(runs, "bcfw"))


def figure3(runs: pd.DataFrame, as_itself: bool) -> Sentence:
    """DP-BCFW lies between FW and DP-FW.

    With ``as_itself``, DP-FW has the noise of its own paper.
    """
    end, alone = ends(runs, method="dp_bcfw"), ends(runs, method="fw")
    theirs = ends(runs, method="dp_fw", own=as_itself)
    margins = {
        "above FW": alone - end,
        "DP-FW above FW": alone - theirs,
        "below DP-FW": end - theirs,
    }
    return Sentence(margins, 1.0 - end)


def figure5(runs: pd.DataFrame) -> Sentence:
    """More nodes end lower."""
    return ordered(of_nodes(runs))


def figure9(runs: pd.DataFrame) -> Sentence:
    """K = 16 falls short of FW by at most ``REASONABLE`` of FW's drop."""
    alone, ours = ends(runs, method="fw"), of_nodes(runs)[max(NODES)]
    short = ours - alone - REASONABLE * (1.0 - alone)
    return Sentence({f"within {REASONABLE:g} of FW's drop": short}, 1.0 - ours)


def _excess(runs: pd.DataFrame) -> tuple[dict[str, pd.DataFrame], np.ndarray]:
    """Excess over f(x_true) by algorithm, divided by f(0), and the drop of the best K.

    Excesses have one row per replicate and one column per n; the drop is that at the
    largest n.
    """
    over = ((runs["loss"] - runs["truth"]) / runs["start"]).rename("excess")
    table = runs.assign(excess=over)
    ours = where(table, method="dp_bcfw")
    parts = {"DP-FW": where(table, method="dp_fw")}
    parts |= {f"K = {K}": where(ours, nodes=K) for K in NODES}
    curves = {
        name: part.pivot(index="replicate", columns="n", values="excess")
        for name, part in parts.items()
    }
    most = where(ours, n=runs["n"].max())
    return curves, 1.0 - _lowest(ends(most, nodes=K) for K in NODES)


def figure4(runs: pd.DataFrame) -> Sentence:
    """The excess falls with n for all, and with K at every n."""
    curves, drop = _excess(runs)
    margins: dict[str, np.ndarray] = {}
    for name, table in curves.items():
        for a, b in pairwise(table.columns):
            step = table[b].to_numpy() - table[a].to_numpy()
            margins[f"{name}: n = {b} below n = {a}"] = step
    for a, b in pairwise(NODES):
        step = curves[f"K = {b}"] - curves[f"K = {a}"]
        for n in step:
            margins[f"n = {n}: K = {b} below K = {a}"] = step[n].to_numpy()
    return Sentence(margins, drop)


def rate(runs: pd.DataFrame) -> Sentence:
    """The excess falls at least like n^``RATE`` for every K.

    Each draw has one exponent, NaN if an excess is not positive.
    """
    curves, drop = _excess(runs)
    margins = {}
    for K in NODES:
        table = curves[f"K = {K}"]
        logs = np.log(table.columns.to_numpy(float))
        apart = logs - logs.mean()
        with np.errstate(invalid="ignore", divide="ignore"):
            exponents = np.log(table.to_numpy()) @ apart / (apart @ apart)
        margins[f"K = {K}: exponent at most {RATE:g}"] = exponents - RATE
    return Sentence(margins, drop)


# --- the table of readings under which each figure holds ------------------------------


def every(config: Config, sweeps: list[str]) -> pd.DataFrame:
    """One row per figure, reading and data set, with the columns ``COLUMNS``.

    Parameters
    ----------
    sweeps : list of str
        Sweeps that were run, in any order; a figure without its sweep is left out.
    """
    rows: Rows = []
    for name, judge in _SOURCES.items():
        if name not in sweeps:
            continue
        table = read(config, name)
        table = where(table, status="ok") if "status" in table else table
        rows += judge(table) if len(table) else []
    data = pd.DataFrame([{**row, "reading": in_words(row)} for row in rows])
    return data.reindex(columns=COLUMNS)


def _rows(
    swept: pd.DataFrame,
    figure: str,
    judge: Callable[[pd.DataFrame], Sentence],
    by: Iterable[str] = (),
    **more: str,
) -> Rows:
    """One row per reading, and per data set if ``by`` has the columns that differ."""
    keys = [*by, *(key for key in READING if key in swept)]
    return [
        {"figure": f"Figure {figure}", **known, **judge(runs).row(), **more}
        for known, runs in groups(swept, keys)
    ]


def _figure1(table: pd.DataFrame) -> Rows:
    """Figure 1, where eta is max |x_true| or ||x_true||_1."""
    table = last(table).assign(ball=math.inf)
    shares = zip(table["density"], table["active"], strict=True)
    data = [f"features {100 * a:g} %, variable {100 * b:g} %" for a, b in shares]
    table, by, rows = table.assign(data=data), ["constraint", "data"], list[Any]()
    for chances in STATED:
        judge = partial(figure1, chances=chances)
        rows += _rows(table, "1", judge, by, chances=chances)
    return rows


def _workers(table: pd.DataFrame) -> Rows:
    """Figures 2 and 5 to 8, on the same data; Figure 2 has no noise."""
    quiet = where(table, objective="mean", per="total")
    rows = _rows(quiet.drop(columns=["objective", "per"]), "2", figure2)
    rows += _rows(table, "5", figure5)
    for figure in FAMILIES:
        rows += _rows(table, figure, partial(_flat, figure=figure))
    return rows


def _flat(runs: pd.DataFrame, figure: str) -> Sentence:
    return flat({value: ends(part) for value, part in family(runs, figure).items()})


def _sized(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a column ``data``, the size of the data in words."""
    sizes = zip(table["d"], table["density"], strict=True)
    return table.assign(data=[f"d = {d:g}, {100 * each:g} %" for d, each in sizes])


def _private(table: pd.DataFrame) -> Rows:
    """Figure 3, one row per data set and noise of DP-FW."""
    rows: Rows = []
    for as_itself, noise in DP_FW.items():
        judge = partial(figure3, as_itself=as_itself)
        rows += _rows(_sized(table), "3", judge, ["data"], dp_fw=noise)
    return rows


def _real(table: pd.DataFrame) -> Rows:
    """Figure 9: its order and its range, one row per data set."""
    table, by = table.assign(data=table["problem"]), ["data", "share"]
    return _rows(table, "9", figure5, by) + _rows(table, "9, range", figure9, by)


_SOURCES = {
    "samplings": _figure1,
    "readings": _workers,
    "readings_private": _private,
    "readings_samples": lambda table: [
        *_rows(table, "4", figure4),
        *_rows(table, "4, rate", rate),
    ],
    "readings_real": _real,
}


# --- in words -------------------------------------------------------------------------


def in_words(row: dict[str, Any]) -> str:
    """The reading of a row: eta, objective, whose epsilon, T and noise."""
    if row.get("constraint") == "box":
        eta = "max |x_true|"
    elif "share" in row:
        eta = f"{row['share']:g} ||w*||_1"
    else:
        eta = f"{row['ball']:g}" if math.isfinite(row["ball"]) else "||x_true||_1"
    parts = [row["constraint"]] if "constraint" in row else []
    parts.append(f"eta {eta}")
    if row.get("objective"):
        spent = "in total" if row["per"] == "total" else "an iteration"
        parts += [row["objective"], f"epsilon {spent}"]
    parts.append(f"T {row['iterations']:g}")
    if "chances" in row:
        parts.append(f"p_min in the step {row['chances']}")
    if "dp_fw" in row:
        parts.append(f"DP-FW's noise {row['dp_fw']}")
    return ", ".join(parts)


def sentences(data: pd.DataFrame) -> pd.DataFrame:
    """One row per figure: readings tried, the number that hold, and a sentence.

    A figure holds under a reading if it holds on all data sets that were tried.
    """
    ranks, rows = {"yes": 0, "undecided": 1, "no": 2}, []
    for figure, part in data.groupby("figure", sort=False):
        ranked = part.assign(rank=part["holds"].map(ranks))
        ranked = ranked.sort_values(["rank", "margin"])
        one = ranked.drop_duplicates("reading", keep="last").set_index("reading")
        one = one.loc[part["reading"].unique()].reset_index()
        counts = {
            "tried": len(one),
            "holding": int((one["holds"] == "yes").sum()),
            "undecided": int((one["holds"] == "undecided").sum()),
            "learning": int((one["drop"] >= LEARNT).sum()),
            "holding_without_learning": int((one["without_learning"] == "yes").sum()),
            "holding_somewhere": part.loc[part["holds"] == "yes", "reading"].nunique(),
        }
        sentence = _sentence(str(figure), part, one, counts)
        rows.append({"figure": figure, **counts, "sentence": sentence})
    return pd.DataFrame(rows)


def _sentence(
    figure: str, part: pd.DataFrame, one: pd.DataFrame, counts: dict[str, int]
) -> str:
    held = one[one["holds"] == "yes"].sort_values("drop", ascending=False)
    sets = part["data"].nunique() if "data" in part else 0
    on_all = f"; on all {sets} data sets" if sets > 1 else ""
    start = f"{figure} ({SENTENCES[figure.removeprefix('Figure ')]}{on_all}): "
    if len(held):
        named = "; ".join(held["reading"][:NAMED])
        more = f" and {len(held) - NAMED} more" if len(held) > NAMED else ""
        return (
            f"{start}holds with a drop of at least {LEARNT:g} f(0) under "
            f"{len(held)} of {len(one)} readings ({named}{more}); elsewhere "
            f"{_why(one[one['holds'] != 'yes'])}."
        )
    somewhere = f", {counts['holding_somewhere']} on one data set at least"
    return (
        f"{start}holds under none of {len(one)} readings with a drop of at least "
        f"{LEARNT:g} f(0) ({counts['undecided']} undecided, "
        f"{counts['holding_without_learning']} if nothing need be learnt"
        f"{somewhere if on_all else ''}); {_why(one)}."
    )


def _why(one: pd.DataFrame) -> str:
    """Number of readings that learn too little, and usual failures of the others."""
    learns = one[one["drop"] >= LEARNT]
    text = f"{len(one) - len(learns)} learn too little"
    if learns.empty:
        return text
    reasons = learns["worst"].value_counts()[:2].items()
    most = "; ".join(f"{name} ({count})" for name, count in reasons)
    return f"{text}, and in {len(learns)} it is most often this that fails: {most}"
