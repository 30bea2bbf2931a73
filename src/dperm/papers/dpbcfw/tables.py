"""Tables of Lou and Cheung 2020 (DP-BCFW)."""

from __future__ import annotations

import pandas as pd

from dperm.core.experiment import results, schema
from dperm.papers.dpbcfw import convergence, inexact, margins, sketching, theory, uplink
from dperm.papers.dpbcfw import readings as of_readings
from dperm.papers.dpbcfw.outcomes import last, read
from dperm.present.tables import Table, readable


def _mean(table: pd.DataFrame, keys: list[str], values: list[str]) -> pd.DataFrame:
    return table.groupby(keys, sort=False)[values].mean().reset_index()


def related(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table II, and which solver of ours runs a row; measured bytes for DP-BCFW."""
    data = results.published(config, "table2")
    ours = data["solver"] == "dp_bcfw"
    sent = results.load_sweep(config, "communication")
    data["uplink_share"] = pd.NA
    data.loc[ours, "uplink_share"] = uplink.share_of_raw(sent)
    shown = data.fillna({"solver": "not here"})
    shown["uplink_share"] = [
        "" if pd.isna(value) else f"{100 * value:.2g} % of sending raw features"
        for value in data["uplink_share"]
    ]
    return Table(data, shown)


def curvature(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table III in numbers, means over the draws."""
    table = results.load_sweep(config, "curvature")
    columns = ["p_min", "iteration", "d", "start", "expected_curvature"]
    column = [
        theory.printed_column(*row) for row in table[columns].itertuples(index=False)
    ]
    table = table.assign(printed_column=column)
    values = [
        *("p_min", "published_p_min", "existing_curvature", "expected_curvature"),
        *("existing_bound", "bound", "published_bound", "gap"),
    ]
    data = _mean(table, ["sampling"], [*values, "start", "printed_column"])
    shown = readable(data[["sampling", *values, "printed_column"]])
    shown.columns = [
        *("sampling", "p_min", "p_min, printed", "existing curvature"),
        *("expected curvature", "existing bound", "Theorem 1"),
        *("Theorem 1, printed p_min", "reached", "its printed column"),
    ]
    return Table(data, shown)


def losses(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table V: the printed formulas, and the errors of both readings by m."""
    table = last(read(config, "losses"))
    keys = ["loss_name", "length"]
    data = _mean(table, keys, ["formula", "printed", "relative"])
    printed = results.published(config, "table5").rename(columns={"loss": "loss_name"})
    data = data.merge(printed[["loss_name", "by_q"]], on="loss_name", how="left")
    shown = readable(data)[
        ["loss_name", "by_q", "length", "formula", "printed", "relative"]
    ]
    shown.columns = [
        *("loss", "partial gradient by q, as printed", "m / n"),
        *("error, corrected", "error, as printed", "loss reached / loss at 0"),
    ]
    return Table(data, shown)


def claims(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """The smallest epsilon from which each claim holds, by kind of noise."""
    data = margins.starts(margins.of_runs(last(read(config, "claims"))))
    wide = data.pivot(index="claim", columns="noise", values="epsilon")
    shown = wide[list(margins.KINDS)].map(
        lambda value: "nowhere up to 1e7" if pd.isna(value) else f"{value:g}"
    )
    titles = {key: " ".join(text.split()) for key, text in margins.CLAIMS.items()}
    shown.insert(0, "claim", shown.index.map(titles))
    shown.columns = [
        *("claim", "noise as printed", "printed, scores eta grad"),
        *("the same, no sketch (m = n)", "least sound noise"),
    ]
    return Table(data, shown)


def readings(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Under which reading each figure holds; every row in the data."""
    data = of_readings.every(config, product.sweeps)
    columns = ["figure", "reading", "data", "holds", "drop", "worst", "margin"]
    return Table(data, readable(data[columns]))


def reading_sentences(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """The same in one sentence a figure."""
    data = of_readings.sentences(of_readings.every(config, product.sweeps))
    return Table(data, data[["figure", "tried", "learning", "holding", "sentence"]])


def privacy(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """True epsilon of the printed noise, indices and features apart."""
    table = pd.concat(
        [results.load_sweep(config, name) for name in product.sweeps],
        ignore_index=True,
    )
    kept = table["noise"].isin(["stated", "scaled", "strict"])
    if "status" in table:
        kept &= table["status"] == "ok"
    table = last(table[kept])
    if "problem" not in table:
        table["problem"] = pd.NA
    table = table.assign(data=table["problem"].fillna("synthetic"))
    keys = ["data", "method", "noise", "update", "nodes", "share", "epsilon"]
    values = [
        *("index_epsilon", "sketch_epsilon", "true_epsilon", "epsilon_low"),
        *("index_scale", "sketch_scale", "largest_norm", "final_norm"),
    ]
    data = _mean(table, keys, [name for name in values if name in table])
    if "given" in table:
        given = table.groupby(keys, sort=False)["given"].first().rename("given")
        data = data.merge(given.reset_index(), on=keys, how="left")
    return Table(data, readable(data))


def sensitivity(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Largest change found over what was declared."""
    table = results.load_sweep(config, "sensitivity")
    if "update" not in table:
        table["update"] = "published"
    table = table.assign(
        of_strict=table["found"] / table["strict"],
        of_published=table["found"] / table["published"],
    )
    keys = ["release", "nodes", "update"]
    values = ["found", "strict", "published", "of_strict", "of_published"]
    data = table.groupby(keys, sort=False)[values].max().reset_index()
    return Table(data, readable(data))


def rates(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Exponents of Algorithm 1's gap in t beside those of Theorem 1's bound."""
    data = convergence.exponents(results.load_sweep(config, product.sweeps[0]))
    return Table(data, readable(data))


def proposition1(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Expected curvature over Proposition 1's bound, by sampling and likeness."""
    table = results.load_sweep(config, product.sweeps[0])
    data = _mean(table, ["sampling", "common"], ["curvature", "bound"])
    return Table(data, readable(data.assign(share=data["curvature"] / data["bound"])))


def approximation(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Errors of partial gradient and oracle over what Assumption 2 allows."""
    data = inexact.summary(results.load_sweep(config, product.sweeps[0]))
    return Table(data, readable(data))


def sketch(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Exponents of what sketching does to a partial gradient, in m and in n."""
    data = sketching.exponents(results.load_sweep(config, product.sweeps[0]))
    return Table(data, readable(data))
