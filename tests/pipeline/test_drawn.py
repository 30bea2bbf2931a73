"""One process draws several products, and of them only what is not up to date."""

import os
import time

import pytest

from dperm.locate import ConfigError
from dperm.pipeline import drawn, evaluate, jobs, plan

SMALL = ("paper=dpcd", "paper.offline=[diabetes]", "scale.keep.clip=2")
FIRST = ("tables/noise@a", "tables/lead@b")


@pytest.fixture
def drawing(configured, tmp_path, monkeypatch):
    """Draw as one job of Snakemake's would; the stems of what was written."""
    for problem, solver in plan.runs(configured(*SMALL)):
        evaluate.solve(configured(*SMALL, f"problem={problem}", f"solver={solver}"))
    monkeypatch.chdir(tmp_path)

    def draw(*asked):
        config = configured(*SMALL, f"drawn=[{','.join(asked)}]")
        return {path.stem for path in drawn.draw(config)}

    return draw


def test_only_what_is_not_up_to_date(drawing, tmp_path):
    results = tmp_path / "results/smoke/dpcd"
    assert drawing(*FIRST) == {"noise", "lead"}
    assert drawing(*FIRST) == set()
    assert drawing("tables/noise@a", "tables/lead@c") == {"lead"}  # another digest
    (results / "noise.md").unlink()
    assert drawing("tables/noise@a", "tables/lead@c") == {"noise"}
    later = time.time() + 10
    os.utime(results / "diabetes/dp_cd/evaluate.parquet", (later, later))
    assert drawing("tables/noise@a", "tables/lead@c") == {"noise", "lead"}


def test_what_failed_is_not_taken_for_drawn(drawing, tmp_path, monkeypatch):
    """Snakemake puts back all files of a job that failed."""
    table = drawn.MAKERS["tables"]

    def failing(config):
        if config.product == "lead":
            raise RuntimeError("no")
        return table(config)

    monkeypatch.setitem(drawn.MAKERS, "tables", failing)
    with pytest.raises(RuntimeError):
        drawing(*FIRST)
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert drawing(*FIRST) == {"noise", "lead"}


@pytest.mark.parametrize("asked", ["noise@a", "tables/noise", "maps/noise@a"])
def test_a_slip_is_refused(drawing, asked):
    with pytest.raises(ConfigError, match="expected figures/name@digest"):
        drawing(asked)


def test_products_of_the_same_files_share_a_job():
    from dperm.pipeline import runtable

    table = runtable.run_table(["dpcd", "dpsco"], ["scale=smoke"])
    for paper in ("dpcd", "dpsco"):
        found = table.batches(paper)
        products = [each for batch in found for each in batch]
        made = table.papers[paper]
        assert len(products) == len(made.figures) + len(made.tables)
        assert (
            len(set(products)) == len(products) and len(found) < len(products) / 2 + 4
        )
        for batch in found:
            assert len({tuple(table.behind(paper, each)) for each in batch}) == 1
            for each in batch:
                files = table.drawn(paper, each)
                assert len(files) == len(jobs.DRAWN[each.split("/")[0]][1])
    seconds = [b for b in table.batches("dpcd") if "figures/figure3" in b]
    assert seconds == [["figures/figure3", "tables/table3"]]
    assert table.behind("dpcd", "tables/table3")[-1] == table.timing("dpcd")
