"""The style of each method: one registry for all figures.

Colour-blind readers can distinguish the colours, which are Okabe and Ito's and Tol's,
darkened to a contrast of 3 : 1 with a white page (WCAG 1.4.11). Line styles and markers
distinguish curves in greyscale.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Style = dict[str, Any]  # colour, line style, marker: keywords of ``Axes.plot``


def style(color: str, line: Any = "-", marker: str = "") -> Style:
    """Keywords of ``Axes.plot``; without a marker if it is empty."""
    return {"color": color, "linestyle": line} | (
        {"marker": marker} if marker else {}
    )


_DASHES = (0, (5, 1))
_CHAIN = (0, (3, 1, 1, 1))
# label of a method: colour, line style, marker; no two methods agree in all three
METHODS: dict[str, tuple[str, Any, str]] = {
    "DP-CD": ("#0072B2", "-", "o"),
    "DP-CD-priv-cst": ("#009E73", "--", "s"),
    "DP-CD-cyclic": ("#4b9dcb", _DASHES, "d"),
    "DP-CD-uniform": ("#4b9dcb", ":", "D"),
    "DP-SGD": ("#D55E00", "-.", "^"),
    "DP-SGD, batches": ("#882255", _CHAIN, "<"),
    "DP-SGD, large batches": ("#D55E00", ":", ">"),
    "DP-SVRG": ("#CC79A7", _CHAIN, "v"),
    "DP-GCD": ("#CC79A7", _DASHES, "v"),
    "DP-GCD, GS-r": ("#CC79A7", _CHAIN, "x"),
    "DP-GCD, GS-s": ("#882255", "--", "P"),
    "DP-GCD, GS-q": ("#999933", ":", "X"),
    "DP-GCD, Gumbel": ("#882255", "-", "P"),
    "DP-SkGD single": ("#0072B2", "-", "D"),
    "DP-SkGD single IS": ("#c68900", "--", "s"),
    "DP-SkGD single IS (composite)": ("#c68900", "--", "D"),
    "DP-SkGD full": ("#009E73", _DASHES, "D"),
    "DP-SkGD 2 blocks": ("#882255", "-", "X"),
    "DP-SkGD 2 blocks IS": ("#882255", "--", "x"),
    "DP-SkGD 4 blocks": ("#4b9dcb", ":", "P"),
    "DP-SkGD 4 blocks IS": ("#4b9dcb", "--", "p"),
    "DP-SkGD 20 blocks": ("#999933", "-", "<"),
    "DP-SkGD 100 blocks": ("#999933", ":", ">"),
    "Objective perturbation": ("#000000", "-", "*"),
    "Approximate minima": ("#000000", "--", "x"),
    "Noisy moments": ("#c68900", "-", "h"),
    "AdaSSP": ("#c68900", ":", "d"),
    "DP-GD": ("#4b9dcb", "-", "s"),
    "DP-GD, private metric": ("#41a393", "--", "<"),
    "Private metric, adaptive clip": ("#332288", "-", "s"),
    "DP-Newton": ("#117733", "--", "^"),
    "Selection, then DP-GD": ("#999933", "-", "*"),
    "Iterative Hessian mixing": ("#882255", "-.", "h"),
    "diffprivlib": ("#595959", "-.", "x"),
    "DP-EBM of interpret": ("#882255", _CHAIN, "P"),
    "w = 0": ("#595959", ":", ""),
    "FW": ("#000000", _DASHES, "x"),
    "DP-FW": ("#8a8a8a", "-.", "+"),
}
# For methods that are not listed, in this order.
_HUES = ("#c68900", "#000000", "#117733", "#CC6677", "#332288", "#AA4499")
_STROKES: tuple[Any, ...] = ((0, (3, 1, 1, 1)), "-", "--", ":")
_MARKS = "xP*hdp"


def styles_of(methods: Iterable[str]) -> dict[str, Style]:
    """The styles of the methods of one figure.

    Parameters
    ----------
    methods : iterable of str
        Labels. One that ``METHODS`` does not list gets the next of the spare styles, in
        the order of first appearance; the first 24 differ.
    """
    names = list(dict.fromkeys(methods))
    spare = iter(range(len(names)))
    styles = {}
    for method in names:
        if method in METHODS:
            colour, line, marker = METHODS[method]
        else:
            turn, place = divmod(next(spare), len(_HUES))
            colour = _HUES[place]
            line = _STROKES[turn % 4]
            marker = _MARKS[place]
        styles[method] = style(colour.lower(), line, marker)
    return styles
