"""One process draws several products, and of them only what is not up to date."""

import os
import time

import pytest

from dperm.core.experiment import plan
from dperm.core.experiment.locate import ConfigError
from dperm.pipeline import products, stages

SMALL = ("paper=dpcd", "paper.offline=[diabetes]", "scale.keep.clip=2")
FIRST = ("tables/noise@a", "tables/table2@b")


@pytest.fixture
def drawing(configured, tmp_path, monkeypatch):
    """Draw as one job of Snakemake's would; the stems of what was written."""
    for problem, solver in plan.runs(configured(*SMALL)):
        stages.solve(configured(*SMALL, f"problem={problem}", f"solver={solver}"))
    monkeypatch.chdir(tmp_path)

    def draw(*asked):
        config = configured(*SMALL, f"drawn=[{','.join(asked)}]")
        return {path.stem for path in products.draw(config)}

    return draw


def test_only_what_is_not_up_to_date(drawing, tmp_path):
    results = tmp_path / "results/smoke/dpcd"
    assert drawing(*FIRST) == {"noise", "table2"}
    assert drawing(*FIRST) == set()
    assert drawing("tables/noise@a", "tables/table2@c") == {"table2"}  # another digest
    (results / "noise.md").unlink()
    assert drawing("tables/noise@a", "tables/table2@c") == {"noise"}
    later = time.time() + 10
    os.utime(results / "diabetes/dp_cd/evaluate.parquet", (later, later))
    assert drawing("tables/noise@a", "tables/table2@c") == {"noise", "table2"}


def test_what_failed_is_not_taken_for_drawn(drawing, tmp_path, monkeypatch):
    """Snakemake puts back all files of a job that failed."""
    write = products.write

    def failing(config, kind, name):
        if name == "table2":
            raise RuntimeError("no")
        return write(config, kind, name)

    monkeypatch.setattr(products, "write", failing)
    with pytest.raises(RuntimeError):
        drawing(*FIRST)
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert drawing(*FIRST) == {"noise", "table2"}


@pytest.mark.parametrize("asked", ["noise@a", "tables/noise", "maps/noise@a"])
def test_a_slip_is_refused(drawing, asked):
    with pytest.raises(ConfigError, match="expected figures/name@digest"):
        drawing(asked)
