"""The arena on one problem of the reader's own: ``dperm arena problem=mine``.

What ``dperm try`` does, with every method of the arena, tuned in every way.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from dperm.compare import results, sources
from dperm.compare.contestants import Method
from dperm.compare.metrics import split
from dperm.compare.run import Plan, runs, write
from dperm.core.experiment import plan, schema
from dperm.core.experiment.grid import points
from dperm.papers.arena import outcomes
from dperm.pipeline import digests, products

log = logging.getLogger(__name__)

FREE = ("default", "paid")  # tunings that cost nothing beyond the target


def recommend(config: schema.Config) -> list[Path]:
    """Run every method on ``problem=...`` and say which one to take.

    Raises ConfigError if its data cannot be had.
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
