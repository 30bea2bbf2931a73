"""Command lines of the pipeline's own commands; their help imports nothing else."""

from __future__ import annotations

import argparse
import math

SHARE = 0.005  # default share of settings and points that ``dperm verify`` runs again


def verify(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``dperm verify``."""
    parser.add_argument(
        "what", nargs="*", help="papers (default: all), and key=value"
    )
    text = f"share of the settings that is run again ({SHARE}; 0: none)"
    parser.add_argument("--replay", type=_share, default=SHARE, help=text)
    parser.add_argument(
        "--seed", type=int, help="that chooses them (default: fresh)"
    )
    text = "what is absent is no fault: verify the results of a part"
    parser.add_argument("--partial", action="store_true", help=text)
    parser.add_argument(
        "--json", action="store_true", help="counts and faults as JSON"
    )


def _share(text: str) -> float:
    """A number from 0 to 1."""
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(
            f"expected a number from 0 to 1, found {text}"
        )
    return share
