"""What cannot run is refused with file and key, before a job starts."""

import shutil
import sys
from pathlib import Path

import pytest

from dperm.core.experiment.locate import ConfigError
from dperm.pipeline import inputs
from dperm.pipeline.jobs import compose as run_table

MINE = Path(__file__).parents[2] / "docs/examples/mine"
WHERE = r"conf/paper/mine/paper\.yaml: runs"


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The example's paper with something else in place of its DP-CD."""
    folder = tmp_path / "mine"
    shutil.copytree(MINE, folder)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("DPERM_CONF", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = folder / "conf/paper/mine/paper.yaml"

    def change(old, new):
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    yield change
    sys.modules.pop("noisy_gd", None)


@pytest.mark.parametrize(
    ("solver", "family"),
    [("dp_fw", "frank_wolfe"), ("bcfw", "frank_wolfe"), ("noisy_sfw", "streams")],
)
def test_a_paper_that_cannot_run_is_refused_when_it_is_composed(mine, solver, family):
    mine("  dp_cd:", f"  {solver}:")
    said = rf"{WHERE}\.{solver}: problem yields: .*family {family}"
    with pytest.raises(ConfigError, match=said):
        run_table(["mine"], ["scale=smoke"])


def test_sparse_data_are_refused_where_they_would_be_filled_in(mine):
    mine("offline: [yields]", "offline: [sparse_small]")
    mine("  dp_cd:", "  dp_svrg:")
    with pytest.raises(ConfigError, match=rf"{WHERE}\.dp_svrg: .*kept sparse"):
        run_table(["mine"], ["scale=smoke"])
    mine("  dp_svrg:", "  dp_sgd:")
    assert run_table(["mine"], ["scale=smoke"]).of_paper("mine", "solve")
    filled = "problem.preparation.standardize=true"
    with pytest.raises(ConfigError, match=r"preparation\.standardize: expected false"):
        run_table(["mine"], ["scale=smoke", filled])


def test_the_stage_command_refuses_it_too(configured):
    with pytest.raises(ConfigError, match=r"diabetes\.yaml: .*family frank_wolfe"):
        inputs.load_job(configured("solver=dp_fw", "paper=dpcd"))
