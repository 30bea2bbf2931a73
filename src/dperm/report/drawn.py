"""What a figure's SVG says: labels of axes, texts and strokes of legends.

The data behind a figure have no labels. The picture has them, so the page cannot say
other words, or show a family of curves in other colours, than the picture does.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_SVG = "{http://www.w3.org/2000/svg}"
_COLOUR = re.compile(r"stroke: (#[0-9a-f]{6})")
_DASHES = re.compile(r"stroke-dasharray: ([\d.,]+)")


Stroke = tuple[str, str]  # colour and dashes of a line


@dataclass
class Panel:
    """One set of axes as drawn; empty texts where there are none."""

    x: str = ""
    y: str = ""
    legend: dict[str, Stroke] = field(default_factory=dict)  # by label


@dataclass
class Drawn:
    """Panels in the order they were drawn, and the legend outside of them."""

    panels: list[Panel] = field(default_factory=list)
    legend: dict[str, Stroke] = field(default_factory=dict)

    def panel(self, place: int, count: int) -> Panel:
        """The panel at a place among ``count``; labels that all share fill gaps.

        With another number of panels than the data have only the labels are known
        that no two panels differ in.
        """
        matched = len(self.panels) == count
        own = self.panels[place] if matched else Panel()
        legend = self.legend | own.legend
        if not matched:
            for each in self.panels:
                legend = each.legend | legend
        return Panel(own.x or self._shared("x", matched),
                     own.y or self._shared("y", matched), legend)  # fmt: skip

    def _shared(self, name: str, matched: bool) -> str:
        found = [getattr(each, name) for each in self.panels if getattr(each, name)]
        return found[0] if found and (matched or len(set(found)) == 1) else ""


def read(path: Path) -> Drawn:
    """Labels and legends of a figure; nothing where there is no readable SVG."""
    try:
        builder = ET.TreeBuilder(insert_comments=True)
        root = ET.parse(path, ET.XMLParser(target=builder)).getroot()
    except (OSError, ET.ParseError):
        return Drawn()
    found = Drawn()
    for group in root.iter(f"{_SVG}g"):
        name = group.get("id", "")
        if name.startswith("axes_"):
            panel = _panel(group, int(name.removeprefix("axes_")))
            if panel.x or panel.y or panel.legend:
                found.panels.append(panel)
        elif name.startswith("figure_"):
            found.legend |= _legend(group)
    return found


def _panel(group: ET.Element, number: int) -> Panel:
    labels = {}
    for axis in _named(group, "matplotlib.axis_"):
        texts = [_text(each) for each in _named(axis, "text_")]
        labels[axis.get("id")] = " ".join(texts)
    first = f"matplotlib.axis_{2 * number - 1}"
    second = f"matplotlib.axis_{2 * number}"
    return Panel(labels.get(first, ""), labels.get(second, ""), _legend(group))


def _legend(group: ET.Element) -> dict[str, Stroke]:
    """Label to stroke, of the legends right inside of a group."""
    found = {}
    for legend in _named(group, "legend_"):
        drawn = ("", "")
        for entry in legend:
            if entry.get("id", "").startswith("text_"):
                found[_text(entry)] = drawn
            elif not entry.get("id", "").startswith("patch_"):
                drawn = _stroke(entry) or drawn
    return found


def _stroke(entry: ET.Element) -> Stroke | None:
    """How the first line of a legend's entry is drawn; dashes as long as in print."""
    for each in entry.iter():
        style = each.get("style", "")
        colour, dashes = _COLOUR.search(style), _DASHES.search(style)
        if colour:
            return colour[1], dashes[1].replace(",", " ") if dashes else ""
    return None


def _named(group: ET.Element, start: str) -> Iterator[ET.Element]:
    return (each for each in group if each.get("id", "").startswith(start))


def _text(group: ET.Element) -> str:
    """A text as it was written, formulas as LaTeX: those stand in comments."""
    comments = [each.text or "" for each in group.iter() if each.tag is ET.Comment]
    if comments:
        return " ".join(" ".join(comments).split())
    return " ".join("".join(group.itertext()).split())
