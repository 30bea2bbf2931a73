"""``dperm try problem=mine.csv target=y solvers=[dp_cd,mine] epsilon=1``.

Every method meets the same true epsilon under the strict accountant, minimises the same
objective with the same certified optimum, and is run afresh on seeds that did not
choose its setting.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel
from threadpoolctl import threadpool_limits

from dperm.config import compose, read
from dperm.direct import arrays, methods, shown
from dperm.direct.asked import Asked
from dperm.direct.files import Given, has_ones, load, slug
from dperm.direct.methods import Method
from dperm.erm.optimum import solve
from dperm.erm.problem import Problem
from dperm.locate import ConfigError
from dperm.papers.arena import own
from dperm.papers.arena.contest import Contest, Prices, Row, Seeds
from dperm.papers.arena.metrics import Split, split
from dperm.parallel import away
from dperm.pipeline import seeds
from dperm.present import drawing
from dperm.present.tables import made_of, save

log = logging.getLogger(__name__)

BESIDE = {  # what is taken beside nothing that was asked for, as far as they are able
    "logistic": ("dp_cd", "dp_gcd_gumbel", "dp_gd", "objective_perturbation"),
    "least_squares": ("dp_cd", "dp_gcd_gumbel", "dp_gd", "moments"),
}
FEWEST = 20  # records, of which a fifth is held out
OTHERS = ("dp_cd", "dp_gcd_gumbel", "dp_gd")


def tried(asked: Asked) -> str:
    """Compare the methods; the table in words.

    Raises
    ------
    ConfigError
        For whatever cannot be done as it was asked for.
    """
    start = time.perf_counter()
    chosen = [
        methods.method(name, asked.defaults, asked.grids)
        for name in dict.fromkeys(asked.solvers)
    ]
    found = load(asked)
    problem = scaled(asked, found.problem)
    chosen = chosen or _beside(asked, problem)
    for key in {*asked.defaults, *asked.grids} - {one.name for one in chosen}:
        raise ConfigError(f"defaults, grids: {key}: expected one of solvers=")
    _check_able(chosen, problem)
    zero = _zero(found)
    best = found.optimum
    log.info("F* = %.9g, certified to %.0e of it; w = 0 has relative error %.4g",
             best.value, max(best.gap / best.value, 1e-16), zero)  # fmt: skip
    known = _held_out(asked, problem, found.y)
    rows = [row for made in _runs(asked, chosen, found, problem, known) for row in made]
    table = shown.summary(rows, problem.epsilon)
    name = slug(asked.name or Path(asked.problem).stem)
    written = _written(asked, table, zero, name)
    log.info("%s", "\n".join(map(str, written)))
    log.info("%.0f seconds", time.perf_counter() - start)
    return shown.told(table, zero, tuple(asked.tunings), _ceiling(known))


def scaled(asked: Asked, problem: Problem) -> Problem:
    """The problem with the scales that were declared; else with its own.

    Raises
    ------
    ConfigError
        If but one kind of scale is declared: the other would be read off the data.
    """
    signed = problem.loss.name in arrays.SIGNED
    if signed and "label_scale" in asked.given:
        raise ConfigError(f"label_scale: {problem.loss.name} labels are signs")
    declares = [asked.feature_scale is not None, asked.label_scale is not None]
    if not any(declares):
        return problem
    if not (all(declares) or signed):
        raise ConfigError(
            "feature_scale, label_scale: expected a number for both, or for neither"
        )
    scales = np.full(problem.p, asked.feature_scale)
    if has_ones(asked):
        scales[-1] = 1.0  # of the column of ones
    return arrays.declared(problem, scales, asked.label_scale or 1.0)


def _beside(asked: Asked, problem: Problem) -> list[Method]:
    """Methods for one who named none: some that suit the loss."""
    names = BESIDE.get(problem.loss.name, OTHERS)
    every = [methods.method(name, asked.defaults, asked.grids) for name in names]
    return [one for one in every if not one.on(problem).obstacle()]


def _check_able(chosen: list[Method], problem: Problem) -> None:
    """Refuse a method that cannot do the problem, naming some that can."""
    for one in chosen:
        reason = one.on(problem).obstacle()
        if reason:
            names = BESIDE.get(problem.loss.name, OTHERS)
            able = [name for name in names
                    if not methods.method(name).on(problem).obstacle()]  # fmt: skip
            raise ConfigError(
                f"solver {one.name}: cannot do this problem: {reason}; expected "
                f"others, such as {', '.join(able)}"
            )


def _zero(found: Given) -> float:
    """Relative error of w = 0."""
    best = found.optimum.value
    start = float(found.problem.objective(np.zeros(found.problem.p))[0])
    return (start - best) / best


# --- runs -----------------------------------------------------------------------------


def _runs(
    asked: Asked,
    chosen: list[Method],
    found: Given,
    problem: Problem,
    known: Split | None,
) -> Iterator[list[Row]]:
    """Rows of every method, told as they come."""
    work = float(read("paper", "arena").sweeps["contest"].options["work"])
    for one in chosen:
        log.info("%s: %s of %d settings", one.section.label, ", ".join(asked.tunings),
                 len(one.grid))  # fmt: skip
    given = (problem, found.optimum.value, known, work)
    jobs = (away(runs_of, asked, one, *given) for one in chosen)
    made = Parallel(asked.workers, return_as="generator")(jobs)
    for k, (one, rows) in enumerate(zip(chosen, made, strict=True), 1):
        told = own.brief(pd.DataFrame(rows))
        log.info("%d of %d: %s: %s", k, len(chosen), one.section.label, told)
        yield rows


def runs_of(
    asked: Asked,
    one: Method,
    problem: Problem,
    optimum: float,
    known: Split | None,
    work: float,
) -> list[Row]:
    """Runs of one method under every tuning; a row each.

    Parameters
    ----------
    asked : Asked
    one : Method
    problem : Problem
    optimum : float
        F*.
    known : Split, optional
    work : float
        Settings that read more entries of the data are left out.
    """
    on, name = one.on(problem), {"solver": one.name, "algorithm": one.section.label}
    trained = None if known is None else one.on(scaled(asked, known.train))
    settings = [setting for setting in one.grid if on.work(setting) <= work]
    default = on.within(one.default, work)
    if not settings or default is None:
        reason = f"a run on {problem.n} x {problem.p} takes longer than is allowed"
        return [{**name, "tuning": "", "status": "gap", "reason": reason}]
    seed = seeds.seed(asked.seed, "try", problem.name, one.name, 0, 0)
    drawn = Seeds.of(seed, asked.fresh, asked.held)
    contest = Contest(on, optimum, settings, default, drawn, Prices(), known, trained)
    with threadpool_limits(1):
        rows = [*contest.rows(problem.epsilon, tuple(asked.tunings))]
    return [{"status": "ok", "reason": "", "seed": seed, **name, **row} for row in rows]


def _held_out(asked: Asked, problem: Problem, y: np.ndarray) -> Split | None:
    """The split for the metric, where there are enough records to be split."""
    if not asked.held or problem.n < FEWEST or problem.is_centred:
        return None
    return split(problem, y)


def _ceiling(known: Split | None) -> str:
    """What the metric is on the held-out fifth without privacy."""
    if known is None:
        return ""
    try:
        best = solve(known.train).w[None]
    except ArithmeticError:  # what is left may be separable
        return ""
    return f"held out, without privacy: {known.metric} {known.measure(best)[0]:.3f}"


def _written(asked: Asked, table: pd.DataFrame, zero: float, name: str) -> list[Path]:
    """Table and figure below results/try."""
    config = compose(
        [word for word in asked.overrides if word.split(".")[0] != "problem"]
    )
    folder = Path(config.output.results, "try", name)
    caption = (
        f"Relative error on {name}: mean of {asked.fresh} fresh runs with Student's "
        "95 % interval, neighbours by replacing a record, true epsilon under the "
        f"strict accountant; w = 0 has {zero:.4g}. Tuning over ten settings or the "
        "grid is not paid for in epsilon."
    )
    written = save(made_of(table.to_dict("records")), folder / "try", caption)
    figure, behind = shown.drawn(table, zero, name)
    return written + drawing.save(figure, behind, folder / "errors")
