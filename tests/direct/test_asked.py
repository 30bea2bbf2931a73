"""What follows ``dperm try``."""

import pytest

from dperm.direct.asked import KEYS, Asked, parsed
from dperm.locate import ConfigError


def test_keys_become_values_of_their_kinds():
    made = parsed(
        ["problem=a=b.csv", "target=1", "solvers=[dp_cd, mine]", "epsilon=0.5",
         "standardize=no", "fresh=3", "delta=1/n", "defaults.mine.step=0.3",
         "grids.mine.step=[0.1, 1]", "grids.mine.clip=2",
         "categories.colour=[red, green]", "feature_scale=data",
         "problem.penalty.lower=-1", "output.results=here"]
    )  # fmt: skip
    assert (made.problem, made.target, made.delta) == ("a=b.csv", "1", "1/n")
    assert made.solvers == ["dp_cd", "mine"] and made.tunings == ["default", "grid"]
    assert made.epsilon == 0.5 and made.fresh == 3 and made.standardize is False
    assert made.defaults == {"mine": {"step": 0.3}}
    assert made.grids == {"mine": {"step": [0.1, 1], "clip": [2]}}
    assert made.categories == {"colour": ["red", "green"]}
    assert made.feature_scale is None and "feature_scale" in made.given
    assert made.overrides == ["problem.penalty.lower=-1", "output.results=here"]


def test_every_key_is_told_and_is_a_field():
    fields = {*Asked.__dataclass_fields__} - {"given", "overrides"}
    assert {*KEYS} == fields


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("solver=dp_cd", "did you mean solvers=?"),
        ("diabetes", "'diabetes': expected key=value"),
        ("epsilon=0", "epsilon=0: expected more than 0"),
        ("epsilon=much", "epsilon=much: expected a finite number"),
        ("epsilon=inf", "epsilon=inf: expected a finite number"),
        ("fresh=1", "fresh=1: expected 2 or more"),
        ("fresh=2.5", "fresh=2.5: expected a whole number"),
        ("l2=-1", "l2=-1: expected a finite number, 0 or more"),
        ("label_scale=0", "label_scale=0: expected more than 0"),
        ("intercept=maybe", "intercept=maybe: expected true or false"),
        ("tunings=[grid,all]", "tunings=all: expected some of default"),
        ("solvers=[]", "solvers=: expected one or more"),
        ("grids.mine=3", "grids.mine: expected grids.mine.step=[0.1, 1]"),
        ("grids=3", "grids=3: expected grids.mine.step=[0.1, 1]"),
        ("defaults.mine.step=[", "defaults.mine.step=[: expected a number"),
        ("target.a=3", "target.a: expected column that holds y"),
        ("seed=", "seed=: expected a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(word, said):
    with pytest.raises(ConfigError) as refused:
        parsed(["problem=a.csv", word])
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_a_problem_must_be_named():
    with pytest.raises(ConfigError, match=r"problem=: expected a file"):
        parsed(["epsilon=1"])
