"""What figures of readings show, and when they explain a private curve below FW."""

import itertools

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from dperm.core.experiment.config import compose
from dperm.papers.dpbcfw import figures, outcomes
from dperm.pipeline import products
from papers.dpbcfw.test_products import write


def rows_of(**ends):
    """Curves of two points that end there."""
    return [
        {"panel": "one", "algorithm": name, "x": x, "mean": value}
        for name, end in ends.items()
        for x, value in ((0, 1.0), (1, end))
    ]


@pytest.mark.parametrize(("ours", "told"), [(0.4, True), (0.6, False)])
def test_a_private_curve_below_fw_is_explained(ours, told):
    panels = figures.Curves(1)
    panels.rows = rows_of(**{"FW": 0.5, "DP-FW": 0.3, "K = 2": 0.9, "K = 4": ours})
    figure, rows = panels.explained()
    assert (figure.get_suptitle() == figures.LARGER) == told and rows is panels.rows
    plt.close(figure)


def swept():
    """Runs of all families whose loss is told by their keys."""
    points = itertools.product((0.5, 2.0), ("mean", "sum"), ("total", "iteration"))
    plain = {**outcomes.PLAIN, "own": False, "iterations": 20}
    rows = []
    for eta, objective, per in points:
        at = {**plain, "radius": eta, "objective": objective, "per": per}
        rows.append({**at, "method": "fw", "relative": 0.9})
        rows.append({**at, "method": "dp_fw", "relative": 0.8})
        rows += [{**at, "method": "dp_bcfw", "nodes": K, "relative": 1 / K}
                 for K in outcomes.NODES]  # fmt: skip
        for key, values in outcomes.FAMILIES.values():
            rows += [{**at, "method": "dp_bcfw", key: value, "relative": 0.5}
                     for value in values if value != outcomes.PLAIN[key]]  # fmt: skip
    return pd.DataFrame(rows)


def test_panels_are_figures_under_readings():
    lines = figures.of_workers(swept())
    figure, rows = figures.by_reading(lines, "radius", "eta", 20)
    assert len(figure.axes) == 4 * 4
    table = pd.DataFrame(rows).set_index(["panel", "algorithm", "x"])["mean"]
    assert table["figure 5, sum, iteration, T 20", "K = 16", 0.5] == 1 / 16
    assert table["figure 5, mean, total, T 20", "DP-FW", 2.0] == 0.8
    for panel, name in (("figure 6", "$\\epsilon$ = 0.001"), ("figure 7", "1 : 9"),
                        ("figure 8", "m = 800")):  # fmt: skip
        assert table[f"{panel}, sum, total, T 20", name, 2.0] == 0.5
    plt.close(figure)


def test_data_that_cannot_be_had_are_said_and_left_out(tmp_path):
    out = [f"output.results={tmp_path}", f"output.figures={tmp_path}"]
    config = compose(["paper=dpbcfw", "product=figure9_radii", *out])
    gone = [{"status": "unavailable", "reason": "no network"}]
    write(config, "readings_real", gone, {"problem": "rcv1_small"}, 0)
    written = products.figure(config)
    svg = next(path for path in written if path.suffix == ".svg").read_text()
    assert "data not available" in svg
    assert outcomes.every(config, ["readings_real"]).empty
