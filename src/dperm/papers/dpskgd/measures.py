"""Results of the sweeps for figures and tables, without importing solvers.

They are the regimes of Section 4.3 with the growth of their gains in the dimension, and
runs of Theorem 4.2 at its own parameters.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pandas as pd

from dperm.core.calibrations import STRICT
from dperm.core.experiment import config as configuration
from dperm.core.experiment import schema
from dperm.present.intervals import Measured, compared, power, widest
from dperm.present.tables import Rows, groups, with_interval

FINAL_CALIBRATION = STRICT  # of the last round of a tuning
POINT = ["passes", "step", "clip"]


# --- solvers by how they draw coordinates, from their YAML ----------------------------


@functools.cache
def solver(name: str) -> schema.Solver:
    """The section of a solver's YAML."""
    return configuration.read("solver", name)


def family(name: str) -> str:
    """``uniform`` or ``importance``; empty for a solver without a sketch."""
    options = solver(name).options
    if solver(name).algorithm != "dp_skgd":
        return ""
    return options.get("probabilities", "uniform")


def block_count(name: str, p: int) -> float:
    """Number of blocks of p coordinates."""
    options = solver(name).options
    return float(options.get("blocks") or p)


# --- what chance alone does: the same law twice ---------------------------------------

CONTROL_TUNED = "control: one law twice, tuned twice"


def banded(rows: Rows, control: str) -> Rows:
    """Add the band: the widest ratio of the controls, which compare a law with itself.

    Comparisons inside it decide nothing; a control's own band is 1.

    Parameters
    ----------
    rows : list of dict
        Of ``compared``, with a ``question``.
    control : str
        The question of the controls.
    """
    band = widest([row["ratio"] for row in rows if row["question"] == control])
    return [row | {"band": 1.0 if row["question"] == control else band} for row in rows]


# --- Section 4.3: gains against the dimension -----------------------------------------


def relative(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the sweep with the excess, drawn and expected, over that of the start."""
    return table.assign(
        n=table["n"].astype(int),
        share=table["excess"] / table["start"],
        expected_share=table["expected"] / table["start"],
    )


def fitted(table: pd.DataFrame) -> Rows:
    """One row per regime and n: slopes in log d of ratios worse / better.

    Dimensions where either method's mean excess is above half its start are left out,
    since noise dominates there.
    """
    rows: Rows = []
    for at, group in groups(_of_law(table), ["regime", "n"]):
        worse, better = group["algorithm"].unique()
        excess = group.pivot(
            index=["replicate", "draw"], columns=["algorithm", "d"], values="excess"
        )
        start = group.groupby("d")["start"].first()
        means = {name: excess[name].mean() for name in (worse, better)}
        highest = pd.concat(means.values(), axis=1).max(axis=1)
        kept = [d for d in start.index if highest[d] < start[d] / 2]
        if len(kept) < 2:
            continue
        gain, predicted = means[worse] / means[better], _row_ratios(group)
        row = {"regime": at["regime"], "worse": worse, "better": better}
        row |= {"n": int(at["n"]), "d_from": kept[0], "d_to": kept[-1]}
        row["exponent"] = _slope(kept, gain)
        ends = _bootstrap(kept, excess[worse], excess[better])
        row |= dict(zip(("ci_low", "ci_high"), ends, strict=True))
        row["gain_at_d_to"] = gain[kept[-1]]
        row |= {f"{key}_row": _slope(kept, each) for key, each in predicted.items()}
        rows.append(row | {"runs": len(excess)})
    return rows


def _of_law(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the sweep that were drawn from the law of the iterate."""
    return table[table["source"] == "law"]


def _row_ratios(table: pd.DataFrame) -> dict[str, pd.Series]:
    """Table 1's rows of a regime's worse method over the better's, against d."""
    worse, better = table["algorithm"].unique()
    terms = table.groupby(["algorithm", "d"])[["convex", "strong"]].first()
    return {key: terms.loc[worse, key] / terms.loc[better, key] for key in terms}


def _slope(dims: list[int], ratio: pd.Series) -> float:
    return float(np.polyfit(np.log(dims), np.log(ratio[dims].to_numpy()), 1)[0])


def _bootstrap(
    dims: list[int], worse: pd.DataFrame, better: pd.DataFrame, draws: int = 2000
) -> tuple[float, float]:
    """95 % percentile interval of the slope; each dimension resamples its own runs."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0)))
    tops, bottoms = worse[dims].to_numpy(), better[dims].to_numpy()
    pick = rng.integers(0, len(tops), (2, draws, *tops.shape))
    over = np.take_along_axis(tops[None], pick[0], 1).mean(axis=1)
    under = np.take_along_axis(bottoms[None], pick[1], 1).mean(axis=1)
    slopes = np.polyfit(np.log(dims), np.log(over / under).T, 1)[0]
    low, high = np.quantile(slopes, [0.025, 0.975])
    return float(low), float(high)


def gains(table: pd.DataFrame) -> dict[int, pd.Series]:
    """Mean excess of a regime's worse method over the better's, by n, against d."""
    worse, better = table["algorithm"].unique()
    means = _of_law(table).groupby(["n", "algorithm", "d"])["excess"].mean()
    return {
        int(n): means[n, worse] / means[n, better]
        for n in means.index.unique("n").sort_values()
    }


def predicted_gains(table: pd.DataFrame) -> dict[str, tuple[pd.Series, float]]:
    """Gain against d and its exponent, as predicted by each row of Table 1."""
    ratios = _row_ratios(_of_law(table))
    return {key: (each, _slope(list(each.index), each)) for key, each in ratios.items()}


# --- Theorem 4.2 at its own parameters ------------------------------------------------

BASE, AGAIN = "single", "single again"  # of theorem42, which imports the solvers
CONTROL = "control: one law twice"
AXES = {"n": "epsilon", "epsilon": "n"}  # and the key that is fixed along it
KNOWN = [
    *("d", "true_epsilon", "inner", "periods", "epochs", "row", "bound", "proved"),
    *("start", "start_over_bound", "n_needed", "steps", "expected"),
]
DRAWN = ["instance", "case", "sampling"]
PLACED = ["instance", "length", "placement", "n"]  # a problem of the placement
FITTED = ("excess", "bound", "expected")
FEWEST = 4  # points of a fit


def beside_bounds(swept: pd.DataFrame) -> Rows:
    """Excess at the theorem's parameters and its bound, by problem and sampling.

    Where K or T is below 1 there is no excess: the theorem does not apply.
    """
    rows: Rows = []
    names = ("excess", "ci_low", "ci_high")
    for row, group in groups(swept, [*DRAWN, "n", "epsilon"]):
        row |= group[KNOWN].iloc[0].to_dict()
        excess = group["excess"].dropna().to_numpy()
        ran = with_interval(excess, *names) if len(excess) else {}
        rows.append(row | dict.fromkeys(names, math.nan) | ran | {"runs": len(excess)})
    return rows


def exponents(swept: pd.DataFrame) -> Rows:
    """Exponents in n and in epsilon of the measured and expected excess and the bound.

    They are fitted where the bound is below the excess of w = 0, to the means over the
    transcripts, by least squares in logarithms. Student's interval includes the noise
    of the means and the deviation from a power law. ``theorem`` is the exponent without
    logarithms, ``bound`` that of the bound on the same points.
    """
    means = pd.DataFrame(beside_bounds(swept)).dropna(subset="excess")
    means = means[means["start_over_bound"] >= 1]
    rows: Rows = []
    for axis, held in AXES.items():
        for at, group in groups(means, [*DRAWN, held]):
            if len(group) < FEWEST:
                continue
            x, share = group[axis].to_numpy(float), group["excess"] / group["start"]
            found = {name: power(x, group[name].to_numpy()) for name in FITTED}
            row = {"axis": axis} | {name: at[name] for name in DRAWN}
            names = ("exponent", "ci_low", "ci_high")
            row |= dict(zip(names, found.pop("excess"), strict=True))
            row |= {name: fit[0] for name, fit in found.items()}
            row["theorem"] = -1 if at["case"] == "convex" else -2
            row |= {"points": len(group), "runs": int(group["runs"].min())}
            ends = {"least_share": share.min(), "largest_share": share.max()}
            rows.append(row | ends)
    return rows


def orders(swept: pd.DataFrame) -> pd.DataFrame:
    """Every sampling against single uniform draws, with the ratio of Table 1's rows.

    The control is the same law on other seeds; its band applies to the whole sweep.
    ``predicted`` is the ratio of the rows, ``predicted_tight`` that to DP-CD's row.

    Parameters
    ----------
    swept : DataFrame
        Rows of the sweep ``placement``; those without an excess are left out.
    """
    rows: Rows = []
    for known, group in groups(swept.dropna(subset="excess"), PLACED):
        by = dict(list(group.groupby("sampling", sort=False)))
        if BASE not in by:
            continue
        base = by.pop(BASE)
        other = base.iloc[0]
        for name, part in by.items():
            one = part.iloc[0]
            question = CONTROL if name == AGAIN else "against single uniform draws"
            row = known | {"question": question, "first": name, "second": BASE}
            row |= compared(_measured(part), _measured(base))
            row["expected"] = one["expected"] / other["expected"]
            row["predicted"] = one["row"] / other["row"]
            row["predicted_tight"] = one["tight"] / other["tight"]
            start = min(one["start_over_bound"], other["start_over_bound"])
            rows.append(row | {"start_over_bound": start})
    return pd.DataFrame(banded(rows, CONTROL))


def _measured(part: pd.DataFrame) -> Measured:
    """Log mean and its variance, by transcripts alone, since no setting was tuned."""
    logs = np.log(part["excess"].to_numpy())
    size = len(logs)
    return Measured(float(logs.mean()), float(logs.var(ddof=1)) / size, 0.0, size, size)
