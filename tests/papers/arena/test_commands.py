"""The arena on one problem, and beside other libraries, on data that are at hand."""

import shutil
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from dp_accounting.dp_event import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from scipy.stats import norm
from scipy.stats import t as student

from changing import changed
from conftest import make_problem
from dperm import cli
from dperm.compare import contestants as methods
from dperm.compare import results
from dperm.core.experiment.config import read
from dperm.core.experiment.locate import ConfigError, home
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.mechanisms import streams
from dperm.core.privacy.strict import profile
from dperm.papers.arena import command, outcomes, own, peers
from dperm.pipeline import inputs
from dperm.solvers.fits import dp_minibatch
from dperm.solvers.fits.scaled import Scaled

FAKE = """
import sys
import numpy as np
given = np.load(sys.argv[1])
assert np.linalg.norm(given["X"], axis=1).max() <= given["R"] * (1 + 1e-12)
assert {*given["y"]} == {-1.0, 1.0}
shape = (len(given["epsilons"]), len(given["seeds"]))
W = np.zeros((*shape, given["X"].shape[1]))
np.savez(sys.argv[2], W=W, seconds=np.ones(shape), library="fake", version="0")
"""

# takes noise 4 C where it is left to itself, and says what it took
NOISY = """
import sys
import numpy as np
given = np.load(sys.argv[1])
assert given["rows"].shape == (569, 30) and given["offset"].shape == (569,)
assert (given["steps"], given["batch"]) == (60, 57)
assert np.isclose(given["C"], np.sqrt(30)) and given["l1"].shape == (30,)
noise = np.where(np.isnan(given["noise"]), 4.0, given["noise"])
shape = (len(given["epsilons"]), len(given["seeds"]))
W = np.zeros((*shape, 30))
np.savez(sys.argv[2], W=W, seconds=np.ones(shape), noise=noise, library="fake",
         version="0")
"""


@pytest.fixture
def few(configured):
    """The arena on one small problem, with few methods and runs."""

    def make(*overrides):
        return configured("scale=full", "paper=arena", *overrides)

    def thin(config):
        what = config.paper.sweeps["contest"]
        options = {**what.options, "fresh": 3, "held": 2, "epsilons": [1.0, 3.0]}
        what.grid["solver"] = ["objective_perturbation", "moments", "dp_gd"]
        contest = changed(what, "options", options)
        sweeps = config.paper.sweeps | {"contest": contest}
        return changed(config, "paper.sweeps", sweeps)

    return lambda *overrides: thin(make(*overrides))


def test_settings_of_dperm_try_are_those_that_the_arena_ran():
    options = read("paper", "arena").sweeps["contest"].options
    known = methods.settings()
    for key in ("work", "defaults", "grids"):
        assert known[key] == options[key]


def test_an_own_arena_is_the_one_that_dperm_try_takes(tmp_path, monkeypatch):
    folder = tmp_path / "conf/paper/arena"
    shutil.copytree(home() / "conf/paper/arena", folder)
    text = (folder / "paper.yaml").read_text()
    (folder / "paper.yaml").write_text(text.replace("work: 2.0e+7", "work: 3.0e+7"))
    assert methods.settings()["work"] == 2e7
    monkeypatch.setenv("DPERM_CONF", str(tmp_path / "conf"))
    assert methods.settings()["work"] == 3e7


def test_a_problem_of_ones_own_ends_in_a_recommendation(few, caplog):
    with caplog.at_level("INFO"):
        written = own.recommend(few("problem=diabetes"))
    said = [record.getMessage() for record in caplog.records]
    assert any(line.startswith("without tuning: ") for line in said)
    assert any(line.startswith("grid paid for: ") for line in said)
    assert any("one sign" in line for line in said)  # objective perturbation's gap
    table = pd.read_csv(next(path for path in written if path.suffix == ".csv"))
    assert list(table.columns) == outcomes.COLUMNS
    ran = table[table["status"] == "ok"]
    assert {*ran["algorithm"]} == {"Noisy moments", "DP-GD"}
    assert (ran["epsilon"] == 4.0).all()  # the problem's own
    assert (ran["true_epsilon"] <= 4 * (1 + 1e-9)).all()
    assert {path.suffix for path in written} >= {".csv", ".md", ".svg", ".png"}


def test_a_library_that_can_be_had_is_measured_like_ours(few, tmp_path, monkeypatch):
    (tmp_path / "fake.py").write_text(FAKE)
    label = {"logistic": "fake"}
    fake = peers.Peer("fake-0", (), str(tmp_path / "fake.py"), label, label)
    monkeypatch.setattr(peers, "PEERS", (fake,))
    monkeypatch.setattr(peers, "environment", lambda *given: (sys.executable, ""))
    path = peers.run(few("problem=breast_cancer"))[0]
    table = pd.read_csv(path)
    assert path.name == "peers.csv" and list(table.columns) == peers.COLUMNS
    assert table["epsilon"].tolist() == [1.0, 3.0]
    zero = 9.41246  # relative error of w = 0
    np.testing.assert_allclose(table["mean"], zero, rtol=1e-5)
    assert (table["library"] == "fake").all() and (table["seconds"] == 1).all()


@pytest.fixture
def noisy(tmp_path, monkeypatch):
    """A library whose releases our accountant knows."""
    (tmp_path / "noisy.py").write_text(NOISY)
    label = {"logistic": "noisy"}
    fake = peers.Peer("noisy-0", (), str(tmp_path / "noisy.py"), label, label,
                      peers.as_our_minibatches, peers.poisson_releases)  # fmt: skip
    monkeypatch.setattr(peers, "PEERS", (fake,))
    monkeypatch.setattr(peers, "environment", lambda *given: (sys.executable, ""))


def test_the_true_epsilon_of_another_library_is_that_of_the_noise_it_took(few, noisy):
    table = pd.read_csv(peers.run(few("problem=breast_cancer"))[0])
    assert table["algorithm"].tolist() == ["noisy"] * 2 + ["noisy, our noise"] * 2
    assert table["epsilon"].tolist() == [1.0, 3.0] * 2
    public = "n; standardisation of columns; coordinate smoothness M_j"
    assert table["given"].tolist() == [f"noisy; {public}"] * 2 + [public] * 2
    left, ours = table["true_epsilon"][:2], table["true_epsilon"][2:]
    # sigma is 4 C, twice what a replaced record moves: as one that is added, under 2 C
    release = PoissonSampledDpEvent(57 / 569, GaussianDpEvent(2.0))
    theirs = PLDAccountant().compose(release, 60).get_epsilon(1 / 569**2)
    assert left.nunique() == 1 and theirs < left[0] < 1.2 * theirs
    target = np.array([1.0, 3.0])
    assert (ours <= target).all() and (ours > 0.99 * target).all()


@pytest.mark.parametrize("noise", [0.7, 2.0, 8.0])
def test_the_curve_of_batches_bounds_poisson_sampling_under_replacement(noise):
    problem = make_problem("logistic", n=40, p=3)
    (event,) = peers.poisson_releases(Scaled(problem), noise).events
    rate, curve = event.sampling_rate, profile(event).delta
    assert rate == 0.1
    # numbers in units of C; the two records at opposite ends of the ball
    x = np.linspace(-1 - 12 * noise, 1 + 12 * noise, 400_001)
    here, there = (
        (1 - rate) * norm.pdf(x, 0, noise) + rate * norm.pdf(x, end, noise)
        for end in (1.0, -1.0)
    )
    for epsilon in (0.0, 0.02, 0.1, 0.5, 1.0):
        exact = np.trapezoid(np.maximum(here - np.exp(epsilon) * there, 0.0), x)
        assert exact <= float(curve(epsilon)) * (1 + 1e-6)
        if epsilon == 0.0:  # the whole move of 2 C counts here
            assert exact == pytest.approx(float(curve(0.0)), rel=1e-6)


@pytest.mark.parametrize("where", ["environment", "script"])
def test_a_library_that_cannot_be_had_is_left_out_with_a_reason(
    few, where, monkeypatch
):
    requires = ("no-such-library-at-all==0",)
    broken = peers.Peer("broken-0", requires, "absent.py",
                        {"logistic": "broken"}, {"logistic": ""})  # fmt: skip
    monkeypatch.setattr(peers, "PEERS", (broken,))
    if where == "script":
        monkeypatch.setattr(peers, "environment", lambda *given: (sys.executable, ""))
    else:
        real = peers._failed
        first = [lambda command: "", real, real]
        monkeypatch.setattr(peers, "_failed", lambda command: first.pop(0)(command))
    table = pd.read_csv(peers.run(few("problem=breast_cancer"))[0])
    assert table["status"].tolist() == ["left out"]
    expected = "absent.py" if where == "script" else "its environment cannot be made"
    assert expected in table["reason"].iloc[0]


@pytest.mark.parametrize(
    ("arguments", "function"),
    [(["arena", "--peers", "problem=diabetes", "seed=3"], "peers:run")],
)
def test_the_command_line_leads_there(arguments, function, monkeypatch):
    seen = []
    monkeypatch.setattr(cli, "run_stage", lambda command, rest: seen.append(
        (command.function, rest)))  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["dperm"])
    cli._run(arguments)
    ((found, rest),) = seen
    assert found == f"papers.arena.{function}"
    assert rest == ["paper=arena", "problem=diabetes", "seed=3"]


def test_one_problem_or_one_method_leads_to_its_command(monkeypatch):
    seen = []
    monkeypatch.setattr(own, "recommend", seen.append)
    monkeypatch.setattr(own, "score", lambda *given: seen.append(given))
    cli._run(["arena", "problem=diabetes", "seed=3"])
    cli._run(["arena", "method=mine", "problem=[diabetes, airfoil]"])
    assert (seen[0].problem.name, seen[0].seed) == ("diabetes", 3)
    assert seen[1][1:] == ("mine", ["diabetes", "airfoil"])


@pytest.mark.parametrize("word", ["solver=dp_gd", "solvers=[dp_gd]", "epsilon=1"])
def test_a_key_that_does_nothing_is_refused(word):
    with pytest.raises(ConfigError, match="expected one of problem, method"):
        command.main(["problem=diabetes", word])


TWIN = """
from dperm.solvers.fits.dp_gd import Options, Run, ledger, refuses
FAMILY = "fits"
GRID = {"steps": [3, 30]}
"""


def test_a_method_of_ones_own_is_scored_and_its_twin_ties(few, tmp_path, monkeypatch):
    config = few()
    options = config.paper.sweeps["contest"].options
    options |= {"fresh": 4, "epsilons": [1.0, 3.0, 10.0]}
    (tmp_path / "twin_of_gd.py").write_text(TWIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    rows = []
    for name in ("dp_gd", "dp_cd"):
        for problem in ("breast_cancer", "diabetes"):
            rows += own._runs(config, methods.method(name), problem)
    kept = results.means(pd.DataFrame(rows), outcomes.label)
    kept["data"] = kept["problem"]
    monkeypatch.setattr(own, "known_results", lambda: kept)
    written = {path.name: path for path in own.score(config, "twin_of_gd")}
    heads = pd.read_csv(written["head_to_head.csv"]).set_index(["tuning", "against"])
    verdicts = heads["verdict"].xs("default")
    assert verdicts["DP-GD"] == "tied" and verdicts["DP-CD"] == "ahead"
    against = heads.loc[("default", "DP-CD")]
    assert against["cells"] == 6 and against["wins"] == round(6 * against["ahead"])
    ranks = pd.read_csv(written["ranks.csv"])
    assert set(ranks["epsilon"].astype(str)) == {"all", "1", "3", "10"}
    assert (ranks["of"] == 3).all()
    text = written["paragraph.tex"].read_text()
    assert "twin\\_of\\_gd has place" in text and "2 data sets" in text
    with pytest.raises(ConfigError, match="problem=madelon_l1: expected one of"):
        own.score(config, "twin_of_gd", ["madelon_l1"])


def test_the_kept_results_have_all_that_a_score_needs():
    kept = own.known_results()
    ran = kept[kept["status"] == "ok"]
    assert {*own.TUNINGS} <= {*ran["tuning"]} and ran["public_scales"].all()
    assert ran["data"].notna().all() and ran["mean"].notna().any()


def test_the_whole_arena_is_snakemakes(monkeypatch):
    seen = []
    monkeypatch.setattr(cli, "_snakemake", seen.append)
    cli._run(["arena", "-j", "2"])
    assert seen == [["arena", "-j", "2"]]


@pytest.mark.long
def test_dp_sgd_of_another_library_has_our_errors_at_our_noise(
    few, tmp_path, monkeypatch
):
    monkeypatch.setattr(peers, "PEERS", peers.PEERS[-1:])
    config = few("problem=breast_cancer")
    what = config.paper.sweeps["contest"].options
    what |= {"fresh": 20}
    python, reason = peers.environment(peers.PEERS[0], Path(config.data.dir))
    if reason:
        pytest.skip(f"{python}: {reason}")
    table = pd.read_csv(peers.run(config)[0])
    problem = inputs.load_problem(config)
    optimum, at = inputs.load_optimum(config).value, Scaled(problem)
    for epsilon, rows in table.groupby("epsilon"):
        find = partial(dp_minibatch.ledger, at, options=dp_minibatch.Options())
        found = calibrate(find, epsilon, problem.delta, "strict")
        seeds = [streams(seed) for seed in range(20)]
        run = dp_minibatch.Run(
            at, found.noise_multiplier, seeds, dp_minibatch.Options()
        )
        errors = (problem.objective(run.solve()) - optimum) / optimum
        halves = (rows["ci_high"] - rows["mean"]) / student.ppf(0.975, 19)
        away = (rows["mean"] - errors.mean()).abs()
        away /= np.hypot(halves, errors.std(ddof=1) / 20**0.5)
        theirs, ours = away  # at the library's own noise, which is less, and at ours
        assert ours < 4 < theirs
