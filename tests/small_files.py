"""Small files, in a folder that is worked in."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

EXAMPLE = Path(__file__).parents[1] / "docs/examples/mine/noisy_gd.py"
N, P = 80, 3


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder without configuration of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPERM_CONF", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("mine", None)


def drawn(real: bool) -> pd.DataFrame:
    """Three features of different scales, and a label y of either kind."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P)) * [1.0, 3.0, 0.2] + [0.0, 5.0, 1.0]
    scores = (X - X.mean(axis=0)) @ [
        1.0,
        -0.5,
        4.0,
    ] + 0.5 * rng.standard_normal(N)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    return table.assign(y=scores + 2.0 if real else (scores > 0).astype(int))


@pytest.fixture
def mine(folder):
    """mine.csv with labels 0 and 1, real.csv with numbers, mine.py with a method."""
    drawn(False).to_csv("mine.csv", index=False)
    drawn(True).to_csv("real.csv", index=False)
    (folder / "mine.py").write_text(EXAMPLE.read_text())
    return folder
