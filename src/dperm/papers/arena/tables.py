"""Tables of the arena: cells, ranks, choices and recommendations."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dperm.core.erm.losses import named
from dperm.core.experiment import plan
from dperm.core.experiment.grid import points
from dperm.core.experiment.results import load_sweep
from dperm.core.experiment.schema import Config, Product
from dperm.papers.arena import outcomes, protocols, ranking


def arena(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Every cell with its interval, and the floors and ceiling of every problem."""
    return pd.concat([outcomes.contest(config), _ends(config)], ignore_index=True)


def _ends(config: Config) -> pd.DataFrame:
    """Floors and ceilings, as rows of methods of true epsilon 0 or infinity."""
    rows = load_sweep(config, "ends")
    if "end" not in rows:
        return pd.DataFrame(columns=outcomes.COLUMNS)
    rows = rows[rows["end"].notna()]
    names = {
        "zero": "floor, w = 0",
        "mean": "floor, the labels' mean",
        "optimum": "ceiling, without noise",
    }
    costs = {"zero": 0.0, "mean": float("inf"), "optimum": float("inf")}
    return pd.DataFrame(
        {
            "problem": rows["problem"],
            "algorithm": rows["end"].map(names),
            "mean": rows["relative_error"],
            "test_metric": rows["test_metric"],
            "test_mean": rows["test"],
            "true_epsilon": rows["end"].map(costs),
            "solver": rows["end"],
            "status": "ok",
        }
    ).reindex(columns=outcomes.COLUMNS)


def ranks(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Mean shares of rank with intervals, for every tuning and kind of scales."""
    table, rows = outcomes.contest(config), []
    for tuning in ("default", "ten", "grid", "paid"):
        for public in (True, False):
            errors = ranking.cells(table, tuning, public)
            if len(errors):
                found = ranking.standing(errors)
                found.insert(0, "tuning", tuning)
                found.insert(1, "public_scales", public)
                own = table["tuning"].eq(tuning) & table["public_scales"].eq(public)
                seconds = table[own].groupby("algorithm")["seconds"].mean()
                rows.append(found.assign(seconds=found["algorithm"].map(seconds)))
    return pd.concat(rows, ignore_index=True)


def choices(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Dependence of the ranking on each choice that was made."""
    return pd.DataFrame(list(ranking.changes(outcomes.contest(config))))


def advice(
    config: Config,
    product: Product,
    problems: list[str],
    synthetic: Sequence[str] = (),
) -> pd.DataFrame:
    """Recommended method for each kind of problem, under each tuning."""
    table, known, rows = outcomes.contest(config), sizes(config), []
    left = list(synthetic)
    for tuning in ("default", "grid", "paid"):
        errors = ranking.with_floor(ranking.cells(table, tuning), known, left)
        rows += [{"tuning": tuning, **row} for row in ranking.advice(errors, known)]
    return pd.DataFrame(rows)


def model(
    config: Config,
    product: Product,
    problems: list[str],
    synthetic: Sequence[str] = (),
) -> pd.DataFrame:
    """Regret of a choice by expected regrets on held-out data sets, and of controls."""
    table, known = outcomes.contest(config), sizes(config)
    left = list(synthetic)
    rows = [
        ranking.model(errors, known, left).assign(tuning=tuning)
        for tuning in ("default", "grid", "paid")
        if len(errors := ranking.cells(table, tuning))
    ]
    return pd.concat(rows, ignore_index=True)


def overtaken(
    config: Config, product: Product, problems: list[str], against: str = "DP-CD"
) -> pd.DataFrame:
    """Share of cells in which others are ahead of one method, under each tuning."""
    table, of = outcomes.contest(config), against
    others = [name for name in table["algorithm"].unique() if name != of]
    rows = ranking.overtaken(table, of, others)
    found = pd.DataFrame(rows, columns=ranking.OVERTAKEN)
    grids = config.paper.sweeps["contest"].options["grids"]
    counts = {
        outcomes.label(name): len(points(dict(grid), axes=None))
        for name, grid in grids.items()
    }
    found["settings"] = found["algorithm"].map(counts)
    found["fewer"] = found["settings"] < counts[of]
    return pd.DataFrame(found)


def leads(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Share of cells in which one method is ahead of another, under every reading."""
    rows = load_sweep(config, "published_lead")
    rows = rows[rows["status"] == "ok"]
    known = outcomes.relatives(config, rows["problem"].unique())
    methods = config.paper.sweeps["published_lead"].options["methods"]
    rows = rows.assign(**{outcomes.DATA: rows["problem"].map(known)})
    return pd.DataFrame(protocols.compared(rows, *methods))


ENDS = ("n", "p", "support", "relative_error")


def sizes(config: Config) -> pd.DataFrame:
    """n, p, support, floors and kind of loss of every available problem."""
    rows = load_sweep(config, "ends")
    if "end" not in rows:
        return pd.DataFrame()
    means = rows[rows["end"] == "mean"].groupby("problem")["relative_error"].first()
    rows = rows[rows["end"] == "zero"]
    known = rows.groupby("problem", sort=False)[list(ENDS)].first()
    known = known.rename(columns={"relative_error": "zero"}).rename_axis(None)
    known["floor"] = known["zero"].clip(upper=means.reindex(known.index))
    return known.assign(loss=[kind_of(config, name) for name in known.index])


def kind_of(config: Config, problem: str) -> str:
    """``logistic`` or ``least squares``."""
    loss = named(plan.at_problem(config, problem).problem.loss)
    return "least squares" if loss.quadratic else "logistic"
