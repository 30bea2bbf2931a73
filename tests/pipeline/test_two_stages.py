"""All settings run once, the best of them in all replicates; these are chosen from."""

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment import files as store
from dperm.core.experiment.results import best
from dperm.core.experiment.tune import LEADERS, ONE_RUN, leaders
from dperm.core.experiment.unit import HOPELESS, IDENTITY
from dperm.pipeline import stages

MORE = ("scale.replicates=4", "scale.keep={step: 5, clip: 8, passes: 2}")
MADE = [*IDENTITY, "objective", "relative_error", "seed", "config_digest"]
SETTING = ["calibration", "passes", "step", "clip"]


def tuned(configured, *given, **where):
    return store.read_table(stages.tune(configured("paper=dpcd", *given, **where)))


@pytest.mark.parametrize("solver", ["dp_cd", "dp_sgd"])
def test_the_whole_grid_chooses_the_same_and_has_the_same_rows(configured, solver):
    given = (f"solver={solver}", *MORE)
    short = tuned(configured, *given)
    whole = tuned(configured, "paper.race=false", *given, results="whole")
    pd.testing.assert_frame_equal(best(short), best(whole))
    assert set(whole["status"]) <= {"ok", "diverged"}
    both = short[MADE].merge(whole[MADE], on=IDENTITY, suffixes=("", "_whole"))
    assert len(both) == len(short) < len(whole)
    for name in set(MADE) - set(IDENTITY):
        assert both[name].equals(both[f"{name}_whole"]), name
    once = short[short["status"] == ONE_RUN]
    assert (once["replicate"] == 0).all()
    counts = short.groupby(SETTING)["replicate"].agg(["count", "min"])
    assert set(counts["count"]) == {1, 4} and (counts["min"] == 0).all()
    led = counts[counts["count"] == 4].groupby(["calibration", "passes"]).size()
    assert led.max() <= LEADERS and led.min() > LEADERS / 2


def test_a_hopeless_setting_ends_early_and_the_choice_is_the_same(configured):
    """Its end changes no other row; at the limit's time it is beyond the limit."""
    given = ("paper=dpgcd", "problem=sparse_small", "solver=dp_sgd", *MORE)
    key = "paper.runs.dp_sgd.hopeless"
    limited, free = (
        store.read_table(stages.tune(configured(*given, f"{key}={to}", results=to)))
        for to in ("1.05", "null")
    )
    pd.testing.assert_frame_equal(best(limited), best(free))
    ended = limited["status"] == HOPELESS
    assert ended.any() and (limited["replicate"][ended] == 0).all()
    assert (limited["passes"][ended] > 1 / 16).all()
    others = limited[~ended].merge(free, on=IDENTITY, suffixes=("", "_free"))
    assert (others["replicate"] == 0).sum() == (~ended & (limited.replicate == 0)).sum()
    for name in ("objective", "seed"):
        assert others[name].equals(others[f"{name}_free"]), name
    assert (limited["objective"][ended] > 1.05 * np.log(2)).all()


def test_with_one_replicate_every_setting_may_be_chosen(configured):
    table = tuned(configured, "solver=dp_cd", *MORE, "scale.replicates=1")
    assert ONE_RUN not in set(table["status"])


def replicate(objective, **columns):
    """Rows of settings whose step and clip run through a grid of ten clips."""
    places = np.arange(len(objective))
    return pd.DataFrame(
        {"objective": objective, "step": places // 10, "clip": places % 10,
         "status": "ok", **columns}
    )  # fmt: skip


def test_the_best_lead():
    objective = np.random.default_rng(0).permutation(np.arange(100.0))
    assert set(objective[leaders(replicate(objective))]) == {*range(LEADERS)}


def test_of_ties_that_one_leads_that_would_be_chosen():
    objective = np.where(np.arange(100) < 50, 1.0, 2.0 + np.arange(100))
    table = replicate(objective).iloc[::-1]
    led = table[leaders(table)]
    assert set(led["objective"]) == {1.0, *objective[50 : 50 + LEADERS - 1]}
    assert (led["step"].min(), led["clip"][led["step"].idxmin()]) == (0, 0)


def test_what_diverged_does_not_lead():
    objective = np.arange(100.0)
    status = np.where(objective < 90, "diverged", "ok")
    assert leaders(replicate(objective, status=status)).sum() == 10
    assert not leaders(replicate(objective, status="diverged")).any()
