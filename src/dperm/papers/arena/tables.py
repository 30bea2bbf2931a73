"""Tables of the arena: the cells, ranks, wins, choices, and what to take."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dperm.core.erm.losses import named
from dperm.core.experiment import plan, schema
from dperm.core.experiment.grid import points
from dperm.core.experiment.results import load_sweep
from dperm.papers.arena import outcomes, ranking
from dperm.present.tables import Table, made_of, readable


def arena(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Every cell with its interval; the two ends of every problem among them."""
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


def _ends(config: schema.Config) -> pd.DataFrame:
    """The floor and the ceiling, as methods that cost nothing and infinitely much."""
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


def ranks(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
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
    data = pd.concat(rows, ignore_index=True)
    return Table(data, readable(data))


def wins(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Chance that one method is ahead of another, on cells that both can do."""
    found = ranking.wins(ranking.cells(outcomes.contest(config)))
    grid = found.pivot(
        index="algorithm", columns="against", values="wins"
    ).reset_index()
    return Table(found, readable(grid))


def choices(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """How far the ranking depends on each choice that was made."""
    return made_of(list(ranking.changes(outcomes.contest(config))))


def advice(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Which method to take for what kind of problem, tuned or not."""
    table, rows = outcomes.contest(config), []
    for tuning in ("default", "grid", "paid"):
        errors = ranking.cells(table, tuning)
        rows += [
            {"tuning": tuning, **row} for row in ranking.advice(errors, sizes(config))
        ]
    return made_of(rows)


def model(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """What a model of regrets costs on data sets left out, beside fixed advice."""
    table, known = outcomes.contest(config), sizes(config)
    left = list(product.options.get("synthetic", ()))
    rows = [
        ranking.model(errors, known, left).assign(tuning=tuning)
        for tuning in ("default", "grid", "paid")
        if len(errors := ranking.cells(table, tuning))
    ]
    data = pd.concat(rows, ignore_index=True)
    return Table(data, readable(data))


def auto(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """The order in which ``dperm.fit`` tries methods; the package ships a copy."""
    return made_of(ranking.orders(*_declared(config)))


def auto_choices(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """What that order costs beside fixed methods and two controls."""
    return made_of(ranking.choices_of(*_declared(config)))


def _declared(config: schema.Config) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Errors by solvers' names in every cell of the sweep, and sizes of problems."""
    rows = load_sweep(config, "declared_scales")
    known = rows.dropna(subset=["n", "p"]).groupby("problem", sort=False)
    sizes = known[["n", "p"]].first()
    sizes["loss"] = [kind_of(config, name) for name in sizes.index]
    table = outcomes.contest(config, "declared_scales")
    table = table.assign(algorithm=table["solver"])
    return ranking.cells(table, "default", public=False), sizes


def overtaken(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """In how many cells others are ahead of one method, by what tuning costs."""
    table, of = outcomes.contest(config), str(product.options.get("against", "DP-CD"))
    others = [name for name in table["algorithm"].unique() if name != of]
    found = pd.DataFrame(
        ranking.overtaken(table, of, others), columns=ranking.OVERTAKEN
    )
    grids = config.paper.sweeps["contest"].options["grids"]
    counts = {
        outcomes.label(name): len(points(dict(grid), axes=None))
        for name, grid in grids.items()
    }
    found["settings"] = found["algorithm"].map(counts)
    found["fewer"] = found["settings"] < counts[of]
    return Table(found, readable(found))


def sizes(config: schema.Config) -> pd.DataFrame:
    """n, p and the kind of loss of every problem whose data there are."""
    rows = load_sweep(config, "ends")
    if "end" not in rows:
        return pd.DataFrame()
    means = rows[rows["end"] == "mean"].groupby("problem")["relative_error"].first()
    rows = rows[rows["end"] == "zero"]
    known: dict[str, Any] = {
        row["problem"]: {
            "n": row["n"],
            "p": row["p"],
            "support": row["support"],
            "zero": row["relative_error"],
            "floor": min(row["relative_error"], means[row["problem"]]),
            "loss": kind_of(config, row["problem"]),
        }
        for row in rows.to_dict("records")
    }
    return pd.DataFrame.from_dict(known, orient="index")


def kind_of(config: schema.Config, problem: str) -> str:
    """``logistic`` or ``least squares``."""
    loss = named(plan.at_problem(config, problem).problem.loss)
    return "least squares" if loss.quadratic else "logistic"
