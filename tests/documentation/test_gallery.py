"""Every script of the gallery runs and draws a picture."""

import os
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

GALLERY = Path(__file__).parents[2] / "docs/gallery"
SCRIPTS = sorted(GALLERY.glob("plot_*.py"))


def test_there_are_twelve():
    assert len(SCRIPTS) == 12


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_draws_a_picture(script, monkeypatch):
    here = Path.cwd()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    try:
        runpy.run_path(str(script), run_name="__main__")
        assert plt.get_fignums()
        for number in plt.get_fignums():
            assert any(axes.has_data() for axes in plt.figure(number).axes)
    finally:
        plt.close("all")
        os.chdir(here)
