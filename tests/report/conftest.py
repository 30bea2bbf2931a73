"""A results tree of hand-made numbers, whose verdicts are known."""

from __future__ import annotations

import pandas as pd
import pytest

from dperm.config import config as configuration
from dperm.report import claims

ROWS = [
    # problem, algorithm, passes, mean, std, fresh mean, interval
    ("a", "slow", 2.0, 0.50, 0.01, 0.52, 0.50, 0.54),
    ("a", "slow", 5.0, 0.30, 0.01, 0.31, 0.30, 0.32),
    ("a", "quick", 2.0, 0.03, 0.01, 0.030, 0.029, 0.031),
    ("a", "quick", 5.0, 0.02, 0.01, 0.025, 0.024, 0.026),
]
COLUMNS = ["problem", "algorithm", "passes", "mean", "std", "fresh_mean",
           "fresh_ci_low", "fresh_ci_high"]  # fmt: skip


def compose(folder):
    """The DP-CD paper with results and figures in a folder of its own."""
    overrides = [
        f"output.results={folder / 'results'}",
        f"output.figures={folder / 'figures'}",
        f"data.dir={folder / 'data'}",
    ]
    found = configuration.compose(["paper=dpcd", *overrides])
    write(found, "table", pd.DataFrame(ROWS, columns=COLUMNS))
    return found


@pytest.fixture
def config(tmp_path):
    return compose(tmp_path)


@pytest.fixture(scope="session")
def judged(tmp_path_factory):
    """All claims of all papers, without any result."""
    rows, faults = claims.judged_all(
        compose(tmp_path_factory.mktemp("nothing"))
    )
    assert not faults
    return pd.DataFrame(rows, columns=[*claims.CLAIM_COLUMNS])


def write(config, name, table):
    """Write a CSV where the judge looks for a table of that name."""
    path = claims.path_of(config.paper.name, config.output, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False)
    return path
