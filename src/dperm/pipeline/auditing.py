"""The audit stage: one solver, or a table of them all."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from dperm.accountants.random_stopping import converted, renyi_curve, tuned_epsilon
from dperm.audit import ladder
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, results, schema
from dperm.core.experiment.config import with_paper
from dperm.core.experiment.locate import ConfigError, available
from dperm.core.privacy.calibration import Calibration
from dperm.pipeline import seals
from dperm.present import tables as writing

log = logging.getLogger(__name__)

REPETITIONS = 100
_HOLDS = (
    "Every statistical bound is wrong with probability at most"
    f" {ladder.FULL.level:.2g}, all of the table together with"
    f" {1 - ladder.CONFIDENCE:.2g} (Bonferroni)."
)
CAPTIONS = {
    "epsilon": "Claimed: what the calibration promises, on small loud data at the"
    " delta given. True: what a sound accountant makes of the same noise (inf: no"
    " bound can be proved), between the proved bounds low and high, given what is"
    " taken to be public. Audited: what is proved from below, on the worst pair of"
    " data sets that was found; exact where it follows from measured laws of the"
    " releases, statistical where runs were sampled. Reached: audited over true;"
    " where it is little, the reason. Tightness: largest shift of the noise that a"
    f" neighbour needs over the declared one, 1 at most. {_HOLDS}",
    "controls": "How often each rung caught a mechanism: broken ones, which one rung at"
    f" least must catch, and sound ones, audited {REPETITIONS} times. {_HOLDS}",
    "tuning": "What it would cost to choose the setting privately: as many settings"
    " are tried as the grid has, on average, and the best is published (random"
    " stopping, Papernot and Steinke 2022), by three distributions of their number."
    " This accounting is in Rényi terms; renyi_epsilon is that of one run.",
}


def audit(config: schema.Config) -> list[Path]:
    """Audit the solver, or write the table that ``product`` names.

    Raises
    ------
    ConfigError
        If there is no such table.
    """
    if config.product is None:
        return _solver(config)
    made = PRODUCTS.get(config.product)
    if made is None:
        known = ", ".join(PRODUCTS)
        raise ConfigError(f"product={config.product}: the audit has {known}")
    stem = plan.results_folder(config, "audit") / config.product
    read = _read(config)
    seals.check(config, read)
    written = writing.save(made(config), stem, CAPTIONS[config.product])
    seals.seal(config, "audit", written, of=read)
    for path in written:
        log.info("%s", path)
    return written


def _read(config: schema.Config) -> list[Path]:
    """What a table of the audit is made of."""
    if config.product == "epsilon":
        return [_path(config, name) for name in available("solver")]
    if config.product != "tuning":
        return []
    papers = (with_paper(config, name) for name in available("paper"))
    folder = plan.results_folder
    return [
        folder(paper, paper.paper.name, *run, "ledger.json")
        for paper in papers
        for run in plan.runs(paper)
    ]


def _effort(config: schema.Config) -> ladder.Effort:
    return ladder.FULL if config.scale.name == "full" else ladder.SMALL


def _path(config: schema.Config, name: str) -> Path:
    return plan.results_folder(config, "audit", "solvers") / f"{name}.csv"


def _solver(config: schema.Config) -> list[Path]:
    chosen = config.solver
    given = (chosen.name, chosen.algorithm, chosen.options)
    found = ladder.solver(*given, _effort(config), config.seed)
    for row in found.itertuples():
        sign = "CAUGHT" if row.caught else "passed"
        text = f"{row.measured:.4g} of {row.bound:.4g}"
        names = f"{row.subject}, {row.calibration}"
        log.info("%-32s %-12s %s  %s  %s", names, row.rung, sign, text, row.note)
    path = _path(config, chosen.name)
    store.write_text(path, found.to_csv(index=False))
    seals.seal(config, "audit", [path])
    return [path]


def _epsilon(config: schema.Config) -> writing.Table:
    found = []
    for name in available("solver"):
        try:
            found.append(pd.read_csv(_path(config, name), keep_default_na=False))
        except pd.errors.EmptyDataError:  # it releases nothing
            continue
    table = ladder.epsilons(pd.concat(found, ignore_index=True))
    return writing.Table(table, _rounded(table.drop(columns=["delta", "confidence"])))


def _rounded(table: pd.DataFrame) -> pd.DataFrame:
    rounded = table.copy()
    for key in rounded.select_dtypes("float"):
        rounded[key] = rounded[key].map(writing.number)
    return rounded


def _controls(config: schema.Config) -> writing.Table:
    small = config.scale.name != "full"
    broken = ladder.controls(_effort(config), config.seed, config.workers)
    times = 2 if small else REPETITIONS
    sound = ladder.alarms(times, config.seed, config.workers)
    table = pd.concat([broken, sound], ignore_index=True)
    for name in ladder.missed(table):
        log.warning("no rung caught: %s", name)
    return writing.Table(table, table.astype(str))


def _tuning(config: schema.Config) -> writing.Table:
    """Every ledger that the papers' runs have left, run once and tuned privately."""
    rows = []
    for name in available("paper"):
        paper = with_paper(config, name)
        for problem, chosen in plan.runs(paper):
            rows += _tuned(paper, problem, chosen)
    table = pd.DataFrame(rows)
    return writing.Table(table, _rounded(table))


def _tuned(config: schema.Config, problem: str, chosen: str) -> list[dict]:
    folder = plan.results_folder(config, config.paper.name, problem, chosen)
    config = replace(config, solver=replace(config.solver, name=chosen))
    counts = Counter(point["passes"] for point in plan.grid_points(config))
    try:
        entries = results.ledgers(config, problem, chosen)
    except FileNotFoundError:
        log.info("%s has not run", folder)
        return []
    found = [(e["passes"], Calibration.from_dict(e["calibrated"])) for e in entries]
    return [
        {
            "paper": config.paper.name,
            "problem": problem,
            "solver": chosen,
            "calibration": one.calibration,
            "passes": passes,
            "settings": counts[passes],
            "claimed_epsilon": one.claimed_epsilon,
            "true_epsilon": one.true_epsilon,
            **_costs(one, counts[passes]),
        }
        for passes, one in found
        if counts[passes] > 1 and math.isfinite(one.true_epsilon)
    ]


def _costs(one: Calibration, settings: int) -> dict[str, float]:
    """Epsilon of one run in Rényi terms, and of random stopping on top of it."""
    costs = {"renyi_epsilon": converted(renyi_curve(one.ledger), one.delta)}
    for kind in ("logarithmic", "geometric", "poisson"):
        costs[kind] = tuned_epsilon(one.ledger, one.delta, settings, kind)
    return costs


PRODUCTS: dict[str, Callable[[schema.Config], writing.Table]] = {
    "epsilon": _epsilon,
    "controls": _controls,
    "tuning": _tuning,
}
