"""The block of README.md that shows the scorecard and three figures."""

from __future__ import annotations

import logging
from pathlib import Path

import pandas as pd

from dperm import schema
from dperm.locate import ConfigError
from dperm.pipeline import inputs
from dperm.report.claims import summary
from dperm.store import files as store

log = logging.getLogger(__name__)

README = Path("README.md")
BEGIN = "<!-- scorecard: written by `dperm readme` -->"
END = "<!-- end of scorecard -->"
FIGURES = ("dpgcd/figure1", "dpskgd/regimes", "dpbcfw/figure6")


def readme(config: schema.Config) -> Path:
    """Rewrite what stands between the two marks; nothing else is touched.

    Raises
    ------
    ConfigError
        If README.md does not have both marks, or there are no claims yet.
    """
    claims = inputs.results_folder(config, "claims.csv")
    if not claims.is_file():
        raise ConfigError(f"{claims} is not there; run `dperm claims` first")
    text = README.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ConfigError(f"{README}: expected the lines {BEGIN!r} and {END!r}, once")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    block = _block(config, pd.read_csv(claims))
    store.write_text(README, f"{before}{BEGIN}\n\n{block}\n\n{END}{after}")
    log.info("%s", README)
    return README


def _block(config: schema.Config, claims: pd.DataFrame) -> str:
    folder = inputs.results_folder(config).as_posix()
    parts = [
        summary(claims),
        f"[Every claim with its reason]({folder}/claims.md) and "
        f"[the report]({folder}/report/index.html), one page that works offline.",
    ]
    for name in FIGURES:
        path = inputs.figures_folder(config, f"{name}.png")
        if path.is_file():
            parts.append(f"![{name}]({path.as_posix()})")
    return "\n\n".join(parts)
