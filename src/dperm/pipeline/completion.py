"""The last stage of a paper: everything is there, and the rows give what is shown."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment.results import load_sweep
from dperm.pipeline import verify

log = logging.getLogger(__name__)
AXES = ("passes", "step", "clip")  # of a setting


class IncompleteError(RuntimeError):
    """Results that could not be made; the text has the reasons."""


def complete(config: schema.Config) -> Path:
    """Verify a paper, and write ``complete.txt`` with the best setting of each problem.

    Raises
    ------
    IncompleteError
        If a problem's data are unavailable. Everything else has been made.
    NotVerifiedError
        If tables, figures or a few lanes are not what their rows and settings give.
    """
    folder = plan.results_folder(config, config.paper.name)
    if missing := dict(_missing(config)):
        lines = [f"{name}: {reason}" for name, reason in missing.items()]
        raise IncompleteError("made all but\n" + "\n".join(lines))
    if faults := verify.verify(config, verify.SHARE, secrets.randbits(32), made=True):
        raise verify.NotVerifiedError("\n".join(["not what the rows give:", *faults]))
    figures = plan.figures_folder(config, config.paper.name)
    lines = [f"{config.paper.name}: figures in {figures}, tables in {folder}"]
    text = "\n".join([*lines, *_winners(config, folder)]) + "\n"
    store.write_text(folder / "complete.txt", text)
    log.info(text.strip())
    return folder / "complete.txt"


def _missing(config: schema.Config) -> Iterator[tuple[str, str]]:
    """Problems and sweeps without data, with the reasons."""
    folder = plan.results_folder(config, config.paper.name)
    runs = {run: folder.joinpath(*run, "tune.parquet") for run in plan.runs(config)}
    tables = {problem: store.read_table(path) for (problem, _), path in runs.items()}
    for name in config.paper.sweeps:
        tables[f"sweep {name}"] = load_sweep(config, name)
    for name, table in tables.items():
        lost = table["status"] == "unavailable"
        if lost.any():
            yield name, str(table.loc[lost, "reason"].iloc[0])


def _winners(config: schema.Config, folder: Path) -> Iterable[str]:
    """Yield for every problem the solver and setting with the least fresh mean."""
    best: dict[str, tuple[float, str]] = {}
    for problem, solver in plan.runs(config):
        rows = store.read_table(folder / problem / solver / "evaluate.parquet")
        last = rows[rows["checkpoint"] == rows["passes"]]
        last = last[last["calibration"] == config.paper.calibrations[0]]
        for setting, error in last.groupby(list(AXES))["relative_error"].mean().items():
            said = ", ".join(f"{k} {v:g}" for k, v in zip(AXES, setting, strict=True))
            found = (float(error), f"{plan.label(config, solver)} ({said})")
            best[problem] = min(best.get(problem, found), found)
    for problem, (error, name) in best.items():
        yield f"  {problem}: least relative error {error:.3g}, {name}"
