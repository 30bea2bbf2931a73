"""Functions of the Snakefile: its command line, its shell and what a run says."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.validation import one_of

TOPS = ("figures", "results")
OVERRIDES = {  # wildcards of a job to keys of overrides
    **{name: name for name in ("paper", "problem", "solver")},
    "name": "product",
}


def papers_of(command: Sequence[str], papers: Sequence[str]) -> list[str]:
    """Papers that the targets of a command line need; all papers if that is unclear.

    A Snakefile learns its targets only after it was read. Therefore they are taken from
    the command line, by Snakemake's own parser.

    Parameters
    ----------
    command : sequence of str
        ``sys.argv``.
    papers : sequence of str
        All papers.

    Returns
    -------
    list of str
        In the order of ``papers``.
    """
    if "snakemake" not in (PurePath(part).stem for part in PurePath(command[0]).parts):
        return list(papers)
    # Snakemake, which runs the Snakefile, has imported it already.
    from snakemake.cli import get_argument_parser

    options, _ = get_argument_parser().parse_known_args(list(command[1:]))
    found = [_of_target(target, papers) for target in options.targets]
    found += [job.wildcards_dict.get("paper") for job in options.target_jobs]
    if not found or not set(found) <= set(papers):
        return list(papers)
    return [paper for paper in papers if paper in found]


def _of_target(target: str, papers: Sequence[str]) -> str | None:
    """Paper that a target names or belongs to; None if others may be needed too."""
    if target in papers:
        return target
    top, *below = PurePath(re.sub(r"^\./", "", target)).parts
    named = [part for part in below[:2] if part in papers]
    return named[0] if top in TOPS and len(named) == 1 else None


def answers(command: Sequence[str], results: str, papers: Sequence[str]) -> str:
    """Last lines of a run: paths of requested files, else papers' ``complete.txt``."""
    texts = [
        Path(results, paper, "complete.txt") for paper in papers_of(command, papers)
    ]
    files = [word for word in command if word.startswith(TOPS) and Path(word).is_file()]
    found = [path.read_text(encoding="utf-8") for path in texts if path.is_file()]
    return "\n".join(files or ["".join(found).rstrip()])


def overrides(settings: dict[str, Any], command: Sequence[str] = ()) -> list[str]:
    """Hydra overrides of Snakemake's ``--config``.

    Parameters
    ----------
    settings : dict
        ``scale``, and ``set``: overrides separated by blanks, quoted as in a shell.
    command : sequence of str
        ``sys.argv``, from which ``set`` is taken verbatim: Snakemake cuts quotes off
        its ends and reads the rest as YAML, where `` #`` begins a comment.

    Raises
    ------
    ConfigError
        For a key that is neither ``scale`` nor ``set``, or a quote that is not closed.
    """
    for key in settings:
        one_of("--config", key, ("scale", "set"))
    text = settings.get("set", "")
    given = [word[4:] for word in command if word.startswith("set=") and text != ""]
    try:
        words = shlex.split(given[-1] if given else str(text or ""))
    except ValueError as error:
        raise ConfigError(
            f"--config: set: {text}: expected quotes as in a shell: {error}"
        ) from error
    return [f"scale={settings.get('scale', 'full')}", *words]


# --- jobs -----------------------------------------------------------------------------


def prefix(folder: str) -> str:
    """Shell prefix of every job: lets Python find the package next to the Snakefile.

    Environments then need no installed dperm. ``PYTHONPATH`` is set inside the shell,
    because Snakemake removes it from the environments that it creates. This prefix
    replaces Snakemake's own.
    """
    path = shlex.quote(str(Path(folder, "src"))).replace("{", "{{").replace("}", "}}")
    own = "${{PYTHONPATH:+:$PYTHONPATH}}"
    return f"set -euo pipefail; export PYTHONPATH={path}{own}; "


def keys(names: Any) -> str:
    """Wildcards of a job as overrides of its stage."""
    return " ".join(
        f"{key}={getattr(names, name)}"
        for name, key in OVERRIDES.items()
        if hasattr(names, name)
    )


def begin(workflow: Any) -> None:
    """Note when a workflow began, for its manifest, and remove the limit on job rates.

    With such a limit, which Snakemake sets by default, every ended job leaves a timer
    that fires every second until the workflow ends.
    """
    os.environ["DPERM_STARTED"] = str(time.monotonic())
    workflow.scheduler.job_rate_limiter = None


def audit_key(part: str) -> str:
    """The key of the command that makes ``solvers/<name>`` or a table of the audit."""
    folder, _, name = part.rpartition("/")
    return f"solver={name}" if folder else f"product={name}"


def attempt(dataset: str, folder: str = "data") -> float:
    """A number that changes each time if no source had the data, to fetch again."""
    path = Path(folder, "fetched", dataset, "fetch.json")
    try:
        status = json.loads(path.read_text(encoding="utf-8"))["status"]
    except (OSError, ValueError, TypeError, KeyError):  # fetch reports the fault
        return 0.0
    return time.time() if status != "ok" else 0.0
