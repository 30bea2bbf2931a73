"""The audit stage: one solver, or a table of them all."""

from __future__ import annotations

import logging
from pathlib import Path

import pandas as pd

from dperm import config as configuration
from dperm import schema
from dperm.config import ConfigError
from dperm.experiments import inputs, store
from dperm.experiments.provenance import product_digest
from dperm.privacy.audit import ladder
from dperm.tables import writing

log = logging.getLogger(__name__)

PRODUCTS = ("epsilon", "controls")
REPETITIONS = 100
_HOLDS = (
    "Every statistical bound is wrong with probability at most"
    f" {ladder.FULL.level:.2g}, all of the table together with"
    f" {1 - ladder.CONFIDENCE:.2g} (Bonferroni)."
)
CAPTIONS = {
    "epsilon": "Claimed: what the calibration promises, on small loud data at the"
    " delta given. True: what a sound accountant makes of the same noise (inf: no"
    " bound can be proved). Audited: what an attack on whole transcripts or on the"
    " published weights proves. Tightness: largest shift of the noise that a neighbour"
    f" needs over the declared one, 1 at most. {_HOLDS}",
    "controls": "How often each rung caught a mechanism: broken ones, which one rung at"
    f" least must catch, and sound ones, audited {REPETITIONS} times, of which at most"
    " one in twenty may be flagged.",
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
    if config.product not in PRODUCTS:
        raise ConfigError(
            f"product={config.product}: the audit has {', '.join(PRODUCTS)}"
        )
    made = _epsilon(config) if config.product == "epsilon" else _controls(config)
    stem = inputs.results_folder(config, "audit") / config.product
    written = writing.save(made, stem, CAPTIONS[config.product])
    for path in written:
        log.info("%s", path)
    return written


def digest(name: str) -> str:
    """Digest of what a solver's audit depends on."""
    config = configuration.compose([f"solver={name}"]).solver
    code = product_digest("privacy", "audit.ladder")
    return store.digest([code, config.algorithm, config.options])


def _effort(config: schema.Config) -> ladder.Effort:
    return ladder.FULL if config.scale.name == "full" else ladder.SMALL


def _path(config: schema.Config, name: str) -> Path:
    return inputs.results_folder(config, "audit", "solvers") / f"{name}.csv"


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
    return [path]


def _epsilon(config: schema.Config) -> writing.Table:
    found = []
    for name in configuration.available("solver"):
        try:
            found.append(pd.read_csv(_path(config, name), keep_default_na=False))
        except pd.errors.EmptyDataError:  # it releases nothing
            continue
    table = ladder.epsilons(pd.concat(found, ignore_index=True))
    shown = table.drop(columns=["delta", "confidence"])
    for key in shown.select_dtypes("number"):
        shown[key] = shown[key].map(writing.number)
    return writing.Table(table, shown)


def _controls(config: schema.Config) -> writing.Table:
    small = config.scale.name != "full"
    broken = ladder.controls(_effort(config), config.seed, config.workers)
    times = 2 if small else REPETITIONS
    sound = ladder.alarms(times, config.seed, config.workers)
    table = pd.concat([broken, sound], ignore_index=True)
    for name in ladder.missed(table):
        log.warning("no rung caught: %s", name)
    return writing.Table(table, table.astype(str))
