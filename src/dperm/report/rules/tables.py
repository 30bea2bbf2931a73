"""Rules about all cells of a printed table together."""

from __future__ import annotations

from typing import Any

from dperm.pipeline import results
from dperm.report import tuned
from dperm.report.controls import Control, controlled
from dperm.report.evidence import AbsentError, Evidence
from dperm.report.verdicts import CAVEAT, CLOSE, NOT, REPRODUCED, Finding


def _changed(name: str) -> Control:
    return Control(name, lambda options: options | {"change": name})


ALONE = 0.05  # of a control, which is one test
CHANGES: dict[str, tuned.Change] = {
    "w = 0": tuned.nothing_learnt,
    "noise x 0.7": tuned.noisier(0.7),
    "noise x 1.4": tuned.noisier(1.4),
    "errors x 0.7": tuned.scaled(0.7),
    "errors x 1.4": tuned.scaled(1.4),
}


@controlled(*map(_changed, CHANGES))
def pooled(
    evidence: Evidence,
    published: str,
    file: str,
    keys: list[str],
    column: str,
    problem: str,
    spread: float,
    level: float,
    draws: str,
    decimals: int | None = None,
    digits: int | None = None,
    redrawn: dict[str, float] | None = None,
    change: str = "",
) -> Finding:
    """The printed means of a problem, pooled, are those of our noise and solvers.

    Not reproduced where the pooled ratio differs from 1 at ``level``, two-sided; with a
    caveat where it does, within ``CLOSE``. The controls are other noise, as measured.
    """
    printed = results.published(evidence.config, published)
    given: dict[str, Any] = {
        "file": file, "keys": keys, "column": column, "decimals": decimals,
        "digits": digits, "spread": spread, "redrawn": redrawn or {}, "draws": draws,
    }  # fmt: skip
    altered = CHANGES[change] if change else None
    cells = tuned.grouped(tuned.cells(evidence, printed, given, altered)).get(problem)
    if not cells:
        raise AbsentError(f"{evidence.path(file)} has no law for {problem}")
    found = tuned.pooled(cells)
    ratio = found.ratio
    close = 1 / CLOSE <= ratio.value <= CLOSE
    differs = found.probability < (ALONE if change else level)
    verdict = REPRODUCED if not differs else CAVEAT if close else NOT
    reason = (
        f"printed over the median of its law, {len(cells)} cells weighted by how much "
        f"they move with the noise; p = {found.probability:.2g}, level {level:g}"
    )
    return Finding(verdict, reason, ratio, "1")
