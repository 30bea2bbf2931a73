"""``dperm try``: words, files and what comes of them."""

import importlib
import json
import re
import sys

import numpy as np
import pandas as pd
import pytest

from commands import python
from dperm import DPRegressor, cli
from dperm.benchmark import command, race
from dperm.benchmark.command import OPTION_HELP, parse, planned
from dperm.config.locate import ConfigError
from small_files import N, drawn

FEW = ("fresh=3", "grids.dp_cd.step=[0.5,1]")


def case(*words):
    """The data of a request, with a method that does all problems."""
    return planned(parse(["solvers=dp_gd", *words]))[0]


# --- words ----------------------------------------------------------------------------


def test_keys_become_values_of_their_kinds():
    request = parse(
        ["problem=a=b.csv", "target=1", "solvers=[dp_cd, mine]", "epsilon=0.5,2",
         "intercept=no", "fresh=3", "delta=1e-5", "defaults.mine.step=0.3",
         "grids.mine.step=[0.1, 1]", "grids.mine.clip=2", "drop=['', b]",
         'separator=";"', "bounds.a=[0, 1]", "l2=0", "output.results=here",
         "bounds.Sepal.Length=[4,8]", "categories.my.city=[A]"]
    )  # fmt: skip
    assert (request.problem, request.target, request.delta) == (
        "a=b.csv",
        "1",
        1e-5,
    )
    assert request.solvers == ["dp_cd", "mine"] and request.epsilon == [
        0.5,
        2.0,
    ]
    assert request.tunings == ["default", "grid"] and request.drop == ["", "b"]
    assert (request.fresh, request.l2, request.intercept) == (3, 0.0, False)
    assert request.defaults == {"mine": {"step": 0.3}}
    assert request.grids == {"mine": {"step": [0.1, 1], "clip": [2]}}
    assert request.bounds == {"a": (0.0, 1.0), "Sepal.Length": (4.0, 8.0)}
    assert (
        request.categories == {"my.city": ["A"]} and request.separator == ";"
    )
    assert request.overrides == ["output.results=here"]
    assert parse(["a.csv", "bounds=[0,1]"]).bounds == (0.0, 1.0)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("solver=dp_cd", "did you mean solvers=?"),
        ("epsilon=0", "epsilon=0: expected greater than 0"),
        ("epsilon=much", "epsilon=much: expected a valid number"),
        ("epsilon=inf", "epsilon=inf: expected a finite number"),
        ("fresh=1", "fresh=1: expected greater than or equal to 2"),
        ("fresh=2.5", "fresh=2.5: expected a valid integer"),
        ("l2=-1", "l2=-1: expected greater than or equal to 0"),
        ("delta=2", "delta=2: expected less than 1"),
        ("intercept=maybe", "intercept=maybe: expected a valid boolean"),
        ("tunings=[grid,all]", "tunings=all: expected 'default' or 'grid'"),
        ("missing=zero", "missing=zero: expected 'mean', 'median' or 'drop'"),
        (
            "grids.mine=3",
            "expected a valid dictionary (grids: grids.mine.step=",
        ),
        (
            "defaults.mine.step=[",
            "defaults.mine.step=[: expected defaults.mine.step",
        ),
        ("target.a=3", "(target: column that holds y"),
        ("seed=", "seed=: expected a valid integer"),
        ("loss=logistc", "loss=logistc: expected 'logistic', "),
        ("bounds=[1]", "bounds=['1']: "),
        (
            "bounds.age=[90,18]",
            "bounds.age=['90', '18']: expected low below high (b",
        ),
        (
            "bounds=[1,0]",
            "bounds=['1', '0']: expected low below high (bounds: ",
        ),
        ("label_bounds=[0,x]", "label_bounds=x: expected a valid number"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(word, said):
    with pytest.raises(ConfigError) as refused:
        parse(["a.csv", word])
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_all_that_is_wrong_with_the_words_is_said_at_once():
    with pytest.raises(ConfigError) as refused:
        parse(["epsilon=0", "fresh=x", "sollvers=dp_gd"])
    for said in (
        "epsilon=0",
        "fresh=x",
        "'sollvers=dp_gd'",
        "problem=: expected",
    ):
        assert said in str(refused.value)


@pytest.mark.parametrize("word", ["--help", "epsilon=0"])
def test_the_command_answers_at_once_and_in_lines_for_people(folder, word):
    """Without waiting for what the runs would need."""
    code = (
        f"import sys; sys.argv = ['dperm', 'try', 'a.csv', {word!r}]\n"
        "from dperm.cli import main\n"
        "try: main()\nexcept SystemExit as error: print(error)\n"
        "print([m for m in ('numpy', 'numba', 'pandas') if m in sys.modules])"
    )
    done = python("-c", code)
    *said, heavy = done.stdout.splitlines()
    assert heavy == "[]", done.stderr
    if word == "--help":
        assert said[0].startswith("usage: dperm try") and len(said) > len(
            OPTION_HELP
        )
    else:
        assert len(said) == 1 and said[0].startswith("dperm: epsilon=0: ")


def test_a_failure_is_one_line(mine, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["dperm", "try", "a.csv"])
    monkeypatch.setattr(command, "compare", lambda *given, **keys: 1 / 0)
    said = r"^ZeroDivisionError: .*; DPERM_DEBUG=1 shows"
    with pytest.raises(SystemExit, match=said):
        cli.main()


# --- files ----------------------------------------------------------------------------


def written(name, table=None, **how):
    table = drawn(False) if table is None else table
    table.to_csv(name, index=False, **how)
    return name


def test_every_key_of_a_file_reaches_its_reader(mine):
    """A German Excel's with an index, words for classes, a gap, and no header."""
    table = drawn(False)
    table["y"] = np.where(table["y"] == 1, "yes", "no")
    table.loc[3, "a"] = np.nan
    table.to_csv("odd.txt", sep=";", decimal=",", header=False)
    words = [
        "separator=;",
        "decimal=,",
        "header=false",
        "drop=[1]",
        "target=5",
    ]
    made = case("odd.txt", *words, "positive=yes", "missing=median")
    whole = np.concatenate((made.X, made.X_held)) + made.origin
    filled = table[["a", "b", "c"]].fillna(table["a"].median()).to_numpy()
    assert np.allclose(np.sort(whole, axis=0), np.sort(filled, axis=0))
    assert made.loss == "logistic" and made.declared["classes"] == (-1.0, 1.0)
    fewer = case("odd.txt", *words, "positive=yes", "missing=drop")
    assert len(fewer.y) + len(fewer.y_held) == N - 1
    cities = drawn(False)[["a", "y"]].assign(city=["A", "B"] * (N // 2))
    made = case(
        written("city.csv", cities), "target=y", "categories.city=[A,B]"
    )
    codes = made.X[:, 1:] + made.origin[1:]
    assert made.X.shape[1] == 3 and (codes.sum(axis=1) == 1).all()
    table.fillna(0.0).to_parquet("t.parquet")
    assert case("t.parquet", "target=y", "positive=yes").X.shape == (64, 3)


def test_blanks_and_columns_without_a_name_may_be_said(mine):
    drawn(True).to_csv("blanks.csv", sep=" ", index=False)
    drawn(True).to_csv("index.csv")
    blanks = case("blanks.csv", "target=y", "separator= ")
    index = case("index.csv", "target=y", "drop=['']")
    assert np.array_equal(blanks.X, index.X) and blanks.X.shape[1] == 3


def test_an_epsilon_that_is_said_twice_runs_once(mine):
    found = []
    for word in ("epsilon=1", "epsilon=[1,1.0,1]"):
        words = (
            "solvers=[dp_gd,dp_gd]",
            "tunings=[default,default]",
            "fresh=2",
            word,
        )
        command.compare(parse(["real.csv", "target=y", *words]))
        table = pd.read_csv("results/try/real/try.csv")
        found.append(table.drop(columns="seconds"))
    pd.testing.assert_frame_equal(*found)


def test_two_values_are_classes_unless_it_is_said_that_they_are_numbers(mine):
    table = drawn(False)
    written("odd.csv", table.assign(y=np.where(table["y"] == 1, 0.9, 0.1)))
    assert case("odd.csv", "target=y").declared["classes"] == (0.1, 0.9)
    assert (
        case("odd.csv", "target=y", "label_bounds=[0,1]").loss
        == "least_squares"
    )
    made = case("odd.csv", "target=y", "loss=least_squares")
    assert label_bounds(made) == pytest.approx([0.1, 0.9])


def test_ranges_are_those_declared_and_else_the_datas(mine):
    made = case("mine.csv", "target=y", "bounds.b=[0,9]")
    low, high = made.declared["bounds"] + made.origin
    plain = case("mine.csv", "target=y").declared["bounds"][0] + made.origin
    assert (low[1], high[1]) == pytest.approx((0, 9)) and low[0] == plain[0]
    both = case("real.csv", "target=y", "bounds=[-3,3]", "label_bounds=[-5,5]")
    assert both.declared["bounds"] + both.origin == pytest.approx(
        np.array([[-3.0] * 3, [3.0] * 3])
    )
    assert label_bounds(both) == pytest.approx([-5.0, 5.0])


def label_bounds(made):
    """The range of labels as it was told, before the labels were centred."""
    return [end + made.label_origin for end in made.declared["label_bounds"]]


REFUSED = {
    "mien.csv": r"mien.csv: no such file \(did you mean mine.csv\?\)",
    "mine.csv target=z": "mine.csv: column z is missing; there are a, b",
    "real.csv target=y loss=logistic": "logistic loss takes two classes, found 80 "
    "values: positive=VALUE",
    "text.csv target=y": "text.csv: column 'y', line 2: .*`positive=` names the class",
    "index.csv target=y": r"index.csv: column 1 has no name: `drop=\[1\]`",
    "index.csv target=y drop=['',z]": "index.csv: column z is missing",
    "comma.csv target=y": "found '1,5'.*`decimal=,` if its commas are decimal marks",
    "mine.csv separator=": "separator: expected one character, found ''; in quotes ' '",
    "flat.csv target=y": "flat.csv: no linear function of the features fits better",
    "same.csv target=y": "same.csv: target: expected labels that differ",
    "book.xlsx": "book.xlsx: a workbook, expected CSV",
    "one.csv": "one.csv: expected 10 records or more, found 1",
    "mine.csv target=y bounds.d=[0,1]": "bounds: no column d; expected some of a, b, c",
    "mine.csv target=y bounds=[1,0]": r"bounds=.*low below high",
    "mine.csv target=y loss=logistic label_bounds=[0,1]": "label_bounds: labels of two",
    "mine.csv target=y solvers=dp_gdd": r"solver dp_gdd.*did you mean dp_gd\?",
    "mine.csv target=y grids.dp_cd.step=1": "grids: dp_cd: expected a method that runs",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_used_is_refused_in_one_line(mine, line, monkeypatch):
    monkeypatch.setattr(race, "race", lambda *_, **__: pytest.fail("it ran"))
    table = drawn(False)
    written("text.csv", table.assign(y=np.where(table["y"] == 1, "yes", "no")))
    written("same.csv", table.assign(y=1.0, a=2.0))
    written("one.csv", table[:1])
    written("book.xlsx", table)
    written("flat.csv", table.assign(a=1.0, b=2.0, c=3.0))
    written("comma.csv", table.assign(a="1,5"))
    table.to_csv("index.csv")
    words = line.split()
    words += [] if "solvers" in line else ["solvers=dp_gd"]
    with pytest.raises(ConfigError, match=REFUSED[line]) as refused:
        command.compare(parse(words))
    assert "\n" not in str(refused.value) and "reader." not in str(
        refused.value
    )


def test_all_that_is_wrong_with_columns_and_methods_is_said_at_once(mine):
    table = drawn(False).astype({"a": object})
    table.loc[1, "a"] = "1o"
    city = ["a", "b"] * (N // 2)
    written("text.csv", table.assign(city=city, since="2020-01-01"))
    with pytest.raises(ConfigError) as refused:
        planned(parse(["text.csv", "target=y", "solvers=dp_gdd,nothing"]))
    for said in ("'a', line 3: found '1o'", "'city', line 2", "'since', line 2",
                 "solver dp_gdd", "solver nothing"):  # fmt: skip
        assert said in str(refused.value)


def test_a_folder_that_cannot_be_written_is_refused_before_any_run(
    mine, monkeypatch
):
    monkeypatch.setattr(race, "race", lambda *_, **__: pytest.fail("it ran"))
    (mine / "results").write_text("a file")
    with pytest.raises(ConfigError, match=r"output.results: .*results"):
        command.compare(parse(["mine.csv", "target=y"]))


# --- what comes of it -----------------------------------------------------------------


def test_methods_meet_one_epsilon_and_the_table_says_so(mine):
    words = (
        "solvers=[dp_cd,dp_gd,mine,moments]",
        "epsilon=2",
        "grids.dp_gd.step=[1]",
    )
    told = command.compare(parse(["mine.csv", "target=y", *FEW, *words]))
    table = pd.read_csv("results/try/mine/try.csv")
    ran = table[table["epsilon"].notna()]
    assert ran["solver"].tolist() == [
        name for name in ("dp_cd", "dp_gd", "mine") for _ in range(2)
    ]
    assert (ran["true_epsilon"] <= 2).all() and (
        ran["true_epsilon"] > 1.99
    ).all()
    assert ran["metric"].eq("AUC").all() and ran["test"].between(0, 1).all()
    assert (ran["ci_low"] < ran["mean"]).all() and (ran["given"] == "n").all()
    assert table["solver"].tolist()[-3:] == [
        "moments",
        "constant",
        "no privacy",
    ]
    for text in (
        "DP-CD",
        "DP-GD",
        "mine",
        "the best constant",
        "without privacy",
        "epsilon 2, default: ",
        "epsilon 2, grid: ",
        "cannot do this",
        "epsilon of DP-CD, DP-GD, mine holds given: n",
        "no release",
    ):
        assert text in told


def test_the_first_line_answers_and_a_picture_and_a_page_are_written(
    mine, caplog
):
    """The page needs no other file, and hands on no text as HTML."""
    caplog.set_level("INFO")
    table = drawn(False)
    written("<i>.csv", table)
    words = [
        "<i>.csv",
        "target=y",
        "solvers=[dp_gd,moments]",
        "fresh=2",
        "epsilon=[2,9]",
    ]
    told = command.compare(parse(words), is_page=True)
    first, second = told.splitlines()[:2]
    for line, epsilon in ((first, 2), (second, 9)):
        assert line.startswith(
            f"At epsilon {epsilon} with 64 records and 3 features"
        )
    folder = mine / "results/try/_i_"
    assert (folder / "try.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "try.html").read_text("utf-8")
    assert (
        first in page
        and "data:image/png;base64," in page
        and "<i>" not in page
    )
    assert "&lt;i&gt;" in page and "no release" in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    said = [record.getMessage() for record in caplog.records]
    grid = len(planned(parse(words))[1][0].grid)  # moments cannot do this
    count = 2 * (2 * 2 + race.TUNING_RUNS * grid)
    (before,) = (k for k, line in enumerate(said) if "methods: about" in line)
    (after,) = (
        k for k, line in enumerate(said) if "1 of 2 methods have run" in line
    )
    assert said[before].startswith(f"{count} fits of 1 methods: about ")
    assert (
        before < after
        and "left" in said[after]
        and "left" not in said[after + 1]
    )


def test_without_the_word_there_is_no_page(mine):
    command.compare(
        parse(["mine.csv", "target=y", "solvers=dp_gd", "fresh=2"])
    )
    names = {path.name for path in (mine / "results/try/mine").iterdir()}
    assert names == {"try.csv", "try.png"}


def test_the_core_alone_writes_its_table_and_says_what_a_picture_needs(mine):
    """A page is refused before any run."""
    code = (
        "import sys; from dperm import cli; sys.modules['matplotlib'] = None;"
        "sys.argv = ['dperm', 'try', *sys.argv[1:]]; cli.main()"
    )
    words = ("mine.csv", "target=y", "solvers=dp_gd", "fresh=2")
    done = python("-c", code, *words, cwd=mine)
    assert (
        done.returncode == 0 and "pip install 'dperm[pipeline]'" in done.stderr
    )
    folder = mine / "results/try/mine"
    assert {path.name for path in folder.iterdir()} == {"try.csv"}
    (folder / "try.csv").unlink()
    done = python("-c", code, *words, command.HTML, cwd=mine)
    assert (
        done.returncode == 1 and "pip install 'dperm[pipeline]'" in done.stderr
    )
    assert not (folder / "try.csv").exists() and "Traceback" not in done.stderr


def test_methods_are_chosen_for_one_who_names_none(mine):
    firsts = {"mine.csv": "objective_perturbation", "real.csv": "moments"}
    for name, first in firsts.items():
        chosen = [one.name for one in planned(parse([name, "target=y"]))[1]]
        assert chosen[0] == first and len(chosen) == 4


def test_a_method_of_ones_own_meets_an_intercept_of_one(mine, monkeypatch):
    """A column of 2^20 would take all of a step that has one size for all weights."""
    monkeypatch.syspath_prepend(mine)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 + rng.normal(0, 0.1, 2000)
    how = {"bounds": (-1, 1), "label_bounds": (-5, 5), "random_state": 0}
    own = importlib.import_module("mine")
    model = DPRegressor(own, epsilon=10.0, **how).fit(X, y)
    assert model._constant == 1.0
    assert model.score(X, y) > 0.9
    assert DPRegressor("dp_gd", epsilon=10.0, **how).fit(X, y)._constant > 1.0


def test_rows_as_json_are_the_table(mine):
    words = (
        "solvers=dp_gd",
        "grids.dp_gd.step=[1]",
        "fresh=3",
        "tunings=default",
    )
    request = parse(["mine.csv", "target=y", *words])
    rows = json.loads(command.compare(request, is_json=True))
    table = pd.read_csv("results/try/mine/try.csv")
    assert [row["solver"] for row in rows] == table["solver"].tolist()
    means = [row["mean"] for row in rows]
    np.testing.assert_allclose(means, table["mean"], rtol=1e-6)
