"""The stage that writes the page and the explorer."""

from __future__ import annotations

import logging
from pathlib import Path

from dperm.config import schema
from dperm.report import page, texts
from dperm.storage import files as store

log = logging.getLogger(__name__)


def report(config: schema.Config) -> list[Path]:
    """Write the page, and beside it the explorer, which Git does not hold.

    Raises ConfigError if there are no claims yet.
    """
    from dperm.report.explorer import explore  # its libraries start threads

    root = Path(config.output.results)
    path = root / "report" / "index.html"
    store.write_text(path, page.page(config, texts.judged(root), path.parent))
    log.info("%s", path)
    return [path, *explore(config)]
