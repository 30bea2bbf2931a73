"""What is shown against time is run again, alone; its rows are evaluation's."""

import shutil

import pandas as pd
import pytest

from changing import changed
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, results
from dperm.core.experiment.config import compose
from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.unit import IDENTITY, PROVENANCE
from dperm.kinds import figures
from dperm.papers.dpcd import tables
from dperm.pipeline import stages

SMALL = (
    "paper=dpcd", "paper.offline=[diabetes]", "scale.keep.clip=2",
    "paper.figures.figure3.problems=[diabetes]",
)  # fmt: skip
KEYS = ["problem", "solver", *IDENTITY]


@pytest.fixture(scope="module")
def once(data_dir, tmp_path_factory):
    """A folder with the results of all solvers of the paper on one problem."""
    folder = tmp_path_factory.mktemp("solved")
    where = [*SMALL, f"data.dir={data_dir}", f"output.results={folder}", "scale=smoke"]
    for problem, solver in plan.runs(compose(where)):
        stages.solve(compose([*where, f"problem={problem}", f"solver={solver}"]))
    return folder


@pytest.fixture
def solved(once, configured, tmp_path):
    """The same in a folder of one's own."""
    shutil.copytree(once, tmp_path / "results")
    return configured(*SMALL)


def test_rows_are_those_of_evaluation_but_for_their_seconds(solved):
    timed = pd.read_parquet(stages.timing(solved))
    assert set(timed["calibration"]) == {"paper"}  # of the products that show time
    assert set(timed["solver"]) == {"dp_cd", "dp_sgd"}
    assert (timed.loc[timed["checkpoint"] > 0, "seconds"] > 0).all()
    folder = plan.results_folder(solved, "dpcd", "diabetes")
    fresh = pd.concat(
        pd.read_parquet(folder / solver / "evaluate.parquet")
        for solver in ("dp_cd", "dp_sgd")
    )
    fresh = fresh[fresh["calibration"] == "paper"].drop(columns=PROVENANCE)
    both = timed.drop(columns=PROVENANCE).merge(fresh, how="inner")
    assert len(both) == len(timed) == len(fresh)


def test_of_every_setting_so_many_runs_are_clocked(solved):
    timed = pd.read_parquet(stages.timing(solved))
    once = changed(solved, "paper.clocked", 1)
    fewer = pd.read_parquet(stages.timing(once))
    assert set(timed["replicate"]) == {0, 1, 2} and set(fewer["replicate"]) == {0}


def test_a_figure_and_a_table_show_what_was_clocked(solved):
    """Made from rows whose seconds are told apart from those of evaluation."""
    path = stages.timing(solved)
    known = pd.read_parquet(path).assign(seconds=lambda t: 100.0 + t["checkpoint"])
    store.write_table(path, known)
    paper = solved.paper
    product = paper.figures["figure3"]
    picture = figures.trajectories(solved, product, ["diabetes"], **product.options)
    clocked = {round(100.0 + at, 9) for at in known["checkpoint"]}
    curves = picture.rows[picture.rows["role"] == "curve"]
    assert {round(x, 9) for x in curves["x"]} <= clocked and len(curves) > 2
    table = tables.runtime(solved, paper.tables["table3"], ["diabetes"])
    assert (table["mean"] == 100.0 + table["passes"]).all() and len(table) == 4


def test_seconds_are_shown_only_where_they_are_asked_for(solved):
    product = changed(solved.paper.figures["figure3"], "timed", False)
    with pytest.raises(ConfigError, match="timed: true"):
        figures.trajectories(solved, product, ["diabetes"], **product.options)
    (found,) = results.load(solved, ["diabetes"], solvers=["dp_cd"])["diabetes"]
    with pytest.raises(ValueError, match="without seconds"):
        found.clocked("paper", 2.0)
