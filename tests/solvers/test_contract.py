"""What every solver promises: ``check_solver`` over the registry, and its prices.

A YAML in ``conf/solver`` is checked without a line here; an algorithm of this package
needs a twin too (``test_twins``).
"""

import sys
from functools import partial
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from dperm.solvers import registry
from dperm.testing import Check, check_solver, solver_checks
from solvers.test_twins import COMPARED

ROOT = Path(__file__).parents[2]
MINE = ROOT / "docs/examples/mine/noisy_gd.py"
YAMLS = sorted(ROOT.glob("conf/solver/*.yaml"))


# Of variants by options, which weekly runs them all; one of them stands for all by day.
WEEKLY, BY_DAY = (
    ("sensitivity", "target", "sizes", "noise"),
    "approximate_minima",
)
PRICED = (  # by day, one of each family and law of noise; all others weekly
    "ada_ssp",
    "dp_bcfw",
    "dp_cd",
    "dp_gcd_gumbel",
    "dp_gd",
    "dp_gram",
    "dp_sgd",
    "dp_minibatch",
    "dp_skgd",
    "moments",
    "sco_dp_sgd",
    "sco_mirror_descent",
)


def price(subject):
    """No shift costs more than the ledger, by a second accountant too."""
    for m, audit in subject.audits:
        assert not audit.epsilon().caught, m.name


def checks():
    """Every check of every YAML; variants by options on fewer data."""
    for path in YAMLS:
        spec = OmegaConf.to_container(OmegaConf.load(path))
        varied = path.stem == spec["algorithm"]
        given = (spec["algorithm"], spec.get("options", {}), varied)
        every = solver_checks(*given)
        (subject,) = every[0].run.args
        every.append(
            Check("price", spec["algorithm"], partial(price, subject))
        )
        weekly = {*WEEKLY} if not varied and path.stem != BY_DAY else set()
        weekly |= set() if path.stem in PRICED else {"price"}
        for check in every:
            marks = pytest.mark.long if str(check) in weekly else ()
            yield pytest.param(check, id=f"{path.stem}-{check}", marks=marks)


@pytest.mark.parametrize("check", checks())
def test_a_solver_keeps_its_promises(check):
    check()


def test_every_algorithm_has_a_yaml_and_a_twin():
    named = {OmegaConf.load(path).algorithm for path in YAMLS}
    assert named == {*registry.PLACES} == COMPARED


REFUSED = {
    "ada_ssp": {"label": 0.0},
    "dp_adaptive": {"quantile": 1.0, "sizes": 0.0},
    "dp_cd": {"sampling": "odd"},
    "dp_gcd": {"rule": "GS", "noise": "normal"},
    "dp_gd": {"steps": 0, "momentum": 1.0, "clip": 0.0},
    "dp_gram": {"share": 1.0},
    "dp_minibatch": {"share": 0.0},
    "dp_newton": {"trace": 0.0, "damping": -1.0},
    "dp_selection": {"features": 0},
    "dp_sgd": {"batch": 0},
    "dp_skgd": {
        "sampling": "twice",
        "probabilities": "large",
        "blocks": -1,
        "size": 0,
    },
    "dp_svrg": {"inner": 0},
    "hessian_mixing": {"rows": 0.0},
    "moments": {"floor": -1.0},
    "noisy_sfw": {"steps": "constant"},
    "objective_perturbation": {"minima": "rough", "curvature": 0.0},
}


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_make_no_sense_are_refused_by_name(name):
    for key, value in REFUSED[name].items():
        with pytest.raises(ValueError, match=rf"options\.{key}"):
            registry.load(name).Options(**{key: value})


# --- a solver of one's own ------------------------------------------------------------


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Write the documentation's solver, changed, beside ``conf/``."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def write(*changes):
        text = MINE.read_text(encoding="utf-8")
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        (tmp_path / "of_my_own.py").write_text(text, encoding="utf-8")
        return "of_my_own"

    yield write
    sys.modules.pop("of_my_own", None)


def test_the_one_of_the_documentation_passes(own):
    check_solver(own())


DRAWN = "gaussian(self.noise, self.problem.p)"
STEP = "        self.step = settings.step / problem.global_smoothness\n"
SLIPS = {
    "offers": ("class Run(Block)", "class Run"),
    "ledger": (
        "Gaussian(1.0, noise_multiplier,",
        "Gaussian(1.0, noise_multiplier + 9,",
    ),
    "sensitivity, no clip": (
        "gradient(w, self.clip[k])",
        "gradient(w, 1e9)",
    ),
    "sensitivity, half the noise": ("* noise)", "* 0.5 * noise)"),
    "sensitivity, noise cut": (DRAWN, f"{DRAWN}.clip(-1, 1)"),
    "sensitivity, a start of the data": (
        "np.zeros((len(settings.step), problem.p))",
        "np.tile(problem.gradient(np.zeros(problem.p)), (len(settings.step), 1))",
    ),
    "noise": ("streams.noise", "np.random.default_rng(1)"),
    "count": (
        "noise_multiplier, count,",
        "noise_multiplier, max(count - 1, 1),",
    ),
    "extremes": (
        STEP,
        f"        assert np.abs(problem.A).max() < 1e100\n{STEP}",
    ),
    "chance": ("streams.noise", "np.random.default_rng()"),
    "sizes": ("max(1, round(passes))", "round(passes)"),
    "split": (
        "        for _ in",
        "        self.step = self.step * 0.9\n        for _ in",
    ),
    "apart": ('"step", "clip", "scale"', '"step", "scale"'),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_fails_the_check_of_that_name(name, own):
    """Planted in the documentation's solver, one for every promise."""
    algorithm = own(SLIPS[name])
    with pytest.raises(ValueError, match="expected the name of a solver"):
        check_solver(algorithm, options=name)
    if name == "offers":
        with pytest.raises(ValueError, match=r"of_my_own.*Run.*'keep'"):
            check_solver(algorithm)
        return
    checks = {str(one): one for one in solver_checks(algorithm)}
    check = name.split(",")[0]
    with pytest.raises(AssertionError, match=f"of_my_own: check {check}"):
        checks[check]()
