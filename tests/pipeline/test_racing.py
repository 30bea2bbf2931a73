"""Settings that cannot win are not run to the end, and the same ones are chosen."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dperm import cli
from dperm.core.experiment import files as store
from dperm.core.experiment import racing
from dperm.core.experiment.results import best
from dperm.core.experiment.unit import IDENTITY
from dperm.pipeline import compare, stages

MORE = ("scale.replicates=4", "scale.keep={step: 5, clip: 8, passes: 2}")
MADE = [*IDENTITY, "objective", "relative_error", "status", "seed", "config_digest"]


def tuned(configured, *given, **where):
    return store.read_table(stages.tune(configured("paper=dpcd", *given, **where)))


@pytest.mark.parametrize("solver", ["dp_cd", "dp_sgd"])
def test_the_whole_grid_chooses_the_same_and_has_the_same_rows(configured, solver):
    given = (f"solver={solver}", *MORE)
    short = tuned(configured, *given)
    whole = tuned(configured, "paper.race=false", *given, results="whole")
    pd.testing.assert_frame_equal(best(short), best(whole))
    ran = short["status"] != racing.CANNOT_WIN
    assert 0.2 < ran.mean() < 0.9 and len(short) == len(whole)
    pd.testing.assert_frame_equal(short.loc[ran, MADE], whole.loc[ran, MADE])
    assert (whole["status"] != racing.CANNOT_WIN).all()


def test_what_cannot_win_says_by_which_bound(configured):
    table = tuned(configured, "solver=dp_cd", *MORE)
    out = table[table["status"] == racing.CANNOT_WIN]
    assert out["relative_error"].isna().all() and (out["seconds"] == 0).all()
    for row in out.itertuples():
        bound, least = (float(text.split()[-1]) for text in row.reason.split(","))
        same = table[(table["calibration"] == row.calibration)
                     & (table["passes"] == row.passes)]  # fmt: skip
        means = same.groupby(["step", "clip"])["objective"].agg(["mean", "count"])
        assert least == pytest.approx(means[means["count"] == 4]["mean"].min())
        assert bound > least


def test_a_race_that_was_begun_is_gone_on_with(configured, caplog):
    caplog.set_level("INFO", logger="dperm")
    first = tuned(configured, "solver=dp_cd", *MORE)
    assert " could not win" in caplog.text
    caplog.clear()
    again = tuned(configured, "solver=dp_cd", *MORE)
    assert ", 0 computed" in caplog.text
    pd.testing.assert_frame_equal(first, again)


def units(objective):
    """A race of given objectives, (replicates, settings)."""
    points = [{"step": float(k), "clip": 1.0} for k in range(objective.shape[1])]

    class Unit:
        def __init__(self, replicate):
            self.points, self.replicate = points, replicate

    return racing.Race([Unit(k) for k in range(len(objective))], floor=1.0)


def run(objective, diverged=None):
    """Race to the end; the mask of what ran."""
    race = units(objective)
    for turn in range(1 + len(objective)):
        for replicate, mask in race.runs(turn):
            lost = np.zeros(mask.sum(), bool) if diverged is None else diverged[mask]
            table = pd.DataFrame({"objective": objective[replicate, mask]})
            race.record(
                replicate, mask, table.assign(status=np.where(lost, "diverged", "ok"))
            )
    return race, ~np.isnan(race.objective)


@pytest.mark.parametrize("seed", range(20))
def test_a_race_never_loses_the_winner(seed):
    rng = np.random.default_rng(seed)
    objective = 1 + rng.gamma(0.5, 10.0 ** rng.uniform(-3, 1, 200), (5, 200))
    race, ran = run(objective)
    winner = objective.sum(axis=0).argmin()
    assert ran[:, winner].all() and race.best == objective[:, winner].sum()
    assert ran.mean() < 0.9
    assert race.bounds[~ran.all(axis=0)].min() > race.best


def test_what_diverged_wins_nothing():
    objective = np.full((3, 30), 2.0)
    objective[:, 0] = 1.0
    race, ran = run(objective, diverged=np.arange(30) == 0)
    assert race.best == 6.0 and ran[:, 1:].all()
    everything, _ = run(objective, diverged=np.ones(30, bool))
    assert everything.best == np.inf and everything.alive.all()


def test_choices_of_two_trees_side_by_side(configured, tmp_path, monkeypatch, capsys):
    """As real results are compared: what was chosen, and what racing left out."""
    given = ("solver=dp_cd", *MORE)
    tuned(configured, *given)
    whole = store.read_table(
        stages.tune(
            configured("paper=dpcd", "paper.race=false", *given, results="whole")
        )
    )
    trees = [str(tmp_path / name) for name in ("results", "whole")]
    monkeypatch.setattr("sys.argv", ["dperm", "compare", *trees, "--chosen"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    (row,) = compare.choices(*map(Path, trees)).to_dict("records")
    assert row["chosen"] == row["same"] == len(best(whole))
    assert row["ran_b"] == 1.0 and 0.2 < row["ran_a"] < 0.9
    (path,) = (tmp_path / "whole").rglob("tune.parquet")
    whole.loc[whole["step"] == whole["step"].max(), "objective"] = 0.0
    store.write_table(path, whole)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1 and "0 of" in capsys.readouterr().out.split("\n\n")[-1]
