"""A paper in a folder outside: its sweep, figure, table and claims, nothing of src/."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from commands import in_turn
from dperm.core.experiment import config as configuration
from dperm.core.experiment.locate import ConfigError
from dperm.report import claims

SIXTH = Path(__file__).parents[2] / "docs/examples/sixth"


@pytest.fixture
def sixth(tmp_path, monkeypatch):
    """A copy of the example, as the current folder."""
    folder = tmp_path / "sixth"
    shutil.copytree(SIXTH, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(folder)
    monkeypatch.delenv("DPERM_CONF", raising=False)
    return folder


def test_a_paper_of_five_files_runs_and_is_judged(sixth):
    files = [path for path in sixth.rglob("*") if path.is_file()]
    assert len(files) == 5 and {path.parent.name for path in files} == {"tiny"}
    of_data = [[stage, "problem=diabetes"] for stage in ("fetch", "prepare", "optimum")]
    stages = ("solve", "sweep", "figure", "table", "complete", "claims")
    chosen = ("paper=tiny", "problem=diabetes", "solver=dp_cd", "scale=smoke")
    of_paper = [[stage, *chosen] for stage in stages]
    done = in_turn(*of_data, *of_paper)
    assert done.returncode == 0, done.stderr[-3000:]
    results, figures = Path("results/smoke/tiny"), Path("figures/smoke/tiny")

    swept = pd.read_parquet(results / "sweeps/rounds.parquet")
    assert len(swept) == 4 * 2 * swept["replicate"].nunique()
    drawn = pd.read_csv(figures / "rounds.csv").set_index(["algorithm", "x"])
    means = swept.groupby(["rule", "releases"])["error"].mean()
    assert drawn["mean"].to_numpy() == pytest.approx(means[drawn.index].to_numpy())
    assert (figures / "rounds.png").stat().st_size > 1000
    assert set(pd.read_csv(figures / "errors.csv")["algorithm"]) == {"DP-CD"}
    table = pd.read_csv(results / "rounds.csv").set_index("rule")["exponent"]
    assert table["composed"] == pytest.approx(0.5, abs=0.05)

    claims = pd.read_csv("results/smoke/claims.csv").query("paper == 'tiny'")
    assert claims["verdict"].tolist() == ["reproduced"] * 2
    assert claims["reproduced"].tolist() == pytest.approx(table.tolist())


def test_claims_that_cannot_be_read_are_refused(sixth):
    config = configuration.compose(["paper=tiny", "scale=smoke"])
    assert claims.load(config)
    path = sixth / "conf/paper/tiny/claims.yaml"
    path.write_text(path.read_text().replace("at_least", "at_leest", 1))
    with pytest.raises(ConfigError, match=r"tiny/claims.yaml: claim 1: .*at_leest"):
        claims.load(config)
