"""Running a stage from the command line: ``python -m dperm.<stage> key=value ...``."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dperm import config as configuration
from dperm.schema import Config

Stage = Callable[[Config], Any]


def main(stage: Stage) -> None:
    """Run one stage on the configuration of the command line.

    Hydra's own flags (``--help``, ``--cfg job``, ``-m`` for multirun) work as usual.
    A refused configuration or a missing input ends with one line and exit code 1.
    """
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("dperm").setLevel(logging.INFO)
    logging.captureWarnings(True)
    arguments = sys.argv[1:]
    try:
        if any(argument.startswith("-") for argument in arguments):
            _with_hydra(stage)
        else:
            run(stage, configuration.compose(arguments))
    except (configuration.ConfigError, OSError, RuntimeError, ValueError) as error:
        place = own_place(error)
        raise SystemExit(f"{type(error).__name__}: {error}{place}") from error


def own_place(error: BaseException) -> str:
    """Where in a module of the reader's own an error arose; empty if in none."""
    own = [folder.parent for folder in configuration.conf_dirs()[:-1]]
    found = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename).parent in own:
            found = f" ({frame.filename}:{frame.lineno}, in {frame.name})"
    return found


def run(stage: Stage, config: Config) -> Any:
    """Run a stage with BLAS on one thread: its results would depend on their number."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return stage(config)


def _with_hydra(stage: Stage) -> None:
    import hydra

    configuration.register()

    @hydra.main(
        version_base="1.3",
        config_path=str(configuration.conf_dir()),
        config_name="config",
    )
    def composed(config: Any) -> None:
        run(stage, configuration.typed(config))

    composed()
