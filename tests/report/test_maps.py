"""Figures without a line are shown as they were drawn."""

import base64
import io

import pandas as pd
from PIL import Image

from dperm.report import figures


def test_a_map_is_shown_as_its_picture_and_lines_are_not(tmp_path):
    stem = tmp_path / "map"
    Image.new("RGB", (30, 20), "red").save(stem.with_suffix(".png"))
    table = {"panel": ["a", "b"], "algorithm": ["X", "X"], "x": [1, 1]}
    found = figures._picture(stem, pd.DataFrame(table))
    kind, text = found.split(",")
    assert kind == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(text))) as image:
        assert image.size == (30, 20)
        assert image.convert("RGB").getpixel((3, 3)) == (255, 0, 0)
    lines = pd.DataFrame({**table, "panel": ["a", "a"], "x": [1, 2]})
    assert figures._picture(stem, lines) == ""
    assert figures._picture(tmp_path / "none", pd.DataFrame(table)) == ""
