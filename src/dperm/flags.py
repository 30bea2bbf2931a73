"""Hydra's own flags on a stage: ``--cfg job``, ``--multirun``, ``--info``.

Hydra reads the command line and composes; each job's overrides are then composed again
by :mod:`dperm.core.experiment.config`, so that a stage sees the same configuration
with and without flags.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from typing import Any

from dperm.core.experiment import schema
from dperm.core.experiment.locate import conf_dir, conf_dirs

PAPER = re.compile(r"(paper=)([\w,-]+)")


def run(stage: Callable[[list[str]], Any], arguments: list[str]) -> None:
    """Call a stage on the overrides of every job that Hydra makes of a command line."""
    import hydra
    from hydra.core.hydra_config import HydraConfig

    register()
    sys.argv[1:] = [in_folders(word) for word in arguments]

    @hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")
    def job(_: Any) -> None:
        given = HydraConfig.get().overrides.task
        stage([re.sub(r"^(paper=[\w-]+)/paper$", r"\1", text) for text in given])

    job()


@functools.cache
def register() -> None:
    """Give Hydra the typed classes and the reader's own folder."""
    from hydra.core.config_store import ConfigStore
    from hydra.core.plugins import Plugins
    from hydra.plugins.search_path_plugin import SearchPathPlugin

    class OwnFolder(SearchPathPlugin):
        def manipulate_search_path(self, search_path: Any) -> None:
            for folder in conf_dirs()[:-1]:
                search_path.prepend("own", f"file://{folder}", anchor="main")

    ConfigStore.instance().store(name="schema", node=schema.Config)
    Plugins.instance().register(OwnFolder)


def in_folders(override: str) -> str:
    """The override as Hydra has to read it: a paper is a folder of its own."""
    found = PAPER.fullmatch(override)
    if found is None:
        return override
    return found[1] + ",".join(f"{name}/paper" for name in found[2].split(","))
