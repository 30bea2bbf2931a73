"""Curves of DP-SCO's figures that lie on one another are all seen."""

import numpy as np

from dperm.papers.dpsco.figures import interleaved


def test_curves_on_one_line_take_turns():
    styles = interleaved(["p = 1.1", "p = 1.5", "p = 1.75"]).values()
    places = np.arange(0.5, 60.0)
    drawn = np.zeros(places.size)
    for style in styles:
        offset, (dash, gap) = style["linestyle"]
        drawn += (places + offset) % (dash + gap) < dash
    assert (drawn == 1).all()
    assert {style["markevery"] for style in styles} == {(0, 3), (1, 3), (2, 3)}
