"""The block of README.md that shows the scorecard and some figures."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pandas as pd

from dperm import schema
from dperm.locate import ConfigError
from dperm.pipeline import plan
from dperm.report.scorecard import summary
from dperm.store import files as store

log = logging.getLogger(__name__)

README = Path("README.md")
BEGIN = "<!-- scorecard: written by `dperm readme`"  # and the figures, "with a/b, c/d"
END = "<!-- end of scorecard -->"
_MARK = re.compile(re.escape(BEGIN) + r"(?: with ([\w/-]+(?:, [\w/-]+)*))? -->")


def readme(config: schema.Config) -> Path:
    """Rewrite what stands between the two marks; nothing else is touched.

    The first mark names the figures that are shown: ``with dpgcd/figure1, ...``.

    Raises
    ------
    ConfigError
        If README.md does not have both marks, or there are no claims yet.
    """
    claims = plan.results_folder(config, "claims.csv")
    if not claims.is_file():
        raise ConfigError(f"{claims} is not there; run `dperm claims` first")
    text = README.read_text(encoding="utf-8")
    marks = list(_MARK.finditer(text))
    if len(marks) != 1 or text.count(END) != 1:
        raise ConfigError(
            f"{README}: expected the lines '{BEGIN} -->' and {END!r}, once"
        )
    before, after = text[: marks[0].end()], text[text.index(END) :]
    names = marks[0][1].split(", ") if marks[0][1] else []
    block = _block(config, pd.read_csv(claims), names)
    store.write_text(README, f"{before}\n\n{block}\n\n{after}")
    log.info("%s", README)
    return README


def _block(config: schema.Config, claims: pd.DataFrame, figures: list[str]) -> str:
    folder = plan.results_folder(config).as_posix()
    parts = [
        summary(claims),
        f"[Every claim with its reason]({folder}/claims.md) and "
        f"[the report]({folder}/report/index.html), one page that works offline.",
    ]
    for name in figures:
        path = plan.figures_folder(config, f"{name}.png")
        if path.is_file():
            parts.append(f"![{name}]({path.as_posix()})")
    return "\n\n".join(parts)
