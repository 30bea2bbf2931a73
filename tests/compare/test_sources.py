"""Files become problems: the objective is the one that is told."""

import numpy as np
import pytest

from compare.conftest import N, P, drawn
from dperm.compare.request import parse
from dperm.compare.sources import CONSTANT, load
from dperm.compare.units import units
from dperm.core.experiment.locate import ConfigError


def test_all_that_is_wrong_with_a_csv_is_said_at_once(tmp_path):
    cities, plans = ("Rome", "", "Oslo, N"), ("free", "paid")
    lines = ["age,city,since,land,plan"] + [
        f'{"" if k % 9 == 0 else k},"{cities[k % 3]}",2020-01-{k:02},7,{plans[k % 2]}'
        for k in range(1, 31)
    ]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(lines) + "\n")
    words = [f"problem={path}", "target=plan", "epsilon=1"]
    with pytest.raises(ConfigError) as refused:
        load(parse(words))
    text = str(refused.value)
    for said in ("'age', line", "'city', line 3", "'since', line 2", "'plan', line 2"):
        assert said in text
    mended = [
        "target=plan",
        "positive=paid",
        "drop=[city,since,land]",
        "missing=median",
    ]
    found = load(parse([f"problem={path}", *mended]))
    assert found.problem.n == 30 and found.problem.p == 1 + 1


def loaded(*words):
    return load(parse(words))


def test_the_optimum_is_that_of_ridge_regression(mine):
    given = loaded("problem=real.csv", "target=y", "l2=0.3")
    table = drawn(True)
    X, y = table[["a", "b", "c"]].to_numpy(), table["y"].to_numpy()
    A = np.column_stack(((X - X.mean(axis=0)) / X.std(axis=0), np.ones(N)))
    ridge = 0.3 * np.diag([1.0] * P + [0.0])  # the intercept is not penalised
    w = np.linalg.solve(A.T @ A / N + ridge, A.T @ y / N)
    value = 0.5 * np.mean((A @ w - y) ** 2) + w @ ridge @ w / 2
    assert given.optimum.w * [1, 1, 1, CONSTANT] == pytest.approx(w, rel=1e-6)
    assert given.optimum.value == pytest.approx(value, rel=1e-6)
    assert given.problem.given == (
        "n", "standardisation of columns", "whether labels are of two classes"
    )  # fmt: skip
    assert given.problem.delta == pytest.approx(1 / N**2)


def test_bounds_are_those_of_a_fit(mine):
    table = drawn(True)
    X, y = table[["a", "b", "c"]].to_numpy(), table["y"].to_numpy()
    ranges = {"a": (-1, 1), "b": (0, 9), "c": (0, 2)}
    each = [f"bounds.{name}=[{low},{high}]" for name, (low, high) in ranges.items()]
    given = loaded("problem=real.csv", "label_bounds=[-5,9]", *each)
    made = units("bounds", ranges, [*ranges], True)
    assert np.array_equal(given.problem.A[:, :P], made.applied(X))
    assert given.y == pytest.approx(np.clip(y, -5, 9) - 2)
    scales, label = given.scales
    assert np.array_equal(scales, made.scale) and label == pytest.approx(14 / 12**0.5)
    assert given.as_fit and given.problem.given[0] == "n"
    assert "standardisation of columns" not in given.problem.given
    alike = loaded("problem=real.csv", "bounds=[-3,3]", "intercept=no")
    assert np.array_equal(alike.problem.A, np.clip(X, -3, 3))


def test_two_classes_are_signs_and_the_penalty_is_one_over_n(mine):
    given = loaded("problem=mine.csv", "target=y", "intercept=no", "standardize=no")
    y = drawn(False)["y"].to_numpy()
    assert given.problem.loss.name == "logistic" and given.problem.p == P
    assert np.array_equal(given.y, np.where(y == 1, 1.0, -1.0))
    assert given.problem.penalty.l2 == 1 / N and given.problem.given == (
        "n", "whether labels are of two classes", "which classes there are"
    )  # fmt: skip
    other = loaded("problem=mine.csv", "target=y", "positive=0")
    assert np.array_equal(other.y, -given.y)


def test_classes_of_text_separators_and_columns_left_out(mine):
    table = drawn(False)
    table["y"] = np.where(table["y"] == 1, "yes", "no")
    table["who"] = "someone"
    table.to_csv("text.tsv", sep="\t", index=False)
    given = loaded("problem=text.tsv", "target=y", "positive=yes", "drop=[who]")
    assert np.array_equal(given.y, np.where(table["y"] == "yes", 1.0, -1.0))
    assert given.problem.p == P + 1


def test_what_fills_gaps_in_is_taken_as_public(mine):
    table = drawn(True)
    table.loc[3, "a"] = np.nan
    table.to_csv("gaps.csv", index=False)
    given = loaded("problem=gaps.csv", "missing=median")
    assert "median of columns" in given.problem.given
    whole = loaded("problem=gaps.csv", "missing=drop")
    assert "which records are whole" in whole.problem.given


def test_a_problem_of_the_configuration_has_its_own_words(folder):
    given = loaded("problem=diabetes", "epsilon=2", "delta=1/n", "l1=0.5")
    problem = given.problem
    assert (problem.epsilon, problem.delta) == (2.0, 1 / problem.n)
    assert problem.penalty.l1 == 0.5 and given.optimum.gap < 1e-9


REFUSED = {
    "problem=mien.csv": "mien.csv: no such file, nor a problem of conf/problem: .* "
    r"\(did you mean mine.csv\?\)",
    "problem=diabtes": r"did you mean diabetes\?",
    "problem=mine.py": "problem=mine.py: expected a file that ends in .csv",
    "problem=mine.csv target=z": "mine.csv: column z is missing; there are a, b",
    "problem=real.csv target=yy": r"column yy is missing; .*\(did you mean y\?\)",
    "problem=real.csv target=y loss=logistic": "target=y: logistic loss takes two "
    r"classes, found 80 values \(.*\): expected positive=VALUE",
    "problem=real.csv loss=logistc": r"did you mean logistic\?",
    "problem=text.csv target=y": "text.csv: column 'y', line 2: .*`positive` names the "
    "class, such as no, yes",
    "problem=text.csv target=y positive=maybe": "found the classes no, yes, expected "
    "'maybe'",
    "problem=huge.csv target=y": "huge.csv: column 'a', line 2: found 1e.300, expected",
    "problem=huge.csv target=b drop=[a]": "huge.csv: column 'b', line 2: found inf, "
    "expected",
    "problem=tiny.csv target=y": "standardize: column 0 .* varies by too little",
    "problem=same.csv target=y": "target=y: expected labels that differ, found 1",
    "problem=one.csv": "one.csv: expected 2 records or more, found 1",
    "problem=gap.csv": r"gap.csv: column 'a', line 2: .*`missing` may be mean, median",
    "problem=numbers.csv": "`header: false`",
    "problem=mine.csv missing=zero": "missing=zero: expected mean, median or drop",
    "problem=mine.csv delta=2": r"delta=2: expected in \(0, 1\)",
    "problem=mine.csv delta=n": "delta=n: expected a number, 1/n",
    "problem=mine.csv problem.privacy.epsilon=1": "expected with a problem of conf",
    "problem=real.csv bounds.a=[0,1]": "bounds: .* wrong or left out: b, c",
    "problem=real.csv bounds=[1,0]": r"bounds: expected \(low, high\)",
    "problem=real.csv bounds=[0,x]": r"bounds: expected \[low, high\], found 'x'",
    "problem=mine.csv label_bounds=[0,1]": "label_bounds: labels of two classes are",
    "problem=mine.csv bounds=[0,1] standardize=yes": "expected without bounds",
    "problem=mine.csv bounds=[0,1] feature_scale=data": "feature_scale=data: expected",
    "problem=diabetes target=y": "target: expected with a file",
    "problem=data.npz separator=;": "separator: a .npz file has no such thing",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_used_is_refused_in_one_line(mine, line):
    table = drawn(False)
    table.assign(y=np.where(table["y"] == 1, "yes", "no")).to_csv(
        "text.csv", index=False
    )
    table.assign(y=1.0, a=2.0).to_csv("same.csv", index=False)
    table[:1].to_csv("one.csv", index=False)
    table.assign(a=1e300, b=np.inf).to_csv("huge.csv", index=False)
    table.assign(a=table["a"] * 1e-200).to_csv("tiny.csv", index=False)
    table.assign(a=table["a"].where(table.index > 0)).to_csv("gap.csv", index=False)
    table.to_csv("numbers.csv", index=False, header=False)
    np.savez("data.npz", X=table[["a"]].to_numpy(), y=table["y"].to_numpy())
    with pytest.raises(ConfigError, match=REFUSED[line]) as refused:
        loaded(*line.split())
    assert "\n" not in str(refused.value) and "reader." not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "nothing.csv is empty"), ("a,b,y\n", "nothing.csv: .* no rows")],
)
def test_a_file_without_records_is_refused_by_name(folder, text, said):
    (folder / "nothing.csv").write_text(text)
    with pytest.raises(ConfigError, match=said):
        loaded("problem=nothing.csv", "target=y")


def test_all_that_is_wrong_with_columns_is_said_at_once(mine):
    table = drawn(False).assign(city=["a", "b", "c c"] * (N // 3) + ["a"] * (N % 3))
    table = table.astype({"a": object})
    table.loc[1, "a"] = "1o"
    table.to_csv("text.csv", index=False)
    said = r"^text\.csv: column 'a', line 3: found '1o'.*'city', line 2: .*`drop` it"
    with pytest.raises(ConfigError, match=said):
        loaded("problem=text.csv", "target=y")
