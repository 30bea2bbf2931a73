"""Settings that cannot win are not run to the end, and the same ones are chosen."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment import files as store
from dperm.core.experiment.results import best
from dperm.core.experiment.unit import IDENTITY
from dperm.pipeline import racing, stages
from dperm.pipeline.racing import CANNOT_WIN

CHOSEN = ["calibration", "passes", "step", "clip"]  # a setting that tuning chooses
FLOOR = 1.0  # no objective is below it
MORE = ("scale.replicates=4", "scale.keep={step: 5, clip: 8, passes: 2}")
MADE = [*IDENTITY, "objective", "relative_error", "status", "seed", "config_digest"]


def tuned(configured, *given, **where):
    return store.read_table(stages.tune(configured("paper=dpcd", *given, **where)))


@pytest.mark.parametrize("solver", ["dp_cd", "dp_sgd"])
@pytest.mark.parametrize("race", ["true", "exact"])
def test_the_whole_grid_chooses_the_same_and_has_the_same_rows(
    configured, solver, race
):
    given = (f"solver={solver}", *MORE)
    short = tuned(configured, f"paper.race={race}", *given)
    whole = tuned(configured, "paper.race=false", *given, results="whole")
    pd.testing.assert_frame_equal(best(short), best(whole))
    ran = short["status"] != CANNOT_WIN
    assert 0.2 < ran.mean() < 0.9 and len(short) == len(whole)
    pd.testing.assert_frame_equal(short.loc[ran, MADE], whole.loc[ran, MADE])
    assert (whole["status"] != CANNOT_WIN).all()


def test_what_cannot_win_says_by_which_bound(configured):
    table = tuned(configured, "solver=dp_cd", "paper.race=exact", *MORE)
    out = table[table["status"] == CANNOT_WIN]
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


class Unit:
    """What a race needs of a unit."""

    def __init__(self, passes, replicate, points):
        self.calibration, self.passes = SimpleNamespace(calibration="paper"), passes
        self.replicate, self.points = replicate, points

    def described(self):
        names = {"calibration": "paper", "passes": self.passes}
        return pd.DataFrame(self.points).assign(**names, replicate=self.replicate)


def replaced(unit, points):
    return Unit(unit.passes, unit.replicate, points)


def left(job, unit, status, reasons):
    return unit.described().assign(status=status, reason=reasons)


@pytest.fixture
def race(monkeypatch):
    """A tuning of given objectives, one array (replicates, settings) a race.

    Of ``points`` settings run through the steps, then the clips; the rows of a whole
    grid, and of the race.
    """
    monkeypatch.setattr(racing, "replace", replaced)
    monkeypatch.setattr(racing, "skipped", left)

    def made(*objectives, steps=10, at_zero=None, diverged=None, exact=False):
        size = objectives[0].shape[1]
        points = [{"step": float(k % steps), "clip": float(k // steps), "place": k}
                  for k in range(size)]  # fmt: skip
        units = [Unit(float(passes), k, points)
                 for passes, array in enumerate(objectives)
                 for k in range(len(array))]  # fmt: skip

        def solve(some):
            for unit in some:
                places = [point["place"] for point in unit.points]
                value = objectives[int(unit.passes)][unit.replicate, places]
                zero = (
                    np.zeros(size, bool) if at_zero is None else at_zero[unit.replicate]
                )
                lost = np.zeros(size, bool) if diverged is None else diverged
                yield unit.described().assign(
                    objective=value,
                    relative_error=value,
                    support_size=1 - zero[places].astype(int),
                    status=np.where(lost[places], "diverged", "ok"),
                    reason="",
                )

        job = SimpleNamespace(optimum=SimpleNamespace(value=FLOOR, gap=0.0))
        short = pd.concat(racing.raced(job, units, solve, exact), ignore_index=True)
        return pd.concat(solve(units), ignore_index=True), short

    return made


def agree(whole, short):
    """Whether both choose the same settings."""
    return best(short)[CHOSEN].equals(best(whole)[CHOSEN])


def ran(table, passes=0.0):
    """Mask of what ran in one race, (replicates, settings)."""
    one = table[table["passes"] == passes]
    return one.pivot(index="replicate", columns="place", values="status") != CANNOT_WIN


@pytest.mark.parametrize("seed", range(20))
def test_an_exact_race_never_loses_the_winner(race, seed):
    rng = np.random.default_rng(seed)
    objective = 1 + rng.gamma(0.5, 10.0 ** rng.uniform(-3, 1, 200), (5, 200))
    whole, short = race(objective, exact=True)
    assert agree(whole, short)
    winner, went = objective.sum(axis=0).argmin(), ran(short)
    assert went[winner].all() and went.to_numpy().mean() < 0.9
    out = short[short["status"] == CANNOT_WIN]["reason"].str.split(",", expand=True)
    bound = out[0].str.split().str[-1].astype(float)
    assert bound.min() > objective[:, winner].mean()


def test_what_diverged_wins_nothing(race):
    objective = np.full((3, 30), 2.0)
    objective[:, 0] = 1.0
    whole, short = race(objective, diverged=np.arange(30) == 0)
    assert agree(whole, short) and ran(short).loc[:, 1:].to_numpy().all()
    everything, same = race(objective, diverged=np.ones(30, bool))
    assert best(same).empty and best(everything).empty and ran(same).to_numpy().all()


# --- what stops by chance -------------------------------------------------------------


def landscape(seed, spread=0.003, races=5, size=300, replicates=5):
    """Excesses over a best setting, far from the floor, with draws that are shared."""
    rng = np.random.default_rng(seed)
    excess = np.concatenate([[0.0], np.geomspace(1e-5, 5.0, size - 1)])
    found = []
    for _ in range(races):
        shared, level = rng.normal(size=(replicates, 4)), rng.normal(size=replicates)
        alone = rng.normal(size=(replicates, size))
        mixed = np.cumsum(rng.normal(size=(4, size)), axis=1) / np.sqrt(size)
        relative = 1 + spread * (shared @ mixed + 0.3 * alone)
        found.append(6 + level[:, None] + excess * relative + 0.1 * spread * alone)
    return found


@pytest.mark.parametrize("seed", range(10))
def test_what_stops_by_chance_is_not_the_winner(race, seed):
    whole, short = race(*landscape(seed))
    assert agree(whole, short)
    out = short[short["reason"].str.contains("standard deviations")]
    assert len(out) > 0.2 * len(short) and set(out["replicate"]) == {2, 3, 4}
    found = out["reason"].str.extract(r"^([\d.e+-]+) standard .* at most ([\d.e+-]+)$")
    assert found[0].astype(float).min() >= racing.MULTIPLE
    stopped = found.drop_duplicates().assign(chance=found[1].astype(float))
    once = out["replicate"] == 2
    assert 0 < found.loc[once, 1].astype(float).sum() <= racing.ERROR, stopped
    exact = race(*landscape(seed), exact=True)[1]
    assert not exact["reason"].str.contains("standard deviations").any()


def test_the_chance_to_win_after_all_is_at_most_what_is_said():
    """By simulation at a multiple at which it happens, for every expected excess."""
    rng, count, z = np.random.default_rng(0), 5, 1.0
    noise = rng.normal(size=(400_000, count))
    bound = racing.winning(z, 1e9, count) / racing.LEADERS
    happened = [
        (
            (noise[:, :2].mean(axis=1) + mean > z) & (noise.mean(axis=1) + mean <= 0)
        ).mean()
        for mean in np.linspace(-0.5, 1.5, 21)
    ]
    assert bound / 10 < max(happened) < bound


def test_few_settings_stop_at_a_larger_multiple(race, monkeypatch):
    """Few neighbours say little of a deviation: the error holds for any multiple."""
    monkeypatch.setattr(racing, "MULTIPLE", 0.0)
    few = landscape(3, spread=0.03, races=1, size=20)
    out = race(*few)[1]["reason"].str.extract(r"at most ([\d.e+-]+)$")[0].dropna()
    assert out.astype(float).sum() <= 3 * racing.ERROR  # each has three rows
    monkeypatch.setattr(racing, "ERROR", np.inf)
    many = race(*few)[1]["reason"].str.contains("standard deviations")
    assert many.sum() > len(out)


def planted(seed, replicates):
    """A landscape in whose first race a setting is far behind in so many replicates."""
    objectives = landscape(seed)
    behind = np.array([0.5 if k < replicates else -1.0 for k in range(5)])
    objectives[0][:, 200] = objectives[0][:, 0] + behind
    return objectives


def test_half_a_deviation_loses_winners(race, monkeypatch):
    monkeypatch.setattr(racing, "MULTIPLE", 0.5)
    monkeypatch.setattr(racing, "ERROR", np.inf)
    results = [race(*landscape(seed, spread=0.5)) for seed in range(10)]
    assert not all(agree(*each) for each in results)
    monkeypatch.undo()


def test_a_setting_behind_in_two_and_best_in_five_is_lost(race):
    assert agree(*race(*planted(0, 0))) and agree(*race(*planted(0, 1)))
    assert not agree(*race(*planted(0, 2))) and agree(*race(*planted(0, 2), exact=True))


def test_settings_that_all_but_tie_run_to_the_end(race, monkeypatch):
    rng = np.random.default_rng(0)
    apart = (
        1e-5 * np.arange(300)[None, :] / 300 * (1 + 1e-3 * rng.normal(size=(5, 300)))
    )
    objective = 3 + apart
    objective[3:, 100:] -= 2e-5  # a rounding that the first two had the other way
    assert agree(*race(objective))
    monkeypatch.setattr(racing, "NEAR", 0.0)
    assert not agree(*race(objective))


# --- ties at w = 0 --------------------------------------------------------------------


def resting(replicates=5, size=100):
    """Settings of which those of the smallest three of ten clips rest at 0."""
    objective = 3 + np.linspace(1.0, 2.0, size) * np.ones((replicates, 1))
    at_zero = np.zeros((replicates, size), bool)
    at_zero[:, :30] = True
    return np.where(at_zero, 2.5, objective), at_zero


def test_of_ties_at_zero_one_of_each_clip_runs_to_the_end(race):
    objective, at_zero = resting()
    whole, short = race(objective, at_zero=at_zero)
    assert agree(whole, short) and best(short)["step"].item() == 0.0
    went = ran(short).loc[2:, 16:29]  # but for leaders
    assert went[20].all() and not went.drop(columns=20).to_numpy().any()
    out = short[short["reason"].str.startswith("at w = 0 as step 0 ")]
    assert len(out) == 3 * 13
    assert (
        ran(race(objective, at_zero=at_zero, exact=True)[1])
        .loc[:, :29]
        .to_numpy()
        .all()
    )


def test_ties_run_after_all_if_the_one_that_ran_for_them_left_zero(race):
    objective, at_zero = resting()
    at_zero[4, 20:30] = False
    objective[4, 20:30] = np.linspace(2.6, 2.0, 10)
    whole, short = race(objective, at_zero=at_zero)
    assert agree(whole, short) and best(short)["step"].item() == 9.0
    assert ran(short).loc[:, 20:29].to_numpy().all()
