"""Tables of Lou and Cheung 2020 (DP-BCFW)."""

from __future__ import annotations

import pandas as pd

from dperm.core.experiment import results
from dperm.core.experiment.schema import Config, Product
from dperm.papers.dpbcfw import outcomes
from dperm.papers.dpbcfw.outcomes import last, read


def _mean(table: pd.DataFrame, keys: list[str], values: list[str]) -> pd.DataFrame:
    return table.groupby(keys, sort=False)[values].mean().reset_index()


def related(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Table II with our solver for each row, and the measured bytes of DP-BCFW."""
    data = results.published(config, "table2")
    ours = data["solver"] == "dp_bcfw"
    data["uplink_share"] = pd.NA
    sent = results.load_sweep(config, "communication")
    data.loc[ours, "uplink_share"] = outcomes.share_of_raw(sent)
    return data


def curvature(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Table III in numbers, means over the draws."""
    table = results.load_sweep(config, "curvature")
    columns = table[["p_min", "iteration", "d", "start", "expected_curvature"]]
    table["printed_column"] = [
        outcomes.printed_column(*row) for row in columns.itertuples(index=False)
    ]
    values = [
        *("p_min", "published_p_min", "existing_curvature", "expected_curvature"),
        *("existing_bound", "bound", "published_bound", "gap"),
    ]
    return _mean(table, ["sampling"], [*values, "start", "printed_column"])


def losses(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Table V: the printed formulas, and errors as printed and corrected, by m."""
    table, keys = read(config, "losses"), ["loss_name", "length"]
    data = _mean(table, keys, ["formula", "printed", "relative"])
    printed = results.published(config, "table5").rename(columns={"loss": "loss_name"})
    return data.merge(printed[["loss_name", "by_q"]], on="loss_name", how="left")


def reading_sentences(
    config: Config, product: Product, problems: list[str]
) -> pd.DataFrame:
    """Under how many readings the sentence on each figure holds."""
    return outcomes.holding(outcomes.margins(config, product.sweeps))


def privacy(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
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
    return data


def sensitivity(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Largest change of a release that was found, over the declared sensitivity."""
    table = results.load_sweep(config, "sensitivity")
    for name in ("strict", "published"):
        table[f"of_{name}"] = table["found"] / table[name]
    keys = ["release", "nodes", "update"]
    values = ["found", "strict", "published", "of_strict", "of_published"]
    return pd.DataFrame(table.groupby(keys, sort=False)[values].max().reset_index())


def rates(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Exponents of Algorithm 1's gap in t, and those of Theorem 1's bound."""
    swept = results.load_sweep(config, product.sweeps[0])
    return outcomes.gap_exponents(swept)


def proposition1(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Expected curvature over Proposition 1's bound, by sampling and correlation."""
    table = results.load_sweep(config, product.sweeps[0])
    data = _mean(table, ["sampling", "common"], ["curvature", "bound"])
    return data


def approximation(
    config: Config, product: Product, problems: list[str]
) -> pd.DataFrame:
    """Errors of partial gradient and oracle, and those that Assumption 2 allows."""
    swept = results.load_sweep(config, product.sweeps[0])
    return outcomes.approximation_summary(swept)


def sketch(config: Config, product: Product, problems: list[str]) -> pd.DataFrame:
    """Exponents in m and n of the errors that sketching adds to a partial gradient."""
    swept = results.load_sweep(config, product.sweeps[0])
    return outcomes.sketch_exponents(swept)
