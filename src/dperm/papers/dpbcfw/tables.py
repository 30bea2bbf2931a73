"""Tables of Lou and Cheung 2020 (DP-BCFW)."""

from __future__ import annotations

import pandas as pd

from dperm.core.experiment import results
from dperm.core.experiment.schema import Config, Product
from dperm.papers.dpbcfw import outcomes
from dperm.papers.dpbcfw.outcomes import last, read
from dperm.present.tables import Table, made_of, readable


def _mean(table: pd.DataFrame, keys: list[str], values: list[str]) -> pd.DataFrame:
    return table.groupby(keys, sort=False)[values].mean().reset_index()


def _renamed(data: pd.DataFrame, titles: dict[str, str]) -> pd.DataFrame:
    """The columns that are shown, under their titles."""
    return readable(data[list(titles)]).rename(columns=titles)


def related(config: Config, product: Product, problems: list[str]) -> Table:
    """Table II with our solver for each row, and the measured bytes of DP-BCFW."""
    data = results.published(config, "table2")
    ours = data["solver"] == "dp_bcfw"
    data["uplink_share"] = pd.NA
    sent = results.load_sweep(config, "communication")
    data.loc[ours, "uplink_share"] = outcomes.share_of_raw(sent)
    text = data.fillna({"solver": "not here"})
    text["uplink_share"] = [
        "" if pd.isna(value) else f"{100 * value:.2g} % of sending raw features"
        for value in data["uplink_share"]
    ]
    return Table(data, text)


def curvature(config: Config, product: Product, problems: list[str]) -> Table:
    """Table III in numbers, means over the draws."""
    table = results.load_sweep(config, "curvature")
    columns = table[["p_min", "iteration", "d", "start", "expected_curvature"]]
    table["printed_column"] = [
        outcomes.printed_column(*row) for row in columns.itertuples(index=False)
    ]
    titles = {
        "sampling": "sampling",
        "p_min": "p_min",
        "published_p_min": "p_min, printed",
        "existing_curvature": "existing curvature",
        "expected_curvature": "expected curvature",
        "existing_bound": "existing bound",
        "bound": "Theorem 1",
        "published_bound": "Theorem 1, printed p_min",
        "gap": "reached",
        "printed_column": "its printed column",
    }
    _, *values, column = titles
    data = _mean(table, ["sampling"], [*values, "start", column])
    return Table(data, _renamed(data, titles))


def losses(config: Config, product: Product, problems: list[str]) -> Table:
    """Table V: the printed formulas, and errors as printed and corrected, by m."""
    table, keys = read(config, "losses"), ["loss_name", "length"]
    data = _mean(table, keys, ["formula", "printed", "relative"])
    printed = results.published(config, "table5").rename(columns={"loss": "loss_name"})
    data = data.merge(printed[["loss_name", "by_q"]], on="loss_name", how="left")
    titles = {
        "loss_name": "loss",
        "by_q": "partial gradient by q, as printed",
        "length": "m / n",
        "formula": "error, corrected",
        "printed": "error, as printed",
        "relative": "loss reached / loss at 0",
    }
    return Table(data, _renamed(data, titles))


def reading_sentences(config: Config, product: Product, problems: list[str]) -> Table:
    """One sentence per figure on the readings under which it holds."""
    data = outcomes.sentences(outcomes.every(config, product.sweeps))
    return Table(data, data[["figure", "tried", "learning", "holding", "sentence"]])


def privacy(config: Config, product: Product, problems: list[str]) -> Table:
    """True epsilon of the noise, also of indices and features separately."""
    tables = [results.load_sweep(config, name) for name in product.sweeps]
    table = pd.concat(tables, ignore_index=True)
    kept = table["noise"].isin(["stated", "scaled", "strict"])
    if "status" in table:
        kept &= table["status"] == "ok"
    table = last(table[kept])
    names = table["problem"] if "problem" in table else pd.Series(pd.NA, table.index)
    table = table.assign(data=names.fillna("synthetic"))
    keys = ["data", "method", "noise", "update", "nodes", "share", "epsilon"]
    values = [
        *("index_epsilon", "sketch_epsilon", "true_epsilon", "epsilon_low"),
        *("index_scale", "sketch_scale", "largest_norm", "final_norm"),
    ]
    data = _mean(table, keys, [name for name in values if name in table])
    if "given" in table:
        public = table.groupby(keys, sort=False)["given"].first()
        data = data.merge(public.reset_index(), on=keys, how="left")
    return made_of(data)


def sensitivity(config: Config, product: Product, problems: list[str]) -> Table:
    """Largest change of a release that was found, over the declared sensitivity."""
    table = results.load_sweep(config, "sensitivity")
    if "update" not in table:
        table["update"] = "published"
    for name in ("strict", "published"):
        table[f"of_{name}"] = table["found"] / table[name]
    keys = ["release", "nodes", "update"]
    values = ["found", "strict", "published", "of_strict", "of_published"]
    return made_of(table.groupby(keys, sort=False)[values].max().reset_index())


def rates(config: Config, product: Product, problems: list[str]) -> Table:
    """Exponents of Algorithm 1's gap in t, and those of Theorem 1's bound."""
    swept = results.load_sweep(config, product.sweeps[0])
    return made_of(outcomes.gap_exponents(swept))


def proposition1(config: Config, product: Product, problems: list[str]) -> Table:
    """Expected curvature over Proposition 1's bound, by sampling and correlation."""
    table = results.load_sweep(config, product.sweeps[0])
    data = _mean(table, ["sampling", "common"], ["curvature", "bound"])
    return Table(data, readable(data.assign(share=data["curvature"] / data["bound"])))


def approximation(config: Config, product: Product, problems: list[str]) -> Table:
    """Errors of partial gradient and oracle, and those that Assumption 2 allows."""
    swept = results.load_sweep(config, product.sweeps[0])
    return made_of(outcomes.approximation_summary(swept))


def sketch(config: Config, product: Product, problems: list[str]) -> Table:
    """Exponents in m and n of the errors that sketching adds to a partial gradient."""
    swept = results.load_sweep(config, product.sweeps[0])
    return made_of(outcomes.sketch_exponents(swept))
