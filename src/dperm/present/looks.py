"""What each method looks like: one registry for all figures.

Colours are Okabe and Ito's and Tol's, told apart by the colour-blind, darkened as far
as a white page asks (3 : 1, WCAG 1.4.11); line styles and markers tell the curves apart
in greyscale.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Look = dict[str, Any]  # colour, line style, marker: keywords of ``Axes.plot``


def look(color: str, line: Any = "-", marker: str = "") -> Look:
    """Keywords of ``Axes.plot``; no marker where there is none."""
    return {"color": color, "linestyle": line} | ({"marker": marker} if marker else {})


_DASHES, _CHAIN = (0, (5, 1)), (0, (3, 1, 1, 1))
# label of a method: colour, line style, marker; no two have all three in common
METHODS: dict[str, tuple[str, Any, str]] = {
    "DP-CD": ("#0072B2", "-", "o"),
    "DP-CD-priv-cst": ("#009E73", "--", "s"),
    "DP-CD-cyclic": ("#56B4E9", _DASHES, "d"),
    "DP-CD-uniform": ("#56B4E9", ":", "D"),
    "DP-SGD": ("#D55E00", "-.", "^"),
    "DP-SGD, batches": ("#882255", _CHAIN, "<"),
    "DP-SGD, large batches": ("#D55E00", ":", ">"),
    "DP-SVRG": ("#CC79A7", _CHAIN, "v"),
    "DP-GCD": ("#CC79A7", _DASHES, "v"),
    "DP-GCD, GS-r": ("#CC79A7", _CHAIN, "x"),
    "DP-GCD, GS-s": ("#882255", "--", "P"),
    "DP-GCD, GS-q": ("#999933", ":", "X"),
    "DP-GCD, Gumbel": ("#882255", "-", "P"),
    "DP-GCD, permute-and-flip": ("#999933", "-.", "X"),
    "DP-SkGD single": ("#0072B2", "-", "D"),
    "DP-SkGD single IS": ("#E69F00", "--", "s"),
    "DP-SkGD single IS (composite)": ("#E69F00", "--", "D"),
    "DP-SkGD full": ("#009E73", _DASHES, "D"),
    "DP-SkGD 2 blocks": ("#882255", "-", "X"),
    "DP-SkGD 2 blocks IS": ("#882255", "--", "x"),
    "DP-SkGD 4 blocks": ("#56B4E9", ":", "P"),
    "DP-SkGD 4 blocks IS": ("#56B4E9", "--", "p"),
    "DP-SkGD 20 blocks": ("#999933", "-", "<"),
    "DP-SkGD 100 blocks": ("#999933", ":", ">"),
    "DP-SkGD 2-nice": ("#44AA99", "-", "h"),
    "DP-SkGD 4-nice": ("#44AA99", ":", "*"),
    "Objective perturbation": ("#000000", "-", "*"),
    "Approximate minima": ("#000000", "--", "x"),
    "Output perturbation": ("#8a8a8a", "--", "p"),
    "Noisy moments": ("#E69F00", "-", "h"),
    "AdaSSP": ("#E69F00", ":", "d"),
    "DP-GD": ("#56B4E9", "-", "s"),
    "DP-GD, private metric": ("#44AA99", "--", "<"),
    "DP-Newton": ("#D55E00", _DASHES, "h"),
    "DP-GD, correlated noise": ("#56B4E9", "-.", "p"),
    "DP-GD, last iterate": ("#56B4E9", "-", "<"),
    "DP-FTRL": ("#44AA99", "-", "X"),
    "Selection, then DP-GD": ("#999933", "-", "*"),
    "Gaussian mixing": ("#882255", ":", "D"),
    "Iterative Hessian mixing": ("#882255", "-.", "h"),
    "FW": ("#000000", _DASHES, "x"),
    "DP-FW": ("#8a8a8a", "-.", "+"),
    "NoisySFW": ("#0072B2", "-", "h"),
    "NoisySFW, all records": ("#56B4E9", "--", "s"),
    "PolySFW": ("#CC79A7", _DASHES, "D"),
    "PhasedSGD": ("#009E73", _CHAIN, "^"),
    "DP-SGD, one pass": ("#000000", ":", "v"),
    "DP-FW, full batches": ("#D55E00", "-.", "P"),
    "DP mirror descent, full batches": ("#E69F00", "-.", "X"),
}
# Of methods that are not listed, in this order.
_HUES = ("#E69F00", "#000000", "#117733", "#CC6677", "#332288", "#AA4499")
_STROKES: tuple[Any, ...] = ((0, (3, 1, 1, 1)), "-", "--", ":")
_MARKS = "xP*hdp"
_SVG_DASHES = {"-": "", "--": "7 3", "-.": "7 3 2 3", ":": "2 3"}


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
    looks = {}
    for name in named:
        if name in METHODS:
            colour, line, marker = METHODS[name]
        else:
            turn, place = divmod(next(spare), len(_HUES))
            colour, line, marker = _HUES[place], _STROKES[turn % 4], _MARKS[place]
        looks[name] = look(readable(colour), line, marker)
    return looks


def dashes(line: Any) -> str:
    """A line style of matplotlib as ``stroke-dasharray``; empty for a solid line."""
    if isinstance(line, tuple):
        return " ".join(f"{2 * each:g}" for each in line[1])
    return _SVG_DASHES.get(line, "")


def readable(colour: str, ground: str = "#ffffff", least: float = 3.0) -> str:
    """The colour, mixed with as little black or white as its ground asks for.

    Parameters
    ----------
    colour, ground : str
        As ``#rrggbb``.
    least : float
        Contrast that is wanted; what the ground allows where that is less.
    """
    target = max(("#000000", "#ffffff"), key=lambda end: contrast(end, ground))
    pairs = list(zip(_parts(colour), _parts(target), strict=True))
    for percent in range(101):
        share = percent / 100
        mixed = "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)
        if contrast(mixed, ground) >= least:
            return mixed
    return target


def contrast(first: str, second: str) -> float:
    """Contrast of two colours, from 1 to 21 (WCAG 2.2, "contrast ratio")."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [each / 255 for each in _parts(colour)]
    light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]


def _parts(colour: str) -> list[int]:
    return [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
