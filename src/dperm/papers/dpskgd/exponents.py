"""The gains of Section 4.3's regimes, and how they grow with the dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def relative(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the sweep with the excess, drawn and expected, over that of the start."""
    return table.assign(
        n=table["n"].astype(int),
        share=table["excess"] / table["start"],
        expected_share=table["expected"] / table["start"],
    )


def fitted(table: pd.DataFrame) -> list[dict[str, Any]]:
    """One row a regime and n: slopes in log d of ratios worse / better.

    Dimensions where either method's mean excess is above half its start are left out:
    there the noise has drowned the problem.
    """
    rows = []
    law = of_law(table)
    for (regime, n), group in law.groupby(["regime", "n"], sort=False):
        worse, better = group["algorithm"].unique()
        excess = group.pivot(index=["replicate", "draw"], columns=["algorithm", "d"],
                             values="excess")  # fmt: skip
        start = group.groupby("d")["start"].first()
        means = {name: excess[name].mean() for name in (worse, better)}
        kept = [
            d for d in start.index if max(m[d] for m in means.values()) < start[d] / 2
        ]
        if len(kept) < 2:
            continue
        terms = group.groupby(["algorithm", "d"])[["convex", "strong"]].first()
        predicted = {
            key: _slope(kept, terms.loc[worse, key] / terms.loc[better, key])
            for key in ("convex", "strong")
        }
        low, high = _bootstrap(kept, excess[worse], excess[better])
        rows.append(
            {"regime": regime, "worse": worse, "better": better, "n": int(n),
             "d_from": kept[0], "d_to": kept[-1],
             "exponent": _slope(kept, means[worse] / means[better]),
             "ci_low": low, "ci_high": high,
             "gain_at_d_to": means[worse][kept[-1]] / means[better][kept[-1]],
             "convex_row": predicted["convex"], "strong_row": predicted["strong"],
             "runs": len(excess)}
        )  # fmt: skip
    return rows


def _slope(dims: list[int], ratio: pd.Series) -> float:
    return float(np.polyfit(np.log(dims), np.log(ratio[dims].to_numpy()), 1)[0])


def _bootstrap(
    dims: list[int], worse: pd.DataFrame, better: pd.DataFrame, draws: int = 2000
) -> tuple[float, float]:
    """95 % percentile interval of the slope, runs drawn anew for each dimension."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0)))
    tops, bottoms = worse[dims].to_numpy(), better[dims].to_numpy()
    size, count = tops.shape
    pick = rng.integers(0, size, (2, draws, size, count))
    over = np.take_along_axis(tops[None], pick[0], 1).mean(axis=1)
    under = np.take_along_axis(bottoms[None], pick[1], 1).mean(axis=1)
    slopes = np.polyfit(np.log(dims), np.log(over / under).T, 1)[0]
    low, high = np.quantile(slopes, [0.025, 0.975])
    return float(low), float(high)


def of_law(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the sweep that were drawn from the law of the iterate."""
    return table[table["source"] == "law"]


def gains(table: pd.DataFrame) -> dict[int, pd.Series]:
    """Mean excess of a regime's worse method over the better's, by n, against d."""
    worse, better = table["algorithm"].unique()
    found = {}
    for n, part in of_law(table).groupby("n"):
        means = part.groupby(["algorithm", "d"])["excess"].mean()
        found[int(n)] = means[worse] / means[better]
    return found


def predicted(table: pd.DataFrame) -> dict[str, tuple[pd.Series, float]]:
    """What the rows of Table 1 say of a regime: gain against d, and its exponent."""
    worse, better = table["algorithm"].unique()
    terms = of_law(table).groupby(["algorithm", "d"])[["convex", "strong"]].first()
    ratios = {key: terms.loc[worse, key] / terms.loc[better, key] for key in terms}
    return {key: (each, _slope(list(each.index), each)) for key, each in ratios.items()}
