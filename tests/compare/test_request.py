"""What follows ``dperm try``."""

import pytest

from dperm.compare.request import parse
from dperm.core.experiment.locate import ConfigError


def test_keys_become_values_of_their_kinds():
    request = parse(
        ["problem=a=b.csv", "target=1", "solvers=[dp_cd, mine]", "epsilon=0.5",
         "standardize=no", "fresh=3", "delta=1/n", "defaults.mine.step=0.3",
         "grids.mine.step=[0.1, 1]", "grids.mine.clip=2",
         "feature_scale=data",
         "problem.penalty.lower=-1", "output.results=here"]
    )  # fmt: skip
    assert (request.problem, request.target, request.delta) == ("a=b.csv", "1", "1/n")
    assert request.solvers == ["dp_cd", "mine"] and request.tunings == [
        "default",
        "grid",
    ]
    assert (
        request.epsilon == 0.5 and request.fresh == 3 and request.standardize is False
    )
    assert request.defaults == {"mine": {"step": 0.3}}
    assert request.grids == {"mine": {"step": [0.1, 1], "clip": [2]}}
    assert request.feature_scale is None and "feature_scale" in request.given
    assert request.overrides == ["problem.penalty.lower=-1", "output.results=here"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("solver=dp_cd", "did you mean solvers=?"),
        ("diabetes", "'diabetes': expected key=value"),
        ("epsilon=0", "epsilon=0: expected a finite number, more than 0"),
        ("epsilon=-1", "epsilon=-1: expected a finite number, more than 0"),
        ("epsilon=much", "epsilon=much: expected a finite number"),
        ("epsilon=inf", "epsilon=inf: expected a finite number"),
        ("fresh=1", "fresh=1: expected 2 or more"),
        ("fresh=2.5", "fresh=2.5: expected a whole number"),
        ("l2=-1", "l2=-1: expected a finite number, 0 or more"),
        ("label_scale=0", "label_scale=0: expected a finite number, more than 0"),
        ("intercept=maybe", "intercept=maybe: expected true or false"),
        ("tunings=[grid,all]", "tunings=all: expected some of default"),
        ("solvers=[]", "solvers=: expected one or more"),
        ("grids.mine=3", "grids.mine: expected grids.mine.step=[0.1, 1]"),
        ("grids=3", "grids=3: expected grids.mine.step=[0.1, 1]"),
        ("defaults.mine.step=[", "defaults.mine.step=[: expected a number"),
        ("target.a=3", "target.a: expected column that holds y"),
        ("seed=", "seed=: expected a whole number"),
        ("held=1", "held=1: expected 2 or more, for an interval"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(word, said):
    with pytest.raises(ConfigError) as refused:
        parse(["problem=a.csv", word])
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_a_file_without_its_key_is_told_the_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").touch()
    with pytest.raises(ConfigError, match=r"did you mean problem=a.csv\?"):
        parse(["a.csv", "target=y"])


def test_what_may_be_none_or_nothing_is_taken():
    request = parse(["problem=a.csv", "held=0", "drop=[]", "l2=0", "seed=0"])
    assert (request.held, request.drop, request.l2, request.seed) == (0, [], 0.0, 0)


def test_a_problem_must_be_named():
    with pytest.raises(ConfigError, match=r"problem=: expected a file"):
        parse(["epsilon=1"])
