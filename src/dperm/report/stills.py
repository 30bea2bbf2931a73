"""The still picture of a panel: without scripts, in print, and before both.

The script replaces it by a chart that can be read with a keyboard; the labels, scales
and looks are the same.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from dperm.report.charts import outline

WIDTH, HEIGHT = 360, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 10, 8, 40


def still(panel: dict[str, Any]) -> Markup:
    """A panel as SVG, for a reader without scripts and for print."""
    curves = unshared(panel["curves"])
    xs = [x for curve in curves for x in curve["x"]]
    if "seconds" in panel["x"]:  # 0 seconds have no place on a logarithmic axis
        xs = [x for x in xs if x]
    across = _Scale(xs, LEFT, WIDTH - RIGHT, math.inf if 0 in xs else 12)
    up = _Scale([y for c in curves for y in c["mean"]], HEIGHT - BOTTOM, TOP, 8)
    parts = [_grid(across, up)]
    parts += [_line(curve, across, up) for curve in curves]
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 6}" '
        f'text-anchor="middle">{escape(panel["x"])}</text>'
        f'<text transform="translate(11 {(HEIGHT - BOTTOM) / 2:g}) rotate(-90)" '
        f'text-anchor="middle">{escape(panel["y"])}</text>'
    )
    told = f"{panel['name']}: {panel['y']} against {panel['x']}"
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(told)}">{"".join(parts)}</svg>'
    )


def unshared(curves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Curves with an x each; None stands for that of the one before."""
    found, x = [], None
    for curve in curves:
        x = x if curve["x"] is None else curve["x"]
        found.append(curve | {"x": x})
    return found


class _Scale:
    """Values to places; logarithmic where they are positive and span more."""

    def __init__(self, values: list[Any], start: float, end: float, wide: float):
        known = np.array([v for v in values if v is not None], dtype=float)
        above = known[known > 0]
        few = len(known) - len(above)
        self.log = bool(
            len(above) > 1 and (known >= 0).all() and 20 * few <= len(known)
            and above.max() / above.min() > wide
        )  # fmt: skip
        used = above if self.log else known
        low, high = (used.min(), used.max()) if len(used) else (0.0, 1.0)
        if low == high:
            low, high = (low / 2, high * 2) if self.log else (low - 0.5, high + 0.5)
        self.low, self.high = self._ends(low, high)
        self.start, self.end = start, end

    def _ends(self, low: float, high: float) -> tuple[float, float]:
        if self.log:
            factor = (high / low) ** 0.04
            return low / factor, high * factor
        return low - 0.04 * (high - low), high + 0.04 * (high - low)

    def __call__(self, value: float | None) -> float | None:
        """Where a value stands; nowhere if the axis has no place for it."""
        if value is None or (self.log and value <= 0):
            return None
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = (math.log(each) for each in (low, high, at))
        share = min(max((at - low) / (high - low), -0.2), 1.2)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values on the axis: powers of ten, or about five even steps."""
        if self.log:
            first = math.ceil(math.log10(self.low))
            last = math.floor(math.log10(self.high))
            if last > first:
                step = max(1, math.ceil((last - first + 1) / 6))
                return [10.0**power for power in range(first, last + 1, step)]
        raw = (self.high - self.low) / 5
        unit = 10.0 ** math.floor(math.log10(raw))
        step_ = next(k * unit for k in (1, 2, 5, 10) if k * unit >= raw)
        first_ = math.ceil(self.low / step_)
        found = [step_ * k for k in range(first_, int(self.high / step_) + 1)]
        return [value for value in found if value > 0 or not self.log]


def _grid(across: _Scale, up: _Scale) -> str:
    """Lines and numbers of both axes."""
    lines, below, beside = "", "", ""
    for value in across.ticks():
        x = f"{across(value):.0f}"
        lines += f"M{x} {TOP}V{HEIGHT - BOTTOM}"
        below += f'<text x="{x}" y="{HEIGHT - BOTTOM + 14}">{_tick(value)}</text>'
    for value in up.ticks():
        y = up(value) or 0.0
        lines += f"M{LEFT} {y:.0f}H{WIDTH - RIGHT}"
        beside += f'<text x="{LEFT - 4}" y="{y + 4:.0f}">{_tick(value)}</text>'
    return (f'<path class="axis" d="{lines}"/><g text-anchor="middle">{below}</g>'
            f'<g text-anchor="end">{beside}</g>')  # fmt: skip


def _tick(value: float) -> str:
    if value and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:.4g}"


def _line(curve: dict[str, Any], across: _Scale, up: _Scale) -> str:
    """A curve to two pixels, with a few markers on it."""
    points = sorted(
        (x, y)
        for x, y in zip(map(across, curve["x"]), map(up, curve["mean"]), strict=True)
        if x is not None and y is not None
    )
    if len(points) > 2:
        x, y = np.array(points).T
        points = [points[k] for k in outline(x, y, 2.0)]
    places = [f"{x:.0f} {y:.0f}" for x, y in points]
    dash = f' stroke-dasharray="{curve["dash"]}"' if curve["dash"] else ""
    line = f'<path d="M{"L".join(places)}"{dash}/>'
    marks = points if len(points) <= 8 else points[::5]
    drawn = "".join(
        f'<use href="#{curve["mark"]}" x="{x:.0f}" y="{y:.0f}"/>' for x, y in marks
    )
    return (
        f'<g class="{curve["look"]} line">{line if len(places) > 1 else ""}{drawn}</g>'
    )
