"""Tables of Maranjyan et al. 2024 (DP-SkGD): bounds, errors, and what both say."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from dperm.core.experiment import results, schema
from dperm.papers.dpskgd import bounds, partitions, rates
from dperm.papers.dpskgd import finalists as rounds
from dperm.papers.dpskgd.comparisons import QUESTIONS, comparisons
from dperm.papers.dpskgd.directions import CONTROL
from dperm.papers.dpskgd.exponents import fitted
from dperm.papers.dpskgd.noise import costs
from dperm.present.intervals import student, verdict, widest
from dperm.present.tables import Rows, Table, made_of, number, readable


def utility(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Table 1: symbols, and numbers for each problem and sampling that is run."""
    found = results.load(config, problems)
    rows = (bounds.terms(config, name, found[name]) for name in problems)
    return made_of([row for group in rows for row in group])


def theory(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Theorem 4.2 beside the measured excess; ranks within each problem."""
    return made_of(_theory_rows(config, product, problems))


def _theory_rows(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Rows:
    found, kind = results.load(config, problems), product.calibration
    return [
        row
        for name in problems
        for row in bounds.beside_errors(config, name, found[name], kind)
    ]


def exponents(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Exponent in d of each regime's gain: measured, and of the rows of Table 1."""
    return made_of(fitted(results.load_sweep(config, "regimes")))


def blocks(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Relative error of every partition where smoothness comes in groups.

    Intervals are over replicates, each tuned anew; step and passes are medians.
    """
    table = results.load_sweep(config, "blocks")
    rows = []
    for key, group in table.groupby(["correlation", "ratio", "method"], sort=False):
        values = partitions.errors(group)
        low, high = student(values)
        rows.append(
            {"correlation": key[0], "ratio": key[1], "method": key[2],
             "relative_error": values.mean(), "ci_low": low, "ci_high": high,
             "tunings": len(values), "runs": len(group),
             "step": group["step"].median(), "passes": group["passes"].median(),
             "factor": group["factor"].iloc[0]}
        )  # fmt: skip
    data = pd.DataFrame(rows).sort_values(["correlation", "ratio"], kind="stable")
    return made_of(data.to_dict("records"))


def noise(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Theorem 4.1's noise, its Renyi curve's and the exact one; cost of the first."""
    found = (bounds.loaded(config, name)[0] for name in problems)
    return made_of([row for problem in found if problem for row in costs(problem)])


def theorem(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Theorem 4.2 at its own parameters: the excess beside the bound."""
    return made_of(rates.beside_bounds(_swept(config, product)))


def rate(config: schema.Config, product: schema.Product, problems: list[str]) -> Table:
    """Exponents in n and epsilon at the theorem's parameters, beside its own."""
    return made_of(rates.exponents(_swept(config, product)))


def orders(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Which samplings beat single uniform draws, and whether Table 1's rows say so.

    The data have every comparison; shown are counts by row. ``options``: ``keys``,
    columns that make a problem.
    """
    rows = rates.orders(_swept(config, product), product.options["keys"])
    return Table(pd.DataFrame(rows), readable(pd.DataFrame(rates.by_row(rows))))


def placement(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """Importance against uniform draws by where w* sits among the M_j.

    Inside Section 4.3.2's regime the steep coordinates are the farthest from w = 0.
    """
    keys = product.options["keys"]
    rows = rates.orders(_swept(config, product), keys)
    inside = {True: "inside", False: "outside"}
    return made_of([{"regime": inside[row["placement"] > 0], **row} for row in rows])


def transcripts(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """The band of the controls by the number of transcripts."""
    keys = product.options["keys"]
    return made_of(rates.enough(_swept(config, product), keys))


def _swept(config: schema.Config, product: schema.Product) -> pd.DataFrame:
    return results.load_sweep(config, product.sweeps[0])


def reading(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """One page: what helps, what hurts, and whether Table 1 said so."""
    beside = _theory_rows(config, product, problems)
    rows = with_epochs(comparisons(config, product, problems), beside)
    lines = _answers(rows)
    ranks = bounds.rank_correlations(beside)
    lines += [_rank_line(row) for row in ranks]
    regimes, groups = (
        results.load_sweep(config, name) for name in ("regimes", "blocks")
    )
    lines += [_regime_line(row) for row in fitted(regimes)]
    lines += [_alignment_line(row) for row in partitions.alignment(groups)]
    return Table(pd.DataFrame(rows), pd.DataFrame(lines).fillna(""))


def finalists(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> Table:
    """The comparisons of the reading, after one more round of every tuning."""
    found = rounds.loaded(config, _swept(config, product), problems)
    rows = comparisons(config, product, problems, found)
    rows = with_epochs(rows, _theory_rows(config, product, problems))
    return Table(pd.DataFrame(rows), pd.DataFrame(_answers(rows)).fillna(""))


def _answers(rows: Rows) -> list[dict[str, str]]:
    """The band, counts of each question, and its first two line by line."""
    told = (*list(QUESTIONS)[:2], CONTROL)
    counts = [_summary(question, rows) for question in (*QUESTIONS, CONTROL)]
    return [_band(rows), *counts, *(_line(r) for r in rows if r["question"] in told)]


def with_epochs(rows: Rows, beside: Rows) -> Rows:
    """Comparisons with the fewer epochs T that Theorem 4.2 has for the two methods.

    Strongly convex case; where T is negative the theorem does not apply.
    """
    epochs = {(row["problem"], row["algorithm"]): row["theorem_epochs"]
              for row in beside}  # fmt: skip
    known = (
        [epochs.get((row["problem"], row[name]), math.nan) for name in
         ("first", "second")]
        for row in rows
    )  # fmt: skip
    return [row | {"epochs": min(both)} for row, both in zip(rows, known, strict=True)]


def _band(rows: list[dict[str, Any]]) -> dict[str, str]:
    """The rule, with what the controls say about it."""
    controls = [row for row in rows if row["question"] == CONTROL]
    if not controls:
        return {"what": "band of the controls", "measured": "no control"}
    wrong = sum(row["verdict"] != "undecided" for row in controls)
    band = number(widest([row["ratio"] for row in controls]))
    return {
        "what": "band of the controls: a factor below it decides nothing",
        "measured": f"{band}; by the interval alone {wrong} of {len(controls)} "
        "controls would be decided",
    }


def _summary(question: str, rows: list[dict[str, Any]]) -> dict[str, str]:
    asked = [row for row in rows if row["question"] == question]
    count = {
        verdict: sum(row["verdict"] == verdict for row in asked)
        for verdict in ("helps", "hurts", "undecided")
    }
    decided = count["helps"] + count["hurts"]
    right = {
        key: sum(row[f"{key}_right"] == "yes" for row in asked)
        for key in ("convex", "strong")
    }
    return {
        "what": question,
        "measured": f"better in {count['helps']}, worse in {count['hurts']}, undecided "
        f"in {count['undecided']} of {len(asked)}",
        "convex row": f"direction right in {right['convex']} of {decided}",
        "strongly convex row": f"direction right in {right['strong']} of {decided}",
    }


def _line(row: dict[str, Any]) -> dict[str, str]:
    said = {
        key: f"{number(row[f'predicted_{key}'], 2)} {row[f'{key}_right']}".strip()
        for key in ("convex", "strong")
    }
    return {
        "what": f"{row['problem']}: {row['first']} / {row['second']}",
        "measured": _ratio(row),
        "convex row": said["convex"],
        "strongly convex row": said["strong"],
    }


def _regime_line(row: dict[str, Any]) -> dict[str, str]:
    interval = f"[{number(row['ci_low'])}, {number(row['ci_high'])}]"
    return {
        "what": f"Section 4.3, {row['regime']}: {row['worse']} / {row['better']}, "
        f"n = {row['n']}, exponent in d",
        "measured": f"{number(row['exponent'])} {interval}",
        "convex row": number(row["convex_row"]),
        "strongly convex row": number(row["strong_row"]),
    }


def _rank_line(row: dict[str, Any]) -> dict[str, str]:
    return {
        "what": f"{row['problem']}: rank correlation of bound and error, "
        f"{row['methods']} methods",
        "convex row": number(row["convex"], 2),
        "strongly convex row": number(row["strongly_convex"], 2),
    }


def _alignment_line(row: dict[str, Any]) -> dict[str, str]:
    where = f"groups, M ratio {row['spread']:g}, correlation {row['correlation']:g}"
    return {
        "what": f"{where}: {row['first']} / {row['second']}",
        "measured": _ratio(row),
    }


def _ratio(found: dict[str, Any]) -> str:
    """A ratio with its interval and its verdict, its own where it has one."""
    low, high = (number(found[key], 2) for key in ("ci_low", "ci_high"))
    said = found.get("verdict", verdict(found))
    return f"{number(found['ratio'], 2)} [{low}, {high}], {said}"
