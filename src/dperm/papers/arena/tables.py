"""Tables of the arena: cells, ranks, wins, choices and recommendations."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from dperm.compare import results
from dperm.core.erm.losses import named
from dperm.core.experiment import plan
from dperm.core.experiment.grid import points
from dperm.core.experiment.results import load_sweep
from dperm.core.experiment.schema import Config, Product
from dperm.papers.arena import outcomes, protocols, ranking, steps
from dperm.present.tables import Table, made_of, readable


def arena(config: Config, product: Product, problems: list[str]) -> Table:
    """Every cell with its interval, and the floors and ceiling of every problem."""
    data = pd.concat([outcomes.contest(config), _ends(config)], ignore_index=True)
    some = data[
        (data["epsilon"] == 1.0) & (data["tuning"] == "grid") | data["epsilon"].isna()
    ]
    columns = [
        "problem",
        "algorithm",
        "public_scales",
        "mean",
        "ci_low",
        "ci_high",
        "test_metric",
        "test_mean",
        "reason",
    ]
    return Table(data, readable(some[columns]))


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


def ranks(config: Config, product: Product, problems: list[str]) -> Table:
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
    return made_of(pd.concat(rows, ignore_index=True))


def wins(config: Config, product: Product, problems: list[str]) -> Table:
    """Chance that one method is ahead of another, on cells that both can do."""
    found = ranking.wins(ranking.cells(outcomes.contest(config)))
    grid = found.pivot(
        index="algorithm", columns="against", values="wins"
    ).reset_index()
    return Table(found, readable(grid))


def choices(config: Config, product: Product, problems: list[str]) -> Table:
    """Dependence of the ranking on each choice that was made."""
    return made_of(list(ranking.changes(outcomes.contest(config))))


def advice(config: Config, product: Product, problems: list[str]) -> Table:
    """Recommended method for each kind of problem, under each tuning."""
    table, known, rows = outcomes.contest(config), sizes(config), []
    left = list(product.options.get("synthetic", ()))
    for tuning in ("default", "grid", "paid"):
        errors = ranking.with_floor(ranking.cells(table, tuning), known, left)
        rows += [{"tuning": tuning, **row} for row in ranking.advice(errors, known)]
    return made_of(rows)


def model(config: Config, product: Product, problems: list[str]) -> Table:
    """Regret of a choice by expected regrets on held-out data sets, and of controls."""
    table, known = outcomes.contest(config), sizes(config)
    left = list(product.options.get("synthetic", ()))
    rows = [
        ranking.model(errors, known, left).assign(tuning=tuning)
        for tuning in ("default", "grid", "paid")
        if len(errors := ranking.cells(table, tuning))
    ]
    return made_of(pd.concat(rows, ignore_index=True))


def price(config: Config, product: Product, problems: list[str]) -> Table:
    """Excess of every step on every frame, also over *given*, and held-out metric."""
    return made_of(_priced(config).to_dict("records"))


def price_goals(config: Config, product: Product, problems: list[str]) -> Table:
    """Excess of each step over that of *given*, and share of cells ahead of the peer.

    Rows are by range of n epsilon / p. A cell is a frame at an epsilon; intervals are
    Student's, over frames.
    """
    cells = _priced(config)
    cells = cells[cells["status"] == "ok"]
    rows = []
    for text, low, high in (("all", 0, np.inf), ("below 100", 0, 100),
                            ("100 and more", 100, np.inf)):  # fmt: skip
        own = cells[(cells["n_epsilon_p"] >= low) & (cells["n_epsilon_p"] < high)]
        for step, some in own.groupby("step", sort=False):
            means = np.log(some["times_given"].dropna()).groupby(some["frame"]).mean()
            ends = stats.t.interval(
                0.95, len(means) - 1, means.mean(), stats.sem(means)
            )
            rows.append(
                {
                    "n_epsilon_p": text,
                    "step": step,
                    "cells": len(some),
                    "times_given": np.exp(means.mean()),
                    "times_low": np.exp(ends[0]),
                    "times_high": np.exp(ends[1]),
                    "within_1.5": (some["times_given"] <= 1.5).mean(),
                    "ahead_of_peer": some["ahead_of_peer"].mean(),
                    "better_than_constant": (some["excess"] < 1).mean(),
                }
            )
    return made_of(rows)


def _priced(config: Config) -> pd.DataFrame:
    """Means over runs, compared with *given* and diffprivlib in the same cell."""
    rows = load_sweep(config, "price")
    keys = ["frame", "epsilon", "step"]
    found = []
    for key, some in rows.groupby(keys, sort=False, dropna=False):
        first, ok = some.iloc[0], some[some["status"] == "ok"]
        made = dict(zip(keys, key, strict=True)) | {"status": first["status"]}
        if len(ok):
            mean, low, high = results.interval(ok["excess"].to_numpy())
            made |= {"n": first["n"], "p": first["p"], "excess": mean, "ci_low": low}
            made |= {"ci_high": high, "test_metric": first["test_metric"]}
            made |= {"test_mean": ok["test"].mean(), "runs": len(ok)}
            made |= {"solver": first["solver"]}
        found.append(made | {"reason": first["reason"]})
    table = pd.DataFrame(found)
    table["n_epsilon_p"] = table["n"] * table["epsilon"] / table["p"]
    cell = table.set_index(keys)["excess"].unstack("step")
    at = pd.MultiIndex.from_frame(table[keys[:2]])
    given, peer = (cell[one].reindex(at).to_numpy() for one in ("given", steps.PEER))
    table["times_given"] = table["excess"] / given
    ahead = np.where(np.isnan(peer), np.nan, table["excess"] < peer)
    return table.assign(ahead_of_peer=ahead)


def overtaken(config: Config, product: Product, problems: list[str]) -> Table:
    """Share of cells in which others are ahead of one method, under each tuning."""
    table, of = outcomes.contest(config), str(product.options.get("against", "DP-CD"))
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
    return made_of(found)


def leads(config: Config, product: Product, problems: list[str]) -> Table:
    """Share of cells in which one method is ahead of another, under every reading."""
    rows = load_sweep(config, "published_lead")
    rows = rows[rows["status"] == "ok"]
    known = outcomes.relatives(config, rows["problem"].unique())
    methods = config.paper.sweeps["published_lead"].options["methods"]
    rows = rows.assign(**{outcomes.DATA: rows["problem"].map(known)})
    return made_of(protocols.compared(rows, *methods))


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
