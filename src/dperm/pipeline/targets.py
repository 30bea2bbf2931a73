"""Which papers Snakemake's command line asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

TOPS = ("figures", "results")


def asked(command: Sequence[str], papers: Sequence[str]) -> list[str]:
    """The papers that the targets of a command line need; all where that is unclear.

    Snakemake tells a Snakefile of its targets only after it was read, so that they are
    taken from the command line by Snakemake's own parser.

    Parameters
    ----------
    command : sequence of str
        ``sys.argv``.
    papers : sequence of str
        All there are.

    Returns
    -------
    list of str
        In the order of ``papers``.
    """
    if "snakemake" not in (PurePath(part).stem for part in PurePath(command[0]).parts):
        return list(papers)
    # Imported by then, and by nobody else: Snakemake is what runs the Snakefile.
    from snakemake.cli import get_argument_parser

    given, _ = get_argument_parser().parse_known_args(list(command[1:]))
    found = [_of_target(target, papers) for target in given.targets]
    found += [job.wildcards_dict.get("paper") for job in given.target_jobs]
    if not found or not set(found) <= set(papers):
        return list(papers)
    return [paper for paper in papers if paper in found]


def _of_target(target: str, papers: Sequence[str]) -> str | None:
    """The paper a target is, or is a file of; None where another may be needed."""
    if target in papers:
        return target
    top, *below = PurePath(re.sub(r"^\./", "", target)).parts
    named = [part for part in below[:2] if part in papers]
    return named[0] if top in TOPS and len(named) == 1 else None
