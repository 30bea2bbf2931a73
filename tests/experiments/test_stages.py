"""Tune and evaluate: whole runs on a small problem."""

import itertools
import json
import logging
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from changing import changed
from dperm.experiments import inputs, results, stages
from dperm.experiments import tune as tuning
from dperm.experiments.plan import seed_of
from dperm.experiments.results import best
from dperm.experiments.task import (
    IDENTITY,
    PROVENANCE,
    SETTING_COLUMNS,
    STOPPED_EARLY,
    SolverJob,
)
from dperm.experiments.tune import LEADERS, ONE_RUN, leaders
from dperm.privacy.accounting import epsilon
from dperm.privacy.events import Ledger
from dperm.storage import files as store
from weekly import variants

BOTH = "paper.calibrations=[published,tight]"
SOLVERS = ["dp_cd", "dp_cd_priv", "dp_sgd"]


def numbers(table):
    """Rows without timings and provenance."""
    return table.drop(columns=PROVENANCE)


def run_for(configured, solver, *overrides, **where):
    allowed = f"paper.runs.{solver}.problems=null"
    return configured(f"solver={solver}", allowed, BOTH, *overrides, **where)


@pytest.mark.parametrize("solver", variants(SOLVERS, ("dp_cd", "dp_sgd")))
def test_tune_and_evaluate(configured, solver):
    config = run_for(configured, solver)
    tuned = pd.read_parquet(stages.tune(config))
    assert list(tuned.columns) == SETTING_COLUMNS
    first, again = (
        tuned[tuned["replicate"] == replicate] for replicate in (0, 1)
    )
    assert len(first) == 2 * 2 * 2 * 4  # calibrations, passes, grid
    assert len(again) == (first["status"] == "ok").sum() > 0
    assert not tuned.duplicated(IDENTITY).any()
    assert (tuned["neighbours"] == "replace_one").all()
    evaluated = pd.read_parquet(stages.evaluate(config))
    assert set(evaluated["seed"]).isdisjoint(tuned["seed"])
    start = evaluated[evaluated["checkpoint"] == 0]
    assert len(start) == 2 * 2 * 3 and start["relative_error"].nunique() == 1
    ends = evaluated[evaluated["checkpoint"] == evaluated["passes"]]
    assert len(ends) == 2 * 2 * 3 and (ends["seconds"] > 0).all()


@pytest.mark.parametrize(
    ("steps", "passes", "places"),
    [
        (8, 2.0, 10),
        (8, 5.0, 10),
        (8, 20.0, 20),
        (1, 7.0, 7),
        (1, 2.0, 2),
        (4, 0.5, 1),
    ],
)
def test_short_runs_are_watched_in_tenths(steps, passes, places):
    job = SimpleNamespace(steps=lambda count: max(1, round(count * steps)))
    found = SolverJob.checkpoints(job, passes)
    assert found[0] == 0.0 and found[-1] == passes
    assert set(range(1, int(passes))) <= set(found)
    counts = [job.steps(at) for at in found[1:]]
    assert len(counts) == places and sorted(set(counts)) == counts


def test_another_label_reaches_rows_whose_settings_are_reused(
    configured, caplog
):
    stages.tune(configured())
    stages.evaluate(configured())
    relabelled = configured("solver.label=Other")
    with caplog.at_level(logging.INFO):
        tables = [stages.tune(relabelled), stages.evaluate(relabelled)]
    assert caplog.text.count(" 0 computed") == 2
    for table in map(pd.read_parquet, tables):
        assert set(table["algorithm"]) == {"Other"}


SPARSE = ("paper=dpgcd", "problem=sparse_small")


@pytest.mark.parametrize(
    ("solver", "where"),
    [
        ("dp_cd", ()),
        ("dp_sgd", SPARSE),
        *(
            pytest.param(name, (), marks=pytest.mark.long)
            for name in SOLVERS[1:]
        ),
        pytest.param("dp_cd", SPARSE, marks=pytest.mark.long),
        pytest.param("dp_gcd", SPARSE, marks=pytest.mark.long),
    ],
)
def test_rows_do_not_depend_on_the_workers(
    configured, solver, where, monkeypatch
):
    """Nor on how tasks are cut for them, or how many run at the same time."""
    where = (*where, "scale.keep.clip=2", "scale.keep.passes=1")
    config = run_for(configured, solver, *where, results="one")
    assert inputs.load_problem(config.problem, config.data).is_sparse == (
        where[:2] == SPARSE
    )
    one = stages.solve(config)
    monkeypatch.setattr(tuning, "THREADED_SETTINGS", 1)
    for workers in (2, 2 * tuning.SHARED + 1):
        given = (*where, f"workers={workers}")
        many = stages.solve(
            run_for(configured, solver, *given, results=f"{workers}")
        )
        for name in ("tune.parquet", "evaluate.parquet"):
            alone, beside = (
                pd.read_parquet(at.with_name(name)) for at in (one, many)
            )
            pd.testing.assert_frame_equal(
                numbers(alone), numbers(beside), check_exact=True
            )


def with_grid(config, clips, passes=2, steps=(0.1, 1.0)):
    """The configuration with another grid, not thinned."""
    grid = {"passes": [passes], "step": list(steps), "clip": list(clips)}
    name, runs = config.solver.name, config.paper.runs
    runs = runs | {name: changed(runs[name], "grid", grid)}
    return changed(changed(config, "paper.runs", runs), "scale.keep", {})


@pytest.mark.parametrize("solver", variants(["dp_cd", "dp_sgd"], ["dp_cd"]))
def test_a_grid_that_grows_computes_the_new_settings_only(
    configured, solver, caplog
):
    clips = [1.0, 30.0, 100.0]
    before = stages.tune(with_grid(run_for(configured, solver), clips))
    before = pd.read_parquet(before)
    larger = [*clips, 10.0]
    with caplog.at_level(logging.INFO):
        after = stages.tune(with_grid(run_for(configured, solver), larger))
    after = pd.read_parquet(after)
    new = after["clip"] == 10.0
    reused, computed = (~new).sum(), new.sum()
    said = f"{reused} settings reused, {computed} computed, {32 - len(after)} left out"
    assert said in caplog.text and 4 <= new.sum() <= 8
    # A setting that led among fewer may have its first replicate only among more.
    kept = before.merge(after[~new], on=IDENTITY, suffixes=("", "_after"))
    assert len(kept) == (~new).sum()
    assert kept["objective"].equals(kept["objective_after"])
    anew = stages.tune(
        with_grid(run_for(configured, solver, results="anew"), larger)
    )
    pd.testing.assert_frame_equal(
        numbers(after), numbers(pd.read_parquet(anew)), check_exact=True
    )


def test_a_diverged_setting_is_a_row_and_never_chosen(configured):
    config = with_grid(configured(), [10.0, 1e9])
    table = pd.read_parquet(stages.tune(config))
    assert set(table.loc[table["clip"] == 1e9, "status"]) == {"diverged"}
    assert (results.best(table)["clip"] == 10.0).all()


def test_epsilon_infinity_is_the_public_method(configured):
    config = configured("problem.privacy.epsilon=.inf")
    config = with_grid(config, [float("inf")], passes=400, steps=[1.0])
    table = pd.read_parquet(stages.tune(config))
    assert (table["noise_multiplier"] == 0).all()
    assert (table["relative_error"].abs() < 1e-10).all()


def test_ledgers_are_stored_with_what_they_cost(configured):
    config = configured(BOTH)
    folder = stages.tune(config).parent
    entries = json.loads((folder / "ledger.json").read_text())
    assert len(entries) == 4
    for entry in entries:
        found = entry["calibrated"]
        ledger = Ledger.from_dict(found["ledger"])
        assert entry["neighbours"] == "replace_one"
        assert found["claimed_epsilon"] <= found["target_epsilon"]
        cost = epsilon(ledger, found["delta"], found["calibration"])
        assert cost == found["claimed_epsilon"]
        assert (
            epsilon(ledger, found["delta"], "tight") == found["true_epsilon"]
        )


def test_entries_of_a_ledger_keep_their_order_whatever_is_asked_for(
    configured,
):
    path = stages.tune(configured(BOTH)).with_name("ledger.json")
    whole = path.read_text()
    last = json.loads(whole)[-1]["passes"]
    stages.tune(with_grid(configured(BOTH), [1.0], passes=last))
    assert path.read_text() == whole


def test_a_stored_noise_that_was_edited_is_found_anew(configured):
    path = stages.tune(configured()).with_name("ledger.json")
    entries = json.loads(path.read_text())
    right = entries[0]["calibrated"]["noise_multiplier"]
    entries[0]["calibrated"]["noise_multiplier"] = right / 2
    path.write_text(json.dumps(entries))
    table = pd.read_parquet(stages.tune(configured()))
    assert (table["noise_multiplier"] != right / 2).all()
    found = json.loads(path.read_text())[0]["calibrated"]
    assert found["noise_multiplier"] == right


def test_progress_says_what_is_done_and_how_long_still(capsys, monkeypatch):
    """Reused settings say nothing of the speed."""
    monkeypatch.setattr(
        "tqdm.std.time", clock := iter(range(0, 600, 10)).__next__
    )
    bar = tuning.progress(
        "tune here", 40, "settings", work=10 * (1 + 2 + 3 + 4)
    )
    bar.initial = 10
    bar.update(10)
    bar.update(20)
    said = capsys.readouterr().err.replace("\r", "\n").split("\n")[-1]
    assert "tune here, 30 % of 40 settings in " in said and clock
    spent, left = (int(found[-2:]) + 60 * int(found[:2]) for found in
                   (said.split(" in ")[1][:5], said.split(", ")[-1][:5]))  # fmt: skip
    assert left == pytest.approx(spent * 70 / 20, abs=1)


def test_settings_that_will_be_skipped_are_not_counted(configured, caplog):
    caplog.set_level("INFO", logger="dperm")
    more = ["scale.replicates=4", "scale.keep={step: 5, clip: 8, passes: 1}"]
    stages.tune(configured("paper=dpcd", *more))
    found = [text for text in caplog.messages if text.endswith(" settings")]
    assert (
        found[0].rpartition(": ")[2] == f"{40 + 3 * tuning.LEADERS} settings"
    )


def test_ties_of_a_tuning_are_evaluated_where_anything_was_learnt():
    chosen = pd.DataFrame({
        "calibration": ["paper"] * 4 + ["tight"] * 2,
        "passes": [1.0, 2.0, 5.0, 9.0, 1.0, 2.0],
        "mean": [0.5, 0.2, 0.24, 0.3, 1.0, 1.0],
        "std": [0.1, 0.03, 0.02, 0.05, 0.0, 0.1],
    })  # fmt: skip
    kept = {
        which: list(tuning.evaluated_settings(which, chosen).index)
        for which in ("all", "best", "ties")
    }
    assert kept == {
        "all": [0, 1, 2, 3, 4, 5],
        "best": [1, 4],
        "ties": [1, 2, 4],
    }


@pytest.mark.parametrize("most", variants([4, 24], [24]))
def test_every_chosen_setting_runs_until_its_mean_is_precise(configured, most):
    """Twice as many runs each time; the runs that all have are not changed."""
    config = configured(
        "scale.fresh=null", "paper.fresh=3", f"paper.most={most}"
    )
    stages.tune(config)
    table = store.read_table(stages.evaluate(config))
    few = configured("scale.fresh=3", results="few")
    stages.tune(few)
    first = store.read_table(stages.evaluate(few))
    same = table[table["replicate"] < 3].reset_index(drop=True)
    pd.testing.assert_frame_equal(
        numbers(same), numbers(first), check_exact=True
    )
    ends = table[table["checkpoint"] == table["passes"]]
    more = 0
    for _, group in ends.groupby(["calibration", "passes"]):
        errors, count = group["relative_error"], len(group)
        more += count > 3
        assert count == most or precise(errors)
        half = errors[group["replicate"] < max(3, (count + 1) // 2)]
        assert count == 3 or not precise(half)
    assert more > 0


def test_a_part_of_fewer_fresh_runs_does_not_stand_for_one_of_more(configured):
    few = configured("scale.fresh=3")
    stages.tune(few)
    first = store.read_table(stages.evaluate(few))
    more = store.read_table(stages.evaluate(configured("scale.fresh=4")))
    assert [*more["replicate"].unique()] == [0, 1, 2, 3]
    same = more[more["replicate"] < 3].reset_index(drop=True)
    pd.testing.assert_frame_equal(
        numbers(same), numbers(first), check_exact=True
    )


def precise(errors):
    return errors.std() <= tuning.PRECISE * errors.mean() * len(errors) ** 0.5


# --- two stages: all settings once, the best in all replicates -----------------------

MORE = ("scale.replicates=4", "scale.keep={step: 5, clip: 8, passes: 2}")
MADE = [*IDENTITY, "objective", "relative_error", "seed", "config_digest"]
SETTING = ["calibration", "passes", "step", "clip"]


def tuned(configured, *given, **where):
    return store.read_table(
        stages.tune(configured("paper=dpcd", *given, **where))
    )


@pytest.mark.parametrize("solver", variants(["dp_cd", "dp_sgd"], ["dp_sgd"]))
def test_the_whole_grid_chooses_the_same_and_has_the_same_rows(
    configured, solver
):
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
    led = (
        counts[counts["count"] == 4].groupby(["calibration", "passes"]).size()
    )
    assert led.max() <= LEADERS and led.min() > LEADERS / 2
    alone = tuned(configured, *given, "scale.replicates=1", results="alone")
    assert ONE_RUN not in set(alone["status"])


def test_a_setting_above_the_limit_ends_early_and_the_choice_is_the_same(
    configured,
):
    """Its end changes no other row; at the limit's time it is beyond the limit."""
    given = ("paper=dpgcd", "problem=sparse_small", "solver=dp_sgd", *MORE)
    key = "paper.runs.dp_sgd.stop_above"
    limited, free = (
        store.read_table(
            stages.tune(configured(*given, f"{key}={to}", results=to))
        )
        for to in ("1.05", "null")
    )
    pd.testing.assert_frame_equal(best(limited), best(free))
    ended = limited["status"] == STOPPED_EARLY
    assert ended.any() and (limited["replicate"][ended] == 0).all()
    assert (limited["passes"][ended] > 1 / 16).all()
    others = limited[~ended].merge(free, on=IDENTITY, suffixes=("", "_free"))
    assert (others["replicate"] == 0).sum() == (
        ~ended & (limited.replicate == 0)
    ).sum()
    for name in ("objective", "seed"):
        assert others[name].equals(others[f"{name}_free"]), name
    assert (limited["objective"][ended] > 1.05 * np.log(2)).all()


def replicate(objective, **columns):
    """Rows of settings whose step and clip run through a grid of ten clips."""
    places = np.arange(len(objective))
    return pd.DataFrame(
        {"objective": objective, "step": places // 10, "clip": places % 10,
         "status": "ok", **columns}
    )  # fmt: skip


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


# --- seeds ----------------------------------------------------------------------------


def test_a_seed_is_of_its_name_alone_and_what_it_was():
    """A change here changes every published result: it must be meant."""
    names = itertools.product(
        (1, 2), ("tune", "evaluate"), "ab", "cd", (2.0, 5.0), "0123"
    )
    found = [seed_of(*name) for name in names]
    assert len(set(found)) == len(found) == 128
    assert seed_of(1, "tune", "a", "b", 2, 0) == seed_of(
        1, "tune", "a", "b", 2.0, 0
    )
    assert (
        seed_of(1, "tune", "california_norm", "dp_cd", 2.0, 0)
        == 2190794563514816515
    )


def test_deviations_of_points_are_those_of_pandas_to_the_last_bit():
    rng = np.random.default_rng(1)
    rows = []
    for step, runs, status in (
        (0.1, 5, "ok"),
        (0.2, 1, "ok"),
        (0.3, 9, "ok"),
        (0.4, 5, "no"),
    ):
        errors = {
            "objective": rng.lognormal(size=runs),
            "relative_error": rng.lognormal(size=runs),
        }
        rows.append(pd.DataFrame(errors).assign(step=step, status=status))
    gap = pd.DataFrame({"status": ["unavailable"]})  # of no setting
    table = pd.concat([gap, *rows]).sample(
        frac=1, random_state=2, ignore_index=True
    )
    table = table.assign(calibration="tight", passes=1.0, clip=1.0)
    means = results.means(table)
    assert means["step"].tolist() == [0.1, 0.2, 0.3]
    for row in means.itertuples():
        errors = table.loc[table["step"] == row.step, "relative_error"]
        assert row.std == errors.std(ddof=0)
