"""The arena on one problem, and beside other libraries, on data that are at hand."""

import sys

import numpy as np
import pandas as pd
import pytest

from dperm import cli
from dperm.papers.arena import outcomes, own, peers

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


@pytest.fixture
def few(configured):
    """The arena on one small problem, with few methods and runs."""

    def make(*overrides):
        return configured("scale=full", "paper=arena", *overrides)

    def thin(config):
        what = config.paper.sweeps["contest"]
        what.options = {**what.options, "fresh": 3, "held": 2, "epsilons": [1.0, 3.0]}
        what.grid["solver"] = ["objective_perturbation", "moments", "dp_gd"]
        return config

    return lambda *overrides: thin(make(*overrides))


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
    [(["arena", "problem=diabetes", "seed=3"], "own:recommend"),
     (["arena", "--peers", "problem=diabetes", "seed=3"], "peers:run")],
)  # fmt: skip
def test_the_command_line_leads_there(arguments, function, monkeypatch):
    seen = []
    monkeypatch.setattr(cli, "run_stage", lambda command, rest: seen.append(
        (command.function, rest)))  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["dperm"])
    cli._run(arguments)
    ((found, rest),) = seen
    assert found == f"papers.arena.{function}"
    assert rest == ["paper=arena", "problem=diabetes", "seed=3"]


def test_the_whole_arena_is_snakemakes(monkeypatch):
    seen = []
    monkeypatch.setattr(cli, "_snakemake", seen.append)
    cli._run(["arena", "-j", "2"])
    assert seen == [["arena", "-j", "2"]]
