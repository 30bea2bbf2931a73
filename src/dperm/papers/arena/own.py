"""A user's own problem or method in the arena.

``dperm arena problem=mine`` runs every method of the arena on the problem, tuned in
every way, as ``dperm try`` does. ``dperm arena method=mine`` runs the method on the
problems and at the epsilons of ``results/arena/arena.csv``. A cell is a problem at an
epsilon; intervals resample whole data sets. The method is *ahead* of another, or
*behind* it, where the interval of the share of cells in which its error is smaller lies
on one side of a half. Elsewhere it is *tied*.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
from joblib import Parallel

from dperm.compare import contestants, results, sources
from dperm.compare.contest import Row
from dperm.compare.contestants import Method
from dperm.compare.metrics import split
from dperm.compare.run import Plan, runs, runs_of, write
from dperm.core.experiment import files as store
from dperm.core.experiment import locate, plan, schema
from dperm.core.experiment.grid import points
from dperm.core.experiment.locate import ConfigError
from dperm.papers.arena import outcomes, ranking
from dperm.pipeline import digests, products
from dperm.pipeline.workers import away
from dperm.present.tables import markdown, save

log = logging.getLogger(__name__)

TUNINGS = ("default", "grid", "paid")
FREE = ("default", "paid")  # tunings within the target epsilon
KEPT = Path("results/arena/arena.csv")
MINE = "(this method) "
HEAD = ["tuning", "against", "ahead", "ci_low", "ci_high", "wins", "cells", "verdict"]


def recommend(config: schema.Config) -> list[Path]:
    """Run every method on ``problem=...`` and recommend one.

    Raises ConfigError if its data are not available.
    """
    source, what = sources.of_configuration(config), config.paper.sweeps["contest"]
    every = products.sweep_points(config, replace(what, small=None))
    grids, defaults = what.options["grids"], what.options["defaults"]
    methods = [
        Method(
            digests.solver_of(name), defaults[name], [*points(grids[name], axes=None)]
        )
        for name in dict.fromkeys(point["solver"] for point in every)
    ]
    known = split(source.problem, source.y)
    counts = (what.options[key] for key in ("fresh", "held", "work"))
    every_method = Plan("arena", methods, source, known, config.seed, *counts)
    table = outcomes.means(runs(every_method, config.workers))
    for line in results.recommendations(table, source.zero, FREE):
        log.info("%s", line)
    name, paper = config.problem.name, config.paper.name
    return write(
        table,
        source.zero,
        name,
        f"Every method on {name}; w = 0 has relative error {source.zero:.4g}.",
        plan.results_folder(config, paper, "own", name) / "arena",
        plan.figures_folder(config, paper) / f"own_{name}",
    )


def score(config: schema.Config, name: str, problems: Sequence[str] = ()) -> list[Path]:
    """Run a method and write its standing in the arena.

    Parameters
    ----------
    config : schema.Config
        Of the arena.
    name : str
        A solver's YAML, or a Python file here.
    problems : sequence of str
        Of the kept results; all, if empty.

    Returns
    -------
    list of Path
        Cells, head-to-head, ranks, and a paragraph for LaTeX.

    Raises
    ------
    ConfigError
        If there is no such method, there are no kept results, a problem is not among
        them, or the method ran on no problem.
    """
    method = contestants.method(name)
    kept = known_results()
    wanted = [*problems] or [*kept["problem"].unique()]
    for problem in set(wanted) - {*kept["problem"]}:
        raise ConfigError(f"problem={problem}: expected one of {KEPT}")
    jobs = (away(_runs, config, method, problem) for problem in wanted)
    every: list[Row] = []
    for k, rows in enumerate(Parallel(config.workers, return_as="generator")(jobs)):
        reason = rows[0].get("reason", "") if len(rows) == 1 else ""
        log.info("%d of %d: %s %s", k + 1, len(wanted), wanted[k], reason)
        every += rows
    mine = results.means(pd.DataFrame(every), lambda _: method.section.label)
    if not (mine["status"] == "ok").any():
        raise ConfigError(f"method={name}: it ran on no problem: {mine['reason'][0]}")
    label = MINE + method.section.label
    data = dict(zip(kept["problem"], kept["data"], strict=True))
    mine = mine.assign(algorithm=label, data=mine["problem"].map(data))
    ran = mine.loc[mine["status"] == "ok", "problem"].unique()
    both = pd.concat([kept[kept["problem"].isin(ran)], mine], ignore_index=True)
    heads, ranks = head_to_head(both, label), places(both, label)
    text = paragraph(
        method.section.label, heads, ranks, len({data[one] for one in ran})
    )
    log.info("%s\n\n%s\n\n%s", markdown(heads), markdown(ranks), text)
    folder = plan.results_folder(config, config.paper.name, "methods", name)
    written = save(mine, folder / "cells", "")
    caption = f"{method.section.label} against each method of the arena."
    written += save(heads, folder / "head_to_head", caption)
    written += save(ranks, folder / "ranks", "")
    store.write_text(folder / "paragraph.tex", f"{text}\n")
    return [*written, folder / "paragraph.tex"]


def known_results() -> pd.DataFrame:
    """The kept means with public scales.

    Raises
    ------
    ConfigError
        If they are missing: only a clone of the repository has them.
    """
    path = locate.home() / KEPT
    if not path.is_file():
        raise ConfigError(f"{path}: expected the kept results, which a clone has")
    table = pd.read_csv(path)
    table["public_scales"] = table["public_scales"].astype(float) == 1
    gap = table["status"].eq("gap")
    return table[(table["public_scales"] & table["epsilon"].notna()) | gap]


def _runs(config: schema.Config, method: Method, problem: str) -> list[Row]:
    """Runs of the method on one problem, or one row with the reason for none."""
    options = config.paper.sweeps["contest"].options
    known = {"problem": problem, "solver": method.name, "public_scales": True}
    at = plan.at_problem(config, problem)
    try:
        source = sources.of_configuration(at)
    except ConfigError as error:
        return [{**known, "status": "unavailable", "reason": str(error)}]
    counts = (config.seed, options["fresh"], 0, options["work"])
    tunings = TUNINGS if len(method.grid) > 1 else TUNINGS[:1]
    epsilons = tuple(options["epsilons"])
    one = Plan("arena", [method], source, None, *counts, tunings, None, epsilons)
    return runs_of(one, method)


def head_to_head(both: pd.DataFrame, label: str) -> pd.DataFrame:
    """Share of cells in which the method is ahead of each other one, by tuning."""
    rows = []
    for tuning in TUNINGS:
        errors = ranking.cells(both, tuning)
        for other in errors.columns.drop(label, errors="ignore"):
            pair = errors.reindex(columns=[label, other]).dropna()
            if pair.empty:
                continue
            won = (pair[label] < pair[other]) + 0.5 * (pair[label] == pair[other])
            low, high = ranking.resampled(won)
            verdict = "ahead" if low > 0.5 else "behind" if high < 0.5 else "tied"
            wins = int((pair[label] < pair[other]).sum())
            row = [tuning, other, float(won.mean()), low, high, wins, len(won), verdict]
            rows.append(dict(zip(HEAD, row, strict=True)))
    return pd.DataFrame(rows, columns=HEAD)


def places(both: pd.DataFrame, label: str) -> pd.DataFrame:
    """Place of the method by mean share of rank, over all epsilons and at each."""
    rows = []
    epsilons = sorted(both["epsilon"].dropna().unique())
    for tuning in TUNINGS:
        for epsilon in (None, *epsilons):
            errors = ranking.cells(both, tuning, epsilon=epsilon)
            if label not in errors:
                continue
            found = ranking.standing(errors.dropna(subset=[label]))
            place = int(found.index[found["algorithm"] == label][0])
            own = found.loc[place, ["share", "ci_low", "ci_high", "cells", "best"]]
            of = {"epsilon": epsilon or "all", "place": place + 1, "of": len(found)}
            rows.append({"tuning": tuning, **of, **own.to_dict()})
    return pd.DataFrame(rows)


def paragraph(name: str, heads: pd.DataFrame, ranks: pd.DataFrame, sets: int) -> str:
    """A paragraph in LaTeX on the standing of the method."""
    lines = []
    for tuning, words in (
        ("default", "Without tuning"),
        ("grid", "With its grid searched for free"),
        ("paid", "With a private search of its grid"),
    ):
        mine, own = (table[table["tuning"] == tuning] for table in (heads, ranks))
        if mine.empty:
            continue
        first = own[own["epsilon"] == "all"].iloc[0]
        counts = mine["verdict"].value_counts()
        ahead, behind, tied = (counts.get(k, 0) for k in ("ahead", "behind", "tied"))
        lines.append(
            f"{words}, {name} has place {first['place']} of {first['of']} by mean "
            f"share of rank ({first['share']:.2f}, 95\\,\\% interval "
            f"[{first['ci_low']:.2f}, {first['ci_high']:.2f}] over {sets} data sets); "
            f"it is significantly ahead of {ahead} methods, behind {behind} and tied "
            f"with {tied}."
        )
    text = " ".join(lines).replace("_", "\\_")
    return f"{text} All methods meet the same true $\\varepsilon$ (replace-one)."
