"""The contest: equal epsilons, fresh seeds, honest choices, and what is left out."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from conftest import make_problem
from dperm.accountants.private_choice import choice_epsilon
from dperm.compare import contest, contestants, metrics
from dperm.compare.contest import Contest, Prices, Seeds, score_event
from dperm.compare.contestants import (
    Job,
    clip_unit,
    contestant,
    method,
)
from dperm.core.erm.losses import bounded
from dperm.core.erm.optimum import solve
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.ledger import Gaussian, Ledger
from dperm.core.privacy.mechanisms import heard, streams
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.solvers import frank_wolfe
from dperm.solvers.scales import declared

METHODS = {
    "dp_gd": [{"steps": t, "step": s} for t in (3, 6) for s in (0.3, 1.0, 2.0)],
    "objective_perturbation": [{"curvature": k} for k in (0.1, 0.45, 1.0)],
    "dp_cd": [{"passes": p, "step": s, "clip": 1.0} for p in (1, 3) for s in (0.3, 1)],
    "dp_fw": [{"steps": t, "radius": 1.0} for t in (1, 3)],
}
DEFAULTS = {"dp_gd": {}, "objective_perturbation": {},
            "dp_cd": {"passes": 2, "step": 1.0, "clip": 1.0},
            "dp_fw": {"steps": 2, "radius": 1.0}}  # fmt: skip


@pytest.fixture(params=METHODS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def problem():
    return make_problem("logistic", "l2", n=300)


def entered(name, problem, seed=1, held=2, prices=None, fresh=4):
    y = problem.loss.signs(np.sign(np.arange(problem.n) % 3 - 0.5))
    known = metrics.split(problem, y)
    methods = (contestant(name, {}, one) for one in (problem, known.train))
    base, trained = methods
    return Contest(
        base, solve(problem).value, METHODS[name], DEFAULTS[name],
        Seeds.of(seed, fresh, held), prices or Prices(), known, trained,
    )  # fmt: skip


def rows(name, problem, epsilon=1.0, **given):
    return pd.DataFrame(entered(name, problem, **given).rows(epsilon))


def test_every_tuning_meets_the_target_and_no_more(name, problem):
    found = rows(name, problem)
    assert {*found["tuning"]} == {*contest.TUNINGS}
    spent = found["true_epsilon"].dropna()
    assert (spent <= 1 + 1e-9).all() and (spent > 0.85).all()
    errors = found["relative_error"].dropna()
    assert len(errors) == 16 and (errors > 0).all()
    assert (found["test"].notna() == found["relative_error"].isna()).all()
    assert found["test"].dropna().between(0, 1).all()


def test_fresh_runs_have_seeds_that_tuning_never_saw(problem):
    seeds = Seeds.of(5, 20, 5)
    every = [*seeds.tuning, *seeds.fresh, *seeds.held, seeds.drawing]
    assert len({*every}) == len(every)
    found = rows("dp_gd", problem)
    kept = found[(found["tuning"] != "paid") & found["relative_error"].notna()]
    assert {*kept["run_seed"]} == {*Seeds.of(1, 4, 2).fresh}


def test_it_is_the_same_every_time(name, problem):
    one, two = (rows(name, problem).drop(columns="seconds") for _ in range(2))
    pd.testing.assert_frame_equal(one, two)
    other = rows(name, problem, seed=2)
    assert not np.allclose(one["relative_error"].dropna().iloc[:4],
                           other["relative_error"].dropna().iloc[:4])  # fmt: skip


def test_the_grid_is_chosen_by_its_mean_error(problem):
    one = entered("dp_cd", problem)
    method = one.base.aiming(1.0)
    chosen = one._tuned(method)["grid"]
    means = []
    for setting in one.grid:
        noise = one.prices.one(method, setting)[0]
        jobs = [Job(setting, noise, seed) for seed in one.seeds.tuning]
        means.append(method.run(jobs, contest.nothing)["objective"].mean())
    assert chosen == one.grid[int(np.argmin(means))]


def test_more_epsilon_helps(problem):
    means = [rows("objective_perturbation", problem, e)["relative_error"].mean()
             for e in (0.3, 3.0, 30.0)]  # fmt: skip
    assert means[0] > means[1] > means[2]


# --- choices inside the target --------------------------------------------------------


def test_a_paid_run_has_more_noise_than_a_free_one(name, problem):
    one = entered(name, problem)
    method = one.base.aiming(1.0)
    able, cost, _ = one.prices.paid(method, one.grid, 1.0)
    assert 0.85 < cost <= 1 + 1e-9 and able
    for setting, noise, _ in able:
        alone = one.prices.one(method, setting)
        assert alone is not None and noise > alone[0]


def test_a_score_moves_by_what_its_noise_is_made_for():
    problem = make_problem("logistic", "l2", n=50)
    most = metrics.loss_bound(problem)
    assert most == pytest.approx(3 * math.log(2))
    rng = np.random.default_rng(0)
    for size in (0.1, 1.0, 100.0):
        W = size * rng.standard_normal((5, problem.p))
        A = problem.A.copy()
        A[0] = 1e3 * rng.standard_normal(problem.p)
        moved = metrics.clipped_loss(replace(problem, A=A), most, W)
        moved = moved - metrics.clipped_loss(problem, most, W)
        assert (np.abs(moved) <= most / problem.n * (1 + 1e-12)).all()
    lost = metrics.clipped_loss(problem, most, np.full((1, problem.p), np.nan))
    assert lost == pytest.approx(most)


EXTREMES = (0.0, 5e-324, 1e-200, 1.0, 1e200, 1e308, np.inf)
SIZES = [sign * size for size in EXTREMES for sign in (1, -1)] + [np.nan]


@pytest.mark.parametrize("loss", bounded())
@pytest.mark.filterwarnings("ignore")
def test_no_record_moves_a_score_by_more(loss):
    """Features, label and weights at the ends of what doubles hold."""
    base = make_problem(loss, "l2", n=20)
    most = metrics.loss_bound(base)
    W = np.array([np.full(base.p, size) for size in SIZES])
    W = np.concatenate([W, W * [1, 0, -1, 0, 1], np.eye(base.p)])
    found = []
    for x, label in itertools.product(SIZES, SIZES if base.offset.any() else [0.0]):
        A, offset = base.A.copy(order="F"), base.offset.copy()
        A[0], offset[0] = x, label
        one = replace(base, A=A, offset=offset, public=base)
        assert metrics.loss_bound(one) == most
        found.append(metrics.clipped_loss(one, most, W))
    moved = np.ptp(found, axis=0).max()  # nan if any of them is
    assert 0.9 * most / base.n < moved <= most / base.n * (1 + 1e-12)


@pytest.mark.parametrize("penalty", ["none", "l1", "l2", "box"])
@pytest.mark.filterwarnings("ignore")
def test_scores_have_an_order_whatever_the_weights(penalty):
    """No number at all would win where it comes first, and lose elsewhere."""
    problem = make_problem("logistic", penalty)
    W = np.array([np.full(problem.p, size) for size in SIZES])
    seen = contest._scored(problem, metrics.loss_bound(problem), None, W)
    assert np.isfinite(seen["loss"]).all()
    found = contest._score(**seen)
    assert not np.isnan(found).any() and found[-1] == np.inf


@pytest.mark.parametrize("name", ["dp_gd", "objective_perturbation", "dp_cd"])
def test_what_a_choice_draws_is_what_it_is_charged(name, problem):
    """Its runs, one by one: as many numbers as their ledgers have, and none twice."""
    one = entered(name, problem)
    method = one.base.aiming(contest.INNER)
    able, _, _ = one.prices.paid(method, one.grid, 1.0)
    ledgers = {(str(a.setting), a.noise_multiplier): a.ledger for a in able}
    choices, _ = one._choices(method, 1.0, one.seeds.fresh)
    width = 1 if name == "dp_cd" else problem.p
    for drawn in choices[:8]:
        numbers = []

        def listen(kind, unit, order, numbers=numbers):
            assert kind == "gaussian"
            numbers.extend(np.ravel(unit))
            return unit

        with heard(listen):
            contest.run_and_score(method, [drawn], 1.0, None)
        *run, score = ledgers[str(drawn.job.setting), drawn.job.noise_multiplier].events
        assert score.unit.startswith("b / n") and score.count == 1
        assert len(numbers) == width * sum(event.count for event in run) + 1
        assert len({*numbers}) == len(numbers)


def test_prices_are_kept_apart(problem):
    """By epsilon and by delta."""
    prices, grid = Prices(), METHODS["dp_gd"]
    for delta in (1e-3, 1e-8):
        base = contestant("dp_gd", {}, replace(problem, delta=delta))
        for epsilon in (3.0, 0.3):
            method = base.aiming(epsilon)
            noise, cost, _ = prices.one(method, grid[0])
            one = true_epsilon(method.ledger(grid[0], noise), delta)
            assert cost == pytest.approx(one) and one <= epsilon
            able, cost, _ = prices.paid(method, grid, epsilon)
            again = choice_epsilon([each.ledger for each in able], delta)
            assert again == pytest.approx(cost) and cost <= epsilon * (1 + 1e-9)
            assert able[0].ledger.events[-1] == score_event(epsilon, delta)


class Odd:
    """Settings that agree at one noise alone, and take different things as public."""

    def __init__(self, problem):
        self.problem = problem

    def ledger(self, setting, noise):
        event = Gaussian(1.0, noise ** setting["power"], 1, "", "")
        return Ledger((event,), given=(f"power {setting['power']}",))

    def public_information(self, ledger):
        return tuple(name for name in ledger.given if name in self.named)


def test_the_data_have_no_say_in_what_is_run(problem):
    """On a neighbour the same runs are drawn, and any setting as often as any other."""
    A = problem.A.copy(order="F")
    A[0] = 1e6
    drawn = []
    for one in (problem, replace(problem, A=A, public=problem)):
        base = contestant("dp_gd", {}, one)
        made = Contest(base, 1.0, METHODS["dp_gd"], {}, Seeds.of(1, 1, 1), Prices())
        drawn.append(made._choices(base.aiming(contest.INNER), 1.0, range(300))[0])
    assert drawn[0] == drawn[1]
    counts = Counter(str(run.job.setting) for run in drawn[0])
    assert len(counts) == 6 and stats.chisquare([*counts.values()]).pvalue > 1e-4


@pytest.mark.parametrize("named", [(), ("power 1", "power 2")])
def test_a_choice_takes_as_public_what_any_of_its_settings_does(problem, named):
    method, grid = Odd(problem), [{"power": 1}, {"power": 2}]
    method.named = named
    able, _, given = Prices().paid(method, grid, 1.0)
    assert given == named
    assert able[1].noise_multiplier == pytest.approx(able[0].noise_multiplier ** 0.5)
    alone = [Prices().one(method, one)[0] for one in grid]
    prices = Prices()
    assert [prices.one(method, one)[0] for one in grid] == alone


def test_a_score_spends_a_fifth_of_the_root():
    event = score_event(1.0, 1e-6)
    whole = gaussian_epsilon(1 / (contest.SCORE * event.noise_multiplier), 1e-6)
    assert whole == pytest.approx(1.0, rel=1e-5)


def test_the_best_score_is_published(problem, monkeypatch):
    """Without noise on scores the choice is the least of its runs' losses."""
    monkeypatch.setattr(contest, "gaussian", lambda rng, size: 0.0)
    one = entered("dp_gd", problem, held=0, fresh=6)
    method = one.base.aiming(contest.INNER)
    choices, cost = one._choices(method, 1.0, one.seeds.fresh)
    found = one._chosen(method, choices, cost, 1.0)
    for row in found:
        jobs = [drawn.job for drawn in choices if drawn.choice == row["fresh"]]
        assert row["runs"] == len(jobs)
        seen = method.run(jobs, contest.nothing)["objective"]
        assert row["relative_error"] <= one._relative(seen).min() + 1e-3


def clipped(problem, most, W):
    loss = metrics.clipped_loss(problem, most, W)
    return {"score": loss + problem.penalty.value(W)}


def test_the_choice_is_of_scores_with_the_noise_that_is_priced(problem):
    """By the definition: clipped loss and penalty, plus Gaussian noise of its event."""
    epsilon, most = 0.2, metrics.loss_bound(problem)
    one = entered("dp_gd", problem, held=0, fresh=12)
    method = one.base.aiming(contest.INNER * epsilon)
    choices, cost = one._choices(method, epsilon, one.seeds.fresh)
    event = score_event(epsilon, problem.delta)
    quiet = 0
    for row in one._chosen(method, choices, cost, epsilon):
        own = [drawn for drawn in choices if drawn.choice == row["fresh"]]
        jobs = [drawn.job for drawn in own]
        plain = method.run(jobs, partial(clipped, problem, most))["score"]
        noise = [streams(drawn.scored).noise.standard_normal() for drawn in own]
        noisy = plain + event.scale * most / problem.n * np.array(noise)
        assert row["run_seed"] == own[int(noisy.argmin())].job.seed
        quiet += noisy.argmin() == plain.argmin()
    assert quiet < 12  # the noise has a say


def test_scores_have_noise_of_their_own(problem, monkeypatch):
    """Not of a stream that a run may draw its releases from."""
    asked_for = []
    one = entered("dp_gd", problem, held=0, fresh=4)
    method = one.base.aiming(contest.INNER)
    choices, cost = one._choices(method, 1.0, one.seeds.fresh)
    runs = {drawn.job.seed for drawn in choices}

    def noted(seed):
        asked_for.append(seed)
        return streams(seed)

    monkeypatch.setattr(contest, "streams", noted)
    one._chosen(method, choices, cost, 1.0)
    assert len(set(asked_for)) == len(choices) and runs.isdisjoint(asked_for)


@pytest.mark.parametrize("algorithm", ["dp_svrg", "dp_sgd", "dp_cd"])
def test_clips_in_units_of_the_scales_are_given_them(algorithm, problem):
    method = contestant(algorithm, {}, problem)
    ledger = method.ledger({"passes": 2, "step": 1.0, "clip": 1.0}, 1.0)
    assert "coordinate smoothness M_j" in method.public_information(ledger)


def test_a_run_that_diverged_is_in_the_held_out_mean(problem):
    y = np.where(np.arange(problem.n) % 2, 1.0, -1.0)
    held = metrics.split(problem, y)
    W = np.zeros((2, problem.p))
    W[1] = np.inf
    found = held.measure(W)
    assert found[1] == (0.5 if held.metric == "auc" else math.inf)
    real = replace(held, train=make_problem("least_squares", "l2"))
    assert real.metric == "rmse" and real.measure(W)[1] == math.inf


# --- contestants ----------------------------------------------------------------------


def test_runs_do_not_depend_on_their_company(name, problem):
    method = contestant(name, {}, problem)
    setting = METHODS[name][-1]
    jobs = [Job(setting, 0.9, seed) for seed in (3, 4, 5)]
    jobs.insert(1, Job(METHODS[name][0], 0.9, 9))
    whole = method.run(jobs, lambda W: {"first": W[:, 0]})
    alone = method.run(jobs[2:3], lambda W: {"first": W[:, 0]})
    louder = [job._replace(noise_multiplier=9.0) for job in jobs]
    other = method.run([louder[2], jobs[2]], lambda W: {"first": W[:, 0]})
    np.testing.assert_allclose(other["first"][1], alone["first"][0], rtol=1e-7)
    for key in ("objective", "first"):
        assert whole[key].shape == (4,)
        np.testing.assert_allclose(whole[key][2], alone[key][0], rtol=1e-7)


@pytest.mark.parametrize("loss", ["logistic", "least_squares"])
def test_declared_scales_are_in_no_guarantee(name, loss):
    base = make_problem(loss, "l2")
    for problem, known in ((base, True), (declared(base), False)):
        method = contestant(name, {}, problem)
        if not method.obstacle():
            given = method.public_information(method.ledger(METHODS[name][0], 1.0))
            moving = {*given} - {"n", "exactness of minima"}
            assert given[0] == "n" and bool(moving) is known
            real = known and loss == "least_squares"
            assert ("root mean square of labels" in given) is real


def test_clips_are_in_units_of_public_scales():
    problem = make_problem("least_squares")
    S = np.sqrt((problem.A**2).mean(axis=0))
    label = np.sqrt((problem.offset**2).mean())
    assert clip_unit(problem) == pytest.approx(label * np.sqrt((S**2).sum()))
    assert clip_unit(declared(problem)) == pytest.approx(np.sqrt(problem.p))


def test_frank_wolfe_runs_with_the_noise_of_its_ledger(problem, monkeypatch):
    method = contestant("dp_fw", {}, problem)
    setting = {"steps": 3, "radius": 1.0}
    ledger = method.ledger(setting, 2.0)
    made = method._options(setting)
    module = method.module
    assert ledger.events[0].sensitivity == module.sensitivity(method.scaled, made)
    assert ledger.events[0].scale == 2.0 * ledger.events[0].sensitivity
    handed = []
    monkeypatch.setattr(contestants, "Noise", lambda *given: handed.append(given))
    with pytest.raises(AttributeError):  # a run without noise
        method.run([Job(setting, 2.0, 0)], contest.nothing)
    assert handed == [(ledger, ledger.events[0].scale, 0)]  # it sends no features
    strict = module.noise(method.scaled, 3, made, 1.0, 1e-4, "strict")
    assert isinstance(strict, frank_wolfe.Noise)
    priced = Prices().one(method.aiming(1.0), setting)
    assert priced[0] == pytest.approx(
        strict.ledger.events[0].noise_multiplier, rel=1e-3
    )


def test_what_takes_long_is_shortened_or_left_out(problem):
    for name, key in (("dp_cd", "passes"), ("dp_gd", "steps")):
        method = contestant(name, {}, problem)
        setting = {"passes": 10, "step": 1, "clip": 1} if name == "dp_cd" else {}
        whole = method.work(setting)
        assert method.within(setting, whole) == setting
        half = method.within(setting, whole / 2)
        assert half is not None and method.work(half) <= whole / 2
        assert half[key] == (5 if name == "dp_cd" else 15)
        assert method.within(setting, whole / 1000) is None


def test_a_gap_says_why():
    problem = make_problem("least_squares", "l2")
    assert "one sign" in contestant("objective_perturbation", {}, problem).obstacle()
    lasso = make_problem("logistic", "l1")
    assert "composite" in contestant("dp_skgd", {}, lasso).obstacle()
    with pytest.raises(ValueError, match="family streams"):
        contestant("noisy_sfw", {}, problem)


def test_an_out_of_reach_target_is_said(problem):
    grid = [{"curvature": 1000.0}]
    one = entered("objective_perturbation", problem)
    one.grid, one.default = grid, grid[0]
    found = pd.DataFrame(one.rows(0.1))
    assert {*found["status"]} == {"unreachable"} and len(found) == 4


# --- metrics --------------------------------------------------------------------------


def test_the_split_is_fixed_and_whole(problem):
    y = np.where(np.arange(problem.n) % 2, 1.0, -1.0)
    one, two = metrics.split(problem, y), metrics.split(problem, y)
    np.testing.assert_array_equal(one.A, two.A)
    assert one.train.n == 240 and len(one.y) == 60
    every = np.concatenate([one.train.A, one.A])
    assert {*map(tuple, every)} == {*map(tuple, problem.A)}


def test_area_under_the_curve_counts_ties_half():
    y = np.array([1.0, 1.0, -1.0, -1.0])
    assert metrics.area(np.array([4, 3, 2, 1.0]), y) == 1
    assert metrics.area(np.array([1, 2, 3, 4.0]), y) == 0
    assert metrics.area(np.zeros(4), y) == 0.5
    assert metrics.area(np.array([1, np.inf, 0, 0]), y) == 0.5


def test_held_out_metrics_are_those_of_the_definition(problem):
    X, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    W = np.array([[1.0, 0.0], [0.0, 1.0]])
    signed = metrics.Split(problem, X * y[:, None], np.zeros(2), y)
    np.testing.assert_array_equal(signed.measure(W), [1.0, 0.0])
    squares = make_problem("least_squares")
    real = metrics.Split(squares, X, -np.array([2.0, 0.0]), y)
    np.testing.assert_allclose(real.measure(W), [np.sqrt(0.5), np.sqrt(2.5)])


def test_the_ledger_is_what_is_priced(name, problem):
    """The epsilon in a row is the strict one of that ledger at that noise."""
    method = contestant(name, {}, problem).aiming(1.0)
    setting = METHODS[name][0]
    noise, epsilon, _ = Prices().one(method, setting)
    again = true_epsilon(method.ledger(setting, noise), method.problem.delta)
    assert again == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("solver", ["dp_gd", "dp_gram"])
@pytest.mark.parametrize("p", [3, 40])
def test_rows_do_not_depend_on_how_many_runs_go_side_by_side(solver, p, monkeypatch):
    rng = np.random.default_rng(p)
    X = rng.normal(size=(1100, p))
    y = np.sign(X[:, 0] + rng.normal(size=1100))
    problem = build("drawn", X, y, "logistic", Penalty(l2=1e-3), 1.0, 1e-6)
    at, grid = method(solver).on(problem), method(solver).grid[::3]
    jobs = [Job(one, 1 + k, 10 * k + s) for k, one in enumerate(grid) for s in range(3)]
    found = []
    for lanes in (1, 7, 32):
        monkeypatch.setattr(contestants, "LANES", lanes)
        found.append(at.run(jobs, lambda W: {"weights": W})["weights"])
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])
    alone = at.run(jobs[3:4], lambda W: {"weights": W})["weights"]
    assert np.allclose(alone, found[0][3], rtol=1e-9)
