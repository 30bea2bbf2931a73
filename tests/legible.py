"""What a reader of a journal needs of a figure: texts apart, large and dark enough."""

import itertools
from contextlib import contextmanager

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.lines import Line2D
from matplotlib.text import Text

LEAST_SIZE = 7.0  # points
LEAST_CONTRAST = 3.0  # with what lies behind (WCAG 1.4.11)
PAGE = 6.9  # inches: two columns
AIR = 0.4  # points that boxes of texts may share: they are taller than their letters


def faults(figure):
    """What is wrong with a figure, one sentence a fault; nothing if a journal takes it.

    Texts are those that are drawn, with numbers of ticks, titles and legends.
    """
    with recorded_texts() as drawn:
        figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3] / 255
    point = figure.dpi / 72
    boxes = {text: text.get_window_extent(renderer) for text in drawn}
    if figure.get_figwidth() > PAGE + 1e-9:
        yield f"wider than a page: {figure.get_figwidth():.2f} inches"
    for text, box in boxes.items():
        words = repr(text.get_text())
        if text.get_fontsize() < LEAST_SIZE - 1e-9:
            yield f"small: {words}, {text.get_fontsize():g} points"
        inside = box.x0 >= -point and box.y0 >= -point
        inside &= (
            box.x1 <= figure.bbox.x1 + point
            and box.y1 <= figure.bbox.y1 + point
        )
        if not inside:
            yield f"cut off: {words}"
        elif (
            contrast(to_rgb(text.get_color()), behind(pixels, box))
            < LEAST_CONTRAST
        ):
            yield f"pale: {words}"
    for (one, first), (two, second) in itertools.combinations(
        boxes.items(), 2
    ):
        wide = min(first.x1, second.x1) - max(first.x0, second.x0)
        high = min(first.y1, second.y1) - max(first.y0, second.y0)
        if min(wide, high) > AIR * point:
            yield f"overlap: {one.get_text()!r} and {two.get_text()!r}"
    for colour in strokes(figure):
        if contrast(colour, (1.0, 1.0, 1.0)) < LEAST_CONTRAST:
            yield f"pale: a stroke of {np.round(colour, 2)}"


@contextmanager
def recorded_texts():
    """The texts that are drawn meanwhile, each once."""
    drawn = {}
    own = Text.draw

    def draw(text, renderer, *more, **options):
        if text.get_visible() and text.get_text().strip():
            drawn[text] = None
        own(text, renderer, *more, **options)

    Text.draw = draw
    try:
        yield drawn
    finally:
        Text.draw = own


def behind(pixels, box):
    """The colour of most pixels around a text."""
    height = len(pixels)
    rows = slice(int(max(0, height - box.y1 - 1)), int(height - box.y0) + 1)
    columns = slice(int(max(0, box.x0 - 1)), int(box.x1) + 2)
    part = pixels[rows, columns].reshape(-1, 3)
    colours, counts = np.unique(part.round(2), axis=0, return_counts=True)
    return tuple(colours[counts.argmax()])


def strokes(figure):
    """Colours of all curves, points and bars, on white; grids and bands are none."""
    colours = set()
    for axes in figure.axes:
        for line in axes.lines:
            opaque = line.get_alpha() if line.get_alpha() is not None else 1.0
            if has_ink(line):
                colours.add(on_white(line.get_color(), opaque))
        for points in axes.collections:
            if isinstance(points, PathCollection):
                colours |= {
                    on_white(face, face[3]) for face in points.get_facecolors()
                }
        for bars in axes.containers:
            for bar in (
                patch for patch in bars if hasattr(patch, "get_facecolor")
            ):
                colours.add(
                    on_white(
                        bar.get_facecolor(), to_rgba(bar.get_facecolor())[3]
                    )
                )
    return colours


def has_ink(line: Line2D) -> bool:
    """Whether a line has a stroke or markers."""
    nothing = ("none", "None", "", " ", None)
    return (
        line.get_linestyle() not in nothing or line.get_marker() not in nothing
    )


def on_white(colour, opaque):
    """A colour of that opacity on a white page."""
    return tuple(1 - opaque * (1 - part) for part in to_rgb(colour))


def contrast(first, second):
    """Contrast of two colours, from 1 to 21 (WCAG 2.2, "contrast ratio")."""
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    """Relative luminance of a colour of three parts from 0 to 1."""
    parts = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in colour
    ]
    return float(np.dot(parts, (0.2126, 0.7152, 0.0722)))
