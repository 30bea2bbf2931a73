# ruff: noqa: E501
"""What is accepted by type and makes no sense is refused when all is composed."""

import re
import shutil

import pytest
import yaml

from dperm.core.experiment import locate, validation
from dperm.core.experiment.config import compose
from dperm.core.experiment.locate import ConfigError
from dperm.pipeline import products, runtable


@pytest.fixture
def conf(tmp_path, monkeypatch):
    """A copy of conf/ that a test may spoil."""
    copy = tmp_path / "conf"
    shutil.copytree(locate.conf_dir(), copy)
    monkeypatch.setenv("DPERM_CONF", str(copy))
    monkeypatch.chdir(tmp_path)
    return copy


DPCD, DPGCD, DPSCO = (f"paper/{name}/paper.yaml" for name in ("dpcd", "dpgcd", "dpsco"))
CANCER = "dataset/breast_cancer.yaml"
SWEPT = "solver/noisy_sfw_all.yaml"  # named by points of a sweep alone
LOGNORMAL = "dataset/lognormal1.yaml"
BAD = [
    # file, key, value, what is said after the file's name
    ("scale/smoke.yaml", "replicates", -1, "replicates: expected 1 or more, found -1"),
    ("scale/smoke.yaml", "replicates", 0, "replicates: expected 1 or more, found 0"),
    ("scale/smoke.yaml", "fresh", -2, "fresh: expected 1 or more, found -2"),
    ("scale/smoke.yaml", "problems", "ofline", "problems: .*did you mean offline"),
    ("scale/smoke.yaml", "keep", {"stp": 2}, "keep: .*did you mean step"),
    ("scale/smoke.yaml", "keep", {"step": 0}, "keep.step: expected 1 or more"),
    (DPGCD, "runs.dp_cd.leave_out", {"dorotea": ["strict"]}, "leave_out: .*mean dorothea"),
    (DPGCD, "runs.dp_cd.leave_out", {"dorothea": []}, "leave_out.dorothea: .*found none"),
    (DPCD, "figures.figure1.options", {"solves": []}, "options: 'solves': .*solvers"),
    (DPCD, "figures.figure1.options.solvers", ["dp_c"], "options.solvers: .*dp_cd"),
    (DPCD, "figures.figure1.options.columns", "two", "columns: expected a whole number"),
    (DPCD, "figures.figure3.options.x", "hours", "x: expected one of passes, seconds"),
    (DPCD, "tables.table2.options", {"publishd": "table2"}, "mean published"),
    (DPCD, "tables.table2.options.published", "table9", "published: expected one of"),
    (DPSCO, "sweeps.quantiles.options.run", 5, "options: expected one of.*mean runs"),
    (DPSCO, "sweeps.quantiles.options.runs", 1.5, "runs: expected a whole number"),
    (DPSCO, "sweeps.rates.grid", {"solver": ["poly_swf"]}, "solver: .*mean poly_sfw"),
    (DPGCD, "sweeps.tuning_law.grid", {"problem": ["square"], "solvr": ["dp_cd"]},
     "sweeps.tuning_law: expected an axis 'solver'"),
    (DPCD, "calibrations", [], "calibrations: expected one or more of them, found none"),
    (DPCD, "runs.dp_cd.calibrations", [], "runs.dp_cd.calibrations: .*found none"),
    (DPCD, "problems", [], "problems: expected one or more of them, found none"),
    (DPCD, "runs.dp_cd.problems", [], "runs.dp_cd.problems: .*found none"),
    (DPCD, "problems", ["diabetes", "diabetes"], "problems: expected each of them once, found diabetes twice"),
    (DPCD, "runs.dp_cd.problems", ["log1"], "runs.dp_cd.problems: expected one of"),
    (DPCD, "runs.dp_cd.grid.passes", [5e15], "grid.passes: expected at most 1000000"),
    (DPCD, "runs.dp_cd.grid", {"zip": {"clip": [1], "step": [1]}, "clip": [1],
                               "passes": [1]}, "grid: axis 'clip' is given twice"),
    (DPCD, "runs.dp_cd.grid", {"product": {"clip": [1], "step": [1]},
                               "zip": {"step": [1], "passes": [1]}}, "'step' is given"),
    (DPCD, "runs.dp_cd.grid", {"zip": [1, 2]}, "grid.zip: expected a mapping of axes"),
    (DPCD, "runs.dp_cd.grid", {"passes": {"linspace": [1, float("inf"), 2]}}, "finite"),
    (DPCD, "runs", {"dp_cd": {}}, "runs.dp_cd.grid: expected a value, found none"),
    ("problem/diabetes.yaml", "dataset", {"name": "diabetes"}, "dataset.name: .*another"),
    ("problem/diabetes.yaml", "name", None, "name: expected text, found nothing"),
    ("solver/dp_sgd.yaml", "options", {"batch": True}, "batch: expected a whole number"),
    ("solver/dp_sgd.yaml", "options", {"batch": 2.5}, "batch: expected a whole number"),
    (SWEPT, "algorithm", "noisy_swf", "algorithm .noisy_swf.: .*mean noisy_sfw"),
    ("solver/dp_cd.yaml", "options", {"first": "one"}, "options.first: expected a whole"),
    (CANCER, "digest", "md5:", "digest: found 'md5:', expected sha256"),
    (CANCER, "sources", [{"kind": "sklearn", "loader": "load_wine", "urls": ["x"]}],
     r"sources\[0\].urls: found .*nothing for sklearn"),
    (CANCER, "sources", [{"kind": "sklearn", "loader": "load_digits",
                          "options": {"nclass": 2}}], r"options: .*mean n_class\?"),
    (CANCER, "sources", [{"kind": "file", "files": "x.csv"}], "files: expected a list"),
    (CANCER, "reader", {"missing": "mean"}, "reader.missing: .*only csv and arff"),
    (CANCER, "reader", {"format": "csv", "missing": "zero"}, "reader.missing: found"),
    (CANCER, "reader", {"format": "csv", "options": {"separator": "ab"}}, "one charac"),
    (LOGNORMAL, "sources.0.options.n", 1, "options.n: found 1, expected 2"),
    (LOGNORMAL, "sources.0.options.sigma", "x", "options.sigma: expected a number"),
    (DPCD, "replicates", None, "replicates: expected a whole number, found nothing"),
    (DPCD, "replicates", True, "replicates: expected a whole number, found True"),
    (DPCD, "title", None, "title: expected text, found nothing"),
    (DPCD, "problems", "diabetes", "problems: expected a list, found 'diabetes'"),
    (DPCD, "problems", {"a": 1}, "problems: expected a list"),
    (DPCD, "runs", ["dp_cd"], "runs: expected keys and values"),
]  # fmt: skip


def spoil(path, key, value):
    content = yaml.safe_load(path.read_text())
    *above, last = key.split(".")
    at = content
    for name in above:
        at = at[int(name)] if name.isdigit() else at.setdefault(name, {})
    at[int(last) if last.isdigit() else last] = value
    path.write_text(yaml.safe_dump(content))


@pytest.mark.parametrize(("file", "key", "value", "message"), BAD)
def test_refused_when_all_is_composed(conf, file, key, value, message):
    spoil(conf / file, key, value)
    of = {DPGCD: "dpgcd", DPSCO: "dpsco", LOGNORMAL: "dpgcd", SWEPT: "dpsco"}
    paper = of.get(file, "dpcd")
    with pytest.raises(ConfigError, match=rf"{file}: .*{message}") as caught:
        runtable.run_table(
            [paper], ["scale=full" if paper != "dpcd" else "scale=smoke"]
        )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("file", ["problem/diabetes", "solver/dp_cd", "paper/dpcd/paper",
                                  "scale/smoke", "dataset/diabetes"])  # fmt: skip
def test_an_empty_file_is_named(conf, file):
    (conf / f"{file}.yaml").write_text("# nothing\n")
    with pytest.raises(ConfigError, match=rf"conf/{file}.yaml: .*name"):
        runtable.run_table(["dpcd"], ["scale=smoke"])


def test_two_data_sets_of_one_name(conf):
    for name, l1 in (("one", 1), ("two", 2)):
        source = {"kind": "sklearn", "loader": "load_wine" if l1 == 1 else "load_iris"}
        dataset = {"name": "same", "sources": [source]}
        problem = {"name": name, "loss": "least_squares", "dataset": dataset}
        (conf / f"problem/{name}.yaml").write_text(yaml.safe_dump(problem))
    spoil(conf / DPCD, "offline", ["one", "two", "breast_cancer"])
    spoil(conf / DPCD, "problems", ["one", "two", "electricity_raw", "california_raw",
          "electricity_norm", "california_norm", "sparse_lasso", "diabetes"])  # fmt: skip
    with pytest.raises(
        ConfigError, match=r"two\.yaml: dataset.name: .*'same', the other"
    ):
        runtable.run_table(["dpcd"], ["scale=smoke"])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed=-1", "seed: expected 0 or more, found -1"),
        ("seed=true", "seed: expected a whole number, found True"),
        ("data.timeout=-1", "data.timeout: expected a positive number"),
        ("data.timeout=nan", "data.timeout: expected a finite number"),
        ("data.timeout=inf", "data.timeout: expected a finite number"),
        ("data.retries=-1", "data.retries: expected 0 or more"),
        ("setting.passes=5e15", "setting.passes: expected at most 1000000, found 5"),
        ("setting.step=nan", "setting.step: expected a finite number"),
        ("setting.noise_multiplier=-1", "noise_multiplier: expected 0 or more"),
        ("output.results=''", "output.results: expected text, found nothing"),
        (
            "paper.replicates=null",
            "paper.replicates: expected a whole number, found noth",
        ),
    ],
)
def test_refused_on_the_command_line(override, message):
    with pytest.raises(ConfigError, match=message) as caught:
        compose([override])
    assert "\n" not in str(caught.value)


def test_choices_of_figures_are_those_of_the_figures():
    from typing import get_args

    from dperm.kinds import figures

    for key, known in figures.CHOICES.items():
        assert get_args(products.TYPES[key]) == known
    assert set(figures.OPTIONS) <= set(products.TYPES)


@pytest.mark.parametrize(
    ("value", "hint", "message"),
    [
        (True, int, "k: expected a whole number, found True"),
        (2.0, int, "k: expected a whole number, found 2.0"),
        (
            False,
            str,
            r"k: expected text \(in quotes, if it is meant as text\), found False",
        ),
        (None, float, "k: expected a number, found nothing"),
        ({"a": [1, "b"]}, dict[str, list[int]], r"k.a\[1\]: expected a whole number"),
        ({1: 2}, dict[str, int], "k: expected keys that are text, found 1"),
        ("x", int | None, "k: expected a whole number"),
    ],
)
def test_types(value, hint, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        validation.check(value, hint, "k")
    assert re.match("^k", message)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, str),
        (1, float),
        (None, int | None),
        ([1], list[float]),
        ("${x}", int),
        ("???", int),
    ],
)
def test_what_fits(value, hint):
    validation.check(value, hint, "k")
