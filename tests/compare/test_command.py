"""``dperm try``: one line compares methods at one true epsilon."""

import subprocess
import sys
from dataclasses import replace
from itertools import islice

import numpy as np
import pandas as pd
import pytest

from dperm import DPRegressor, cli
from dperm.compare import choosing, contest, contestants, results, run, sources
from dperm.compare import contestants as methods
from dperm.compare.contest import Seeds
from dperm.compare.contestants import clip_unit
from dperm.compare.request import KEYS, parse
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.plan import seed_of
from dperm.core.lanes import dp_cd, trials
from dperm.solvers.scales import declared

FEW = ("fresh=4", "held=2", "grids.dp_cd.step=[0.5,1]")


def request(*words):
    return parse(["problem=mine.csv", "target=y", *FEW, *words])


def test_methods_meet_one_epsilon_and_the_table_says_so(mine, caplog):
    words = ("solvers=[dp_cd,dp_gd,mine]", "epsilon=2", "grids.dp_gd.step=[1,3]",
             "grids.mine.step=[0.5,1]")  # fmt: skip
    with caplog.at_level("INFO"):
        told = run.compare(request(*words))
    table = pd.read_csv("results/try/mine/try.csv")
    assert table["solver"].tolist() == [
        name for name in ("dp_cd", "dp_gd", "mine") for _ in range(2)
    ]
    assert (table["epsilon"] == 2).all() and (table["runs"] == 4).all()
    assert (table["true_epsilon"] <= 2).all() and (table["true_epsilon"] > 1.99).all()
    assert (
        table["test_metric"].eq("auc").all() and table["test_mean"].between(0, 1).all()
    )
    assert table["given"].str.startswith("n; standardisation of columns").all()
    assert (table["ci_low"] < table["mean"]).all()
    for text in (
        *table["algorithm"],
        "without tuning: ",
        "best of the grid, for free: ",
        "epsilon of DP-CD, DP-GD holds given: n; standardisation",
        "without privacy: auc",
    ):
        assert text in told
    said = [record.getMessage() for record in caplog.records]
    assert [line[:6] for line in said if " of 3: " in line] == ["1 of 3", "2 of 3",
                                                               "3 of 3"]  # fmt: skip
    for name in ("try.md", "errors.svg", "errors.png", "errors.csv"):
        assert (mine / "results/try/mine" / name).stat().st_size > 100


def runs(*words, **changes):
    """The plan of a request, and the rows of its one method."""
    plan = replace(run.planned(request(*words)), **changes)
    return plan, run.runs_of(plan, plan.methods[0])


def test_runs_are_what_trials_of_the_solver_are(mine):
    """The same objective, noise, setting and seeds, by another way."""
    words = ("solvers=[dp_cd]", "tunings=[default]", "epsilon=20", "held=0")
    plan, rows = runs(*words)
    problem, best = plan.source.problem, plan.source.optimum.value
    seed = seed_of(plan.seed, "try", "mine", "dp_cd", 0, 0)
    fresh = Seeds.of(seed, 4, 0).fresh
    on = trials.Trials(problem, dp_cd, dp_cd.Options(first=1), "strict")
    default = plan.methods[0].default
    point = {**default, "clip": default["clip"] * clip_unit(problem)}
    plain = (on.fresh(point, fresh) - best) / best
    assert [row["run_seed"] for row in rows] == fresh
    assert [row["relative_error"] for row in rows] == pytest.approx(plain, rel=1e-12)


def test_seeds_that_choose_do_not_judge(mine):
    plan, rows = runs("solvers=[dp_cd]", "tunings=[default,grid]")
    drawn = Seeds.of(rows[0]["seed"], plan.fresh, plan.held)
    assert {row["run_seed"] for row in rows}.isdisjoint(drawn.tuning)
    found = {row["setting"] for row in rows
             if row["tuning"] == "grid" and "setting" in row}  # fmt: skip
    assert found and found <= {
        "passes 10, step 0.5, clip 2", "passes 10, step 1, clip 2"}  # fmt: skip


def test_declared_scales_leave_nothing_but_n_and_the_preparation(mine):
    words = ("feature_scale=1", "standardize=no", "loss=logistic", "positive=1")
    plan, rows = runs("solvers=[dp_cd]", *words, "tunings=[default]", "held=0")
    problem = plan.declared(plan.source.problem)
    moved = replace(problem, A=np.asfortranarray(7 * problem.A))
    assert np.array_equal(problem.smoothness, moved.smoothness)
    assert {row["given"] for row in rows} == {"n"}


def test_runs_on_a_part_have_the_declared_scales_too(mine):
    plan, rows = runs("solvers=[dp_cd]", "feature_scale=2", "tunings=[default]")
    (one,), known = plan.methods, plan.split
    problem = plan.declared(plan.source.problem)
    scales = np.append(np.full(problem.p - 1, 2.0), sources.CONSTANT)
    on = one.on(declared(known.train, scales, 1.0))
    assert np.array_equal(problem.smoothness / problem.loss.curvature, scales**2)
    priced = contest.Prices().one(on, one.default)
    for row in rows[plan.fresh :]:
        job = contestants.Job(one.default, priced[0], row["run_seed"])
        plain = on.run([job], lambda W: {"test": known.measure(W)})["test"][0]
        assert row["test"] == plain
    assert len(rows) == plan.fresh + plan.held


AS_FIT = {
    "bounds=[-20,20] label_bounds=[-30,30]": {
        "bounds": (-20, 20), "label_bounds": (-30, 30)
    },
    "bounds=[-20,20]": {"bounds": (-20, 20)},
    "feature_scale=[1,6,1] label_scale=private": {"feature_scale": [1, 6, 1]},
    "feature_scale=private label_scale=private": {},
}  # fmt: skip


def test_what_takes_too_long_is_a_gap_with_a_reason(mine):
    plan, rows = runs("solvers=[dp_cd]", work=1.0)
    assert rows[0]["status"] == "gap" and "takes longer" in rows[0]["reason"]
    table = results.by_tuning(pd.DataFrame(rows), 1.0, plan.label)
    assert "takes longer" in results.words(table, 1.0, ("default",), [])


REFUSED = {
    "solvers=[dp_gdd]": r"solver dp_gdd: expected one of .*did you mean dp_gd\?",
    "solvers=[phased_sgd]": "solver phased_sgd: solves no problem of this kind: "
    "it reads each record once",
    "solvers=[dp_cd,moments]": "solver moments: cannot do this problem: loss logistic.*"
    "expected others, such as objective_perturbation, ",
    "solvers=[dp_cd] grids.dp_gd.step=1": "grids: dp_gd: expected a method that runs, "
    "one of dp_cd; solvers= names others",
    "solvers=[dp_cd] grids.dp_cd.stpe=1": r"setting stpe: .*did you mean step\?",
    "solvers=[dp_gd] defaults.dp_gd.steps=-1": "setting: options.steps: expected",
    "solvers=[dp_cd] defaults.dp_cd.step=0": "setting step: expected a positive",
    "solvers=[dp_cd] label_scale=2": "label_scale: logistic labels are signs",
    "solvers=[dp_cd] problem=real.csv feature_scale=1": "expected a number for both",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_done_is_refused_before_anything_runs(mine, line, monkeypatch):
    monkeypatch.setattr(run, "runs", lambda *_: pytest.fail("it ran"))
    with pytest.raises(ConfigError, match=REFUSED[line]) as refused:
        run.compare(request(*line.split()))
    assert "\n" not in str(refused.value)


def test_methods_are_chosen_for_one_who_names_none(mine):
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    X = np.random.default_rng(0).standard_normal((20, 2))
    for loss, name in (("logistic", "objective_perturbation"),
                       ("least_squares", "moments")):  # fmt: skip
        problem = build("a", X, y, loss, Penalty(l2=0.1))
        found = [one.name for one in run._suited(request(), problem)]
        able = choosing.able(replace(problem, epsilon=1.0))
        assert found == [one.name for one in islice(able, run.TRIED)]
        assert name in [one.name for one in choosing.able(problem)]


def test_a_method_without_grid_takes_that_of_its_like():
    assert methods.method("dp_cd_uniform").grid == methods.method("dp_cd").grid
    assert methods.method("dp_sgd").default == methods.method("dp_svrg").default
    assert len(methods.method("approximate_minima").grid) == 18


@pytest.mark.parametrize("word", ["--help", "epsilon=0"])
def test_the_command_answers_at_once_and_in_lines_for_people(folder, word):
    """Without waiting for what the runs would need."""
    code = (
        f"import sys; sys.argv = ['dperm', 'try', 'problem=a.csv', {word!r}]\n"
        "from dperm.cli import main\n"
        "try: main()\nexcept SystemExit as error: print(error)\n"
        "print([m for m in ('numpy', 'numba', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    *said, heavy = done.stdout.splitlines()
    assert heavy == "[]", done.stderr
    if word == "--help":
        assert said[0].startswith("usage: dperm try") and len(said) > len(KEYS)
    else:
        assert said == ["ConfigError: epsilon=0: expected a finite number, more than 0"]


def test_a_failure_is_one_line(mine, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["dperm", "try", "problem=a.csv"])
    monkeypatch.setattr(run, "compare", lambda given: 1 / 0)
    with pytest.raises(
        SystemExit, match=r"^ZeroDivisionError: .*; DPERM_DEBUG=1 shows"
    ):
        cli.main()


def test_a_method_of_ones_own_meets_an_intercept_of_one(mine):
    """A column of 2^20 would take all of a step that has one size for all weights."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 + rng.normal(0, 0.1, 2000)
    how = {"bounds": (-1, 1), "label_bounds": (-5, 5), "random_state": 0}
    model = DPRegressor("mine", epsilon=10.0, **how).fit(X, y)
    assert model._constant == 1.0
    assert model.score(X, y) > 0.9
    assert DPRegressor("dp_gd", epsilon=10.0, **how).fit(X, y)._constant > 1.0
