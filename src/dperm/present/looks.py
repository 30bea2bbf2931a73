"""What each method looks like: one registry for all figures.

Colours are Okabe and Ito's and Tol's, told apart by the colour-blind; line styles and
markers tell the curves apart in greyscale.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Look = dict[str, Any]  # colour, line style, marker: keywords of ``Axes.plot``

# label of a method: colour, line style, marker
METHODS: dict[str, tuple[str, Any, str]] = {
    "DP-CD": ("#0072B2", "-", "o"),
    "DP-CD-priv-cst": ("#009E73", "--", "s"),
    "DP-CD-cyclic": ("#56B4E9", (0, (5, 1)), "d"),
    "DP-CD-uniform": ("#56B4E9", ":", "D"),
    "DP-SGD": ("#D55E00", "-.", "^"),
    "DP-SGD, batches": ("#882255", (0, (3, 1, 1, 1)), "<"),
    "DP-SVRG": ("#CC79A7", (0, (4, 1, 1, 1)), "v"),
    "DP-GCD": ("#CC79A7", (0, (5, 1)), "v"),
    "DP-GCD, GS-r": ("#F0E442", (0, (3, 1, 1, 1)), "x"),
    "DP-GCD, GS-s": ("#882255", "--", "P"),
    "DP-GCD, GS-q": ("#999933", ":", "X"),
    "DP-GCD, Gumbel": ("#882255", "--", "P"),
    "DP-GCD, permute-and-flip": ("#999933", ":", "X"),
    "DP-SkGD single": ("#0072B2", "-", "o"),
    "DP-SkGD single IS": ("#E69F00", "--", "s"),
    "DP-SkGD single IS (composite)": ("#E69F00", "--", "s"),
    "DP-SkGD full": ("#009E73", (0, (5, 1)), "D"),
    "DP-SkGD 2 blocks": ("#882255", "-", "X"),
    "DP-SkGD 2 blocks IS": ("#882255", "--", "x"),
    "DP-SkGD 4 blocks": ("#56B4E9", ":", "P"),
    "DP-SkGD 4 blocks IS": ("#56B4E9", "--", "p"),
    "DP-SkGD 20 blocks": ("#999933", "-", "<"),
    "DP-SkGD 100 blocks": ("#999933", ":", ">"),
    "DP-SkGD 2-nice": ("#44AA99", "-", "h"),
    "DP-SkGD 4-nice": ("#44AA99", ":", "*"),
    "FW": ("#000000", (0, (5, 1.5)), "x"),
    "DP-FW": ("#8a8a8a", "-.", "+"),
    "NoisySFW": ("#0072B2", "-", "o"),
    "NoisySFW, all records": ("#56B4E9", "--", "s"),
    "PolySFW": ("#CC79A7", (0, (5, 1)), "D"),
    "PhasedSGD": ("#009E73", (0, (3, 1, 1, 1)), "^"),
    "DP-SGD, one pass": ("#000000", ":", "v"),
    "DP-FW, full batches": ("#D55E00", "-.", "P"),
    "DP mirror descent, full batches": ("#E69F00", "-.", "X"),
}
# Of methods that are not listed, in this order.
_HUES = ("#E69F00", "#000000", "#117733", "#CC6677", "#332288", "#AA4499")
_STROKES: tuple[Any, ...] = ((0, (3, 1, 1, 1)), "-", "--", ":")
_MARKS = "xP*hdp"


def of(methods: Iterable[str]) -> dict[str, Look]:
    """The looks of the methods of one figure.

    Parameters
    ----------
    methods : iterable of str
        Labels. One that ``METHODS`` does not list gets the next of the spare looks, in
        the order of first appearance; the first 24 differ.
    """
    named = list(dict.fromkeys(methods))
    spare = iter(range(len(named)))
    return {
        name: _look(METHODS[name] if name in METHODS else _spare(next(spare)))
        for name in named
    }


def _look(known: tuple[str, Any, str]) -> Look:
    colour, line, marker = known
    return {"color": colour, "linestyle": line, "marker": marker}


def _spare(index: int) -> tuple[str, Any, str]:
    turn, place = divmod(index, len(_HUES))
    return _HUES[place], _STROKES[turn % len(_STROKES)], _MARKS[place]
