"""The command ``dperm try``, which imports what runs need only when it runs them."""

from __future__ import annotations

import logging
import os
import sys

from dperm.compare.request import parse, usage
from dperm.core.experiment.locate import ConfigError

DEBUG = "DPERM_DEBUG"  # set to anything: what fails shows its traceback


def main() -> None:
    """Run what the command line asks for; whatever is wrong ends in one line."""
    words = sys.argv[1:]
    if {"-h", "--help"} & {*words}:
        print(usage())
        return
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("dperm").setLevel(logging.INFO)
    try:
        request = parse(words)
        from threadpoolctl import threadpool_limits

        from dperm.compare import run

        with threadpool_limits(1):  # of what is loaded by now
            print(run.compare(request))
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        more = "" if isinstance(error, ConfigError) else f"; {DEBUG}=1 shows where"
        raise SystemExit(text + more) from error
