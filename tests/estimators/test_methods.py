"""Where a method comes from."""

import numpy as np
import pytest

from conftest import make_problem
from dperm.config.locate import ConfigError
from dperm.estimators import methods
from dperm.privacy.noise import streams
from dperm.solvers import registry
from dperm.solvers.scales import declared

BATCHED = {"passes": 2, "step": 1.0, "clip": 1.0}
SETTINGS = {
    "dp_gd": {"steps": 3},
    "objective_perturbation": {"curvature": 0.45},
    "moments": {},
    **dict.fromkeys(("dp_svrg", "dp_sgd", "dp_cd"), BATCHED),
    "dp_fw": {"steps": 3, "radius": 1.0},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("loss", ["logistic", "least_squares"])
def test_a_run_that_is_followed_ends_where_its_weights_are(name, loss):
    on = methods.method(name).on(make_problem(loss, "l2", n=100))
    if on.obstacle():
        assert name in ("objective_perturbation", "moments")
        return
    given = (SETTINGS[name], 0.9)
    found = on.weights(*given, 3)
    assert np.array_equal(found, on.weights(*given, 3)) and found.shape == (5,)
    assert not np.array_equal(found, on.weights(*given, 4))
    with on.start(*given, streams(3)) as run:
        seen = [*run.releases()]
        assert len(seen) >= sum(
            event.count for event in on.ledger(*given).events
        )
        assert np.allclose(run.weights[0], found, rtol=1e-12)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("loss", ["logistic", "least_squares"])
def test_declared_scales_are_in_no_guarantee(name, loss):
    base = make_problem(loss, "l2")
    for problem, known in ((base, True), (declared(base), False)):
        on = methods.method(name).on(problem)
        if not on.obstacle():
            given = on.public_information(on.ledger(SETTINGS[name], 1.0))
            moving = {*given} - {"n", "exactness of minima"}
            assert given[0] == "n" and bool(moving) is known
            real = known and loss == "least_squares"
            assert ("root mean square of labels" in given) is real
            if SETTINGS[name] is BATCHED:
                # whose clips are in units of the scales
                assert ("coordinate smoothness M_j" in given) is known


def test_clips_are_in_units_of_public_scales():
    problem = make_problem("least_squares")
    S = np.sqrt((problem.A**2).mean(axis=0))
    label = np.sqrt((problem.offset**2).mean())
    assert methods.clip_unit(problem) == pytest.approx(
        label * np.sqrt((S**2).sum())
    )
    assert methods.clip_unit(declared(problem)) == pytest.approx(
        np.sqrt(problem.p)
    )


def test_frank_wolfe_runs_with_the_noise_of_its_ledger(monkeypatch):
    on = methods.method("dp_fw").on(make_problem("logistic", "l2"))
    ledger, handed = on.ledger(SETTINGS["dp_fw"], 2.0), []
    assert ledger.events[0].scale == 2.0 * ledger.events[0].sensitivity
    noise = "dperm.solvers.frank_wolfe.Noise"
    monkeypatch.setattr(noise, lambda *given: handed.append(given))
    with pytest.raises(AttributeError):  # a run without noise
        on.weights(SETTINGS["dp_fw"], 2.0, 0)
    # it sends no features
    assert handed == [(ledger, ledger.events[0].scale, 0)]


def test_a_gap_says_why():
    problem = make_problem("least_squares", "l2")
    on = methods.method("objective_perturbation").on(problem)
    assert "one sign" in on.obstacle()
    lasso = make_problem("logistic", "l1")
    assert "composite" in methods.method("dp_skgd").on(lasso).obstacle()


def test_a_method_without_grid_takes_that_of_its_like():
    for name, like in (("dp_cd_uniform", "dp_cd"), ("dp_svrg", "dp_sgd"),
                       ("dp_gcd", "dp_gcd_gumbel"), ("dp_skgd", "dp_skgd_full"),
                       ("approximate_minima", "objective_perturbation")):  # fmt: skip
        one, other = methods.method(name), methods.method(like)
        assert (one.grid, one.default) == (other.grid, other.default)


def test_a_grid_of_a_modules_own_is_completed_by_the_default_of_its_like(
    monkeypatch,
):
    usual = methods.method("dp_cd").default
    module = registry.load("dp_cd_priv")
    monkeypatch.setattr(module, "GRID", {"step": [0.1, 1]}, raising=False)
    monkeypatch.setattr(module, "DEFAULT", {"clip": 3.0}, raising=False)
    made = methods.method("dp_cd_priv", {"dp_cd_priv": {"passes": 2}})
    assert made.default == {**usual, "clip": 3.0, "passes": 2}
    assert made.grid == [{**made.default, "step": step} for step in (0.1, 1)]


REFUSED = {
    "dp_gdd": ({}, r"solver dp_gdd \(did you mean dp_gd\?\): expected one of"),
    "phased_sgd": ({}, "solves no problem of this kind; expected one of"),
    "fw": ({}, "solves no problem of this kind: it adds no noise"),
    "dp_cd": ({"stpe": 1}, r"setting stpe: .*did you mean step\?"),
    "dp_gd": ({"steps": -1}, "setting: options.steps: expected"),
    "dp_svrg": ({"step": 0}, "setting step: expected a positive"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_run_is_refused(name):
    default, said = REFUSED[name]
    with pytest.raises(ConfigError, match=said):
        methods.method(name, {name: default})
