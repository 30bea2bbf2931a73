# ruff: noqa: E501
"""Configurations: what they mean, and what is refused in one line that helps.

By day a hundred keys of the shipped files are spoilt by chance, ``make test-all``
spoils two thousand.
"""

import itertools
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from dperm.config import composition, grid, locate, validation
from dperm.config.config import compose, read
from dperm.config.grid import number
from dperm.config.locate import ConfigError
from dperm.experiments import checks
from dperm.workflow import jobs
from weekly import spread


@pytest.fixture
def conf(tmp_path, monkeypatch):
    """A copy of conf/ that a test may spoil."""
    shutil.copytree(locate.conf_dir(), tmp_path / "conf")
    monkeypatch.setenv("DPERM_CONF", str(tmp_path / "conf"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "conf"


# --- meaning --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a-b", "a-b"), ("-7", -7), ("1e3", 1000.0), ("NULL", None), ("", ""),
        (".inf", float("inf")), ("'a'", "a"), ("1/n", "1/n"), ("{a: [1]}", {"a": [1]}),
    ],
)  # fmt: skip
def test_values_of_overrides(text, value):
    key = "problem.dataset.reader.options.x"
    for given in ([f"+{key}={text}"], [f"+{key}=0", f"{key}={text}"]):
        found = read("problem", "diabetes", given)
        assert found.dataset.reader.options["x"] == value


def test_overrides_change_add_and_remove():
    found = read(
        "problem",
        "diabetes",
        ["problem.privacy.epsilon=2", "problem.title='x, y'"],
    )
    assert (found.privacy.epsilon, found.title) == (2.0, "x, y")
    assert (
        read("solver", "dp_cd", ["++solver.options.first=3"]).options["first"]
        == 3
    )
    assert "step" not in read("scale", "smoke", ["~scale.keep.step"]).keep


@pytest.mark.parametrize("group", locate.GROUPS)
def test_a_section_as_written_is_what_hydra_composes(group):
    names = locate.available(group)
    written = {name: composition.as_written(group, name) for name in names}
    assert None not in written.values()
    for begin in range(0, len(names), 16):
        # Hydra's time grows with the square
        batch = names[begin : begin + 16]
        orders = [
            f"+{group}@s{place}='{name}'" for place, name in enumerate(batch)
        ]
        tree, _ = composition.compose(composition.SECTIONS_CONFIG, orders)
        assert [*tree.values()] == [written[name] for name in batch]


@pytest.mark.parametrize(
    "text",
    ["defaults: [dp_sgd]\nname: x\n", "defaults: [dp_cd, _self_]\nname: x\n"],
)
def test_a_section_with_a_defaults_list_is_left_to_hydra(conf, text):
    (conf / "solver" / "x.yaml").write_text(text)
    assert composition.as_written("solver", "x") is None
    assert composition.as_written("solver", "missing") is None


@pytest.mark.parametrize(
    "tag", ["!!set {a, b}", "!!omap [a: 1]", "!!binary aGk="]
)
def test_a_value_of_no_plain_type_is_refused(conf, tag):
    text = f"name: x\nlabel: x\nalgorithm: dp_cd\noptions: {{step: {tag}}}\n"
    (conf / "solver" / "x.yaml").write_text(text)
    with pytest.raises(
        ConfigError, match=r"solver/x.yaml: not valid YAML: could not"
    ):
        read("solver", "x")


def test_a_variant_inherits(conf):
    (conf / "solver/mine.yaml").write_text(
        "defaults: [dp_cd_priv]\nname: mine\noptions: {first: 3}\n"
    )
    options = read("solver", "mine").options
    assert options == {"sampling": "cyclic", "first": 3, "share": 0.1}
    (conf / "problem/mine.yaml").write_text(
        "defaults: [diabetes]\nname: mine\ndataset: {title: again}\n"
    )
    assert read("problem", "mine").dataset.title == "again"


def test_numbers_that_depend_on_n_and_places_from_the_environment(monkeypatch):
    assert number("1/n", 50) == 0.02 and number("1/n^2", 50) == 0.0004
    monkeypatch.setenv("DPERM_MIRROR", "/somewhere")
    assert compose([]).data.mirror == "/somewhere"
    assert compose(["data.mirror=/else"]).data.mirror == "/else"


def test_an_infinite_clip_is_accepted_without_noise(conf):
    spoil(conf / DPCD, "runs.dp_cd.grid.clip", [float("inf")])
    assert compose(["problem.privacy.epsilon=.inf"]).paper.name == "dpcd"


# --- refusals, by hand ----------------------------------------------------------------

OVERRIDES = [
    ("problem=california_nrm", "problem: .*did you mean california_norm"),
    ("problem=log1,log2", "problem=log1,log2: expected key=value, one value"),
    ("problem.loss=logistc", "did you mean logistic"),
    ("+problem.penlty=1", "did you mean penalty"),
    ("solver.algorithm=dp_ccd", "did you mean dp_cd"),
    ("+solver.options.smpling=uniform", "did you mean sampling"),
    ("paper.calibrations=[tigth]", "did you mean tight"),
    (
        "problem.privacy.epsilon=0",
        "privacy.epsilon: .*greater than 0, found 0",
    ),
    (
        "problem.privacy.epsilon=high",
        "epsilon: .*a valid number, found 'high'",
    ),
    ("problem.privacy.delta=1", "privacy.delta: .*less than 1"),
    ("problem.privacy.delta=2/n", "privacy.delta: .*1/n"),
    ("problem.penalty.l1=-1", "penalty.l1: .*equal to 0"),
    ("problem.penalty.lower=1", "penalty.lower: .*less than or equal to 0"),
    ("solver.options.sampling=cyclical", "expected one of cyclic, uniform"),
    ("seed=1,2", "seed=1,2: expected key=value, one value"),
    ("workers=0", "workers: .*greater than or equal to 1"),
    ("seed=true", "seed: .*a valid integer, found True"),
    ("seed", "seed: expected key=value"),
    ("problem.title='a", "problem.title='a: expected key=value"),
    ("+seed=3", r"\+seed=3: .* already at 'seed'"),
    ("~solver.options.nothing", "'solver.options.nothing' does not exist"),
    ("setting.passes=5e15", "setting.passes: .*equal to 1000000, found 5"),
    ("setting.step=nan", "setting.step: .*finite number"),
    ("output.results=''", "output.results: .*found nothing"),
]


@pytest.mark.parametrize(("override", "message"), spread(OVERRIDES))
def test_an_override_that_makes_no_sense_is_refused(override, message):
    with pytest.raises(ConfigError, match=message) as caught:
        config = compose([override])
        checks.problem(config.problem)
        checks.solver(config.solver)
    assert "\n" not in str(caught.value)


DPCD, DPGCD, DPSCO = (
    f"paper/{name}/paper.yaml" for name in ("dpcd", "dpgcd", "dpsco")
)
CANCER = "dataset/breast_cancer.yaml"
FILES = [
    # file, key, value, what is said after the file's name
    ("problem/diabetes.yaml", "penalty", {"l3": 1}, "penalty.l3: expected one of l1, l2"),
    ("problem/diabetes.yaml", "name", None, "name: .*found nothing"),
    ("solver/dp_sgd.yaml", "defaults", ["dp_cdd"], "defaults: expected .*'dp_cdd'.*mean dp_cd"),
    ("solver/dp_sgd.yaml", "defaults", ["dp_sgd"], "defaults: expected .*found 'dp_sgd'"),
    ("solver/dp_sgd.yaml", "defaults", 5, "defaults: expected .*found 5"),
    ("solver/dp_sgd.yaml", "defaults", [{"/problem": "log1"}], "defaults: expected .*/problem"),
    ("solver/dp_sgd.yaml", "name", "other", "name: expected dp_sgd, found"),
    ("scale/smoke.yaml", "problems", "smal", "problems: .*did you mean small"),
    ("scale/smoke.yaml", "keep", {"stp": 2}, "keep.*: .*did you mean step"),
    (DPCD, "problems", ["calfornia_raw"], "mean california_raw"),
    (DPCD, "problems", [], "problems: .*found none"),
    (DPCD, "problems", ["diabetes", "diabetes"], "problems: .*found diabetes twice"),
    (DPCD, "runs", {"dp_cd": {}}, "runs.dp_cd.grid: expected axes passes, step, cl"),
    (DPCD, "runs", {"dp_sg": {"grid": {}}}, "did you mean dp_sgd"),
    (DPCD, "runs.dp_cd.problems", [], "runs.dp_cd.problems: .*found nothing"),
    (DPCD, "runs.dp_cd.problems", ["log1"], "runs.dp_cd.problems: expected one of"),
    (DPCD, "runs.dp_cd.grid.clip", [-1.0, 1.0], "runs.dp_cd.grid.clip: .*greater than 0"),
    (DPCD, "runs.dp_cd.grid.step", [float("inf")], "runs.dp_cd.grid.step: .*finite"),
    (DPCD, "runs.dp_cd.grid.clip", [float("inf")], "is accepted only for clip, without noise"),
    (DPCD, "runs.dp_cd.grid.passes", [5e15], "grid.passes: .*1000000"),
    ("problem/diabetes.yaml", "dataset", {"name": "diabetes"}, "dataset.name: .*another"),
    ("solver/dp_sgd.yaml", "options", {"batch": 2.5}, "batch: .*valid integer"),
    ("scale/smoke.yaml", "keep", {"step": 0}, "keep.step: .*equal to 1, found 0"),
    (DPCD, "figures.figure1.options.columns", "two", "columns: .*valid integer"),
    (DPSCO, "sweeps.empirical.options.run", 5, "options: expected one of.*mean runs"),
    (DPCD, "published", {"t": "no.csv"}, "no file conf/paper/dpcd/no.csv"),
    (DPCD, "printed_numbers.1.table", "tabel2", "printed_numbers.table: .*mean table2"),
    (DPCD, "printed_numbers.0.paper_table", "law", "paper_table: expected one of sizes"),
    (DPCD, "printed_numbers.0.quantity", "eror", "quantity: .*mean errors"),
    (DPCD, "printed_numbers.0.our", "median", "found 'our' .did you mean ours"),
    (DPCD, "figures.figure1.options", {"solves": []}, "options: expected one of.*mean solvers"),
    (DPCD, "figures.figure1.options.solvers", ["dp_c"], "options.solvers: .*dp_cd"),
    (DPCD, "figures.figure3.options.x", "hours", "x: expected one of passes, seconds"),
    (DPCD, "tables.table2.options.published", "table9", "published: expected one of"),
    (DPCD, "tables.table2.function", "relative_eror", "table2.function: .*relative"),
    (DPSCO, "sweeps.empirical.options.runs", 1.5, "runs: .*valid integer"),
    (DPSCO, "sweeps.empirical.options", {}, "norms: .*none: without one.*take point, seed"),
    (DPCD, "tables.noise.sweeps", [], "tables.noise.sweeps: expected those .*columns takes"),
    (DPSCO, "sweeps.rates.grid", {"solver": ["poly_swf"]}, "solver: .*mean poly_sfw"),
    (DPGCD, "sweeps.tuning_law.grid", {"problem": ["square"], "solvr": ["dp_cd"]},
     "sweeps.tuning_law: expected an axis 'solver'"),
    (CANCER, "digest", "md5:", "digest: .*sha256.*'md5:'"),
    (CANCER, "sources", [{"origin": "sklearn", "loader": "load_digits", "options": {"nclass": 2}}], "options: expected one of loader"),
    (CANCER, "sources", [{"origin": "sklearn", "loader": "load_wine", "urls": ["http://x"]}], "urls: expected one of loader"),
    (CANCER, "sources", [{"origin": "file", "files": "x.csv"}], "files: expected a valid list"),
    (CANCER, "reader", {"positive": True}, "positive: .*found True: write 'yes' in quo"),
    (CANCER, "reader", {"target": False}, "target: .*found False: write 'no' in quo"),
    (CANCER, "reader", {"drop": [False]}, r"drop\[0\]: .*write 'no' in quotes"),
    (CANCER, "reader", {"categories": {"c": ["a", True]}}, r"c\[1\]: .*'yes' in quotes"),
    (CANCER, "reader", {"categories": {"c": [[1]]}}, r"c\[0\]: expected text or a num"),
    (CANCER, "reader", {"categories": {False: ["a"]}}, "categories.*'no' in quotes"),
    (CANCER, "reader", {"missing": "mean"}, "reader.missing: .*only csv and arff"),
    (CANCER, "reader", {"format": "csv", "options": {"separator": "ab"}}, "one charac"),
    ("dataset/lognormal1.yaml", "sources.0.options.n", 1, "options.n: .*to 2, found 1"),
]  # fmt: skip
OF = {DPGCD: "dpgcd", DPSCO: "dpsco", "dataset/lognormal1.yaml": "dpgcd"}


def spoil(path, key, value):
    at = content = yaml.safe_load(path.read_text())
    *above, last = [
        int(part) if part.isdigit() else part for part in key.split(".")
    ]
    for name in above:
        at = at[name] if isinstance(name, int) else at.setdefault(name, {})
    at[last] = value
    path.write_text(yaml.safe_dump(content))


@pytest.mark.parametrize(("file", "key", "value", "message"), spread(FILES))
def test_a_spoilt_file_is_refused_by_name_and_key(
    conf, file, key, value, message
):
    spoil(conf / file, key, value)
    paper = OF.get(file, "dpcd")
    scale = "scale=full" if paper != "dpcd" else "scale=smoke"
    with pytest.raises(ConfigError, match=rf"{file}: .*{message}") as caught:
        jobs.compose([paper], [scale])
    assert "\n" not in str(caught.value)


def test_two_data_sets_of_one_name(conf):
    for name, loader in (("one", "load_wine"), ("two", "load_iris")):
        source = {"origin": "sklearn", "loader": loader}
        dataset = {"name": "same", "sources": [source]}
        problem = {"name": name, "loss": "least_squares", "dataset": dataset}
        (conf / f"problem/{name}.yaml").write_text(yaml.safe_dump(problem))
        for key in ("small_problems", "problems"):
            listed = yaml.safe_load((conf / DPCD).read_text())[key]
            spoil(conf / DPCD, key, [*listed, name])
    with pytest.raises(
        ConfigError, match=r"two\.yaml: dataset.name: .*'same', the oth"
    ):
        jobs.compose(["dpcd"], ["scale=smoke"])


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("problem/diabetes", "name: [diabetes\n", "not valid YAML: .*line 2"),
        (
            "dataset/diabetes",
            "# nothing\n",
            "expected keys and values, name first",
        ),
        ("problem/diabetes", "", "expected keys and values, name first"),
        ("scale/smoke", "- a\n", "expected keys and values, name first"),
        (DPCD[:-5], "# nothing\n", "expected keys and values, name first"),
    ],
)
def test_a_file_that_is_broken_or_empty_is_named(conf, file, text, message):
    (conf / f"{file}.yaml").write_text(text)
    with pytest.raises(ConfigError, match=rf"conf/{file}.yaml: {message}"):
        jobs.compose(["dpcd"], ["scale=smoke"])


@pytest.mark.parametrize(
    "spoil", [Path.mkdir, lambda path: path.symlink_to("gone")]
)
def test_a_folder_or_a_dangling_link_in_place_of_a_file_is_named(conf, spoil):
    spoil(conf / "problem/own.yaml")
    with pytest.raises(
        ConfigError, match=r"problem/own.yaml: expected a file"
    ):
        compose(["problem=own"])


def test_a_folder_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("DPERM_CONF", "/nothing")
    with pytest.raises(
        ConfigError, match=r"DPERM_CONF: .*nothing: expected a folder"
    ):
        compose([])


@pytest.mark.parametrize(
    ("value", "hint", "message"),
    [
        (True, int, "k: expected a valid integer, found True"),
        (2.0, int, "k: expected a valid integer, found 2.0"),
        (False, str, "k: expected a valid string, found False"),
        ([None], list[str], r"k\[0\]: .*nothing: write 'null' in quotes"),
        (None, float, "k: expected a value, found nothing"),
        (
            {"a": [1, "b"]},
            dict[str, list[int]],
            r"k.a\[1\]: expected a valid integer",
        ),
        ({1: 2}, dict[str, int], r"k\[1\]: expected a valid string, found 1"),
    ],
)
def test_values_of_another_type_are_refused(value, hint, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        validation.check(value, hint, "k")


def test_values_of_a_type_are_accepted():
    for value, hint in ((1, float), (None, int | None), ([1], list[float])):
        validation.check(value, hint, "k")


# --- refusals, by chance --------------------------------------------------------------


def keys(node, trail=()):
    """The way to each key of a document."""
    if isinstance(node, dict | list):
        named = isinstance(node, dict)
        for name, value in node.items() if named else enumerate(node):
            if named:
                yield (*trail, name)
            yield from keys(value, (*trail, name))


def spoilt_at_random(folder):
    """Files with a key that nobody knows, or a value of no type that it could have.

    Not below keys that only a paper's own code can judge, nor names of one's choice.
    """
    files = sorted(path for group in ("problem", "solver", "dataset", "scale")
                   for path in (folder / group).glob("*.yaml"))  # fmt: skip
    chance = random.Random(20220202)
    free = {"options", "keep", "loader", "folder", "grid"}
    while True:
        path = chance.choice(files)
        content = yaml.safe_load(path.read_text())
        trail = chance.choice([*keys(content)])
        if free & {*trail} or trail == ("name",):
            continue
        at, last = content, trail[-1]
        for name in trail[:-1]:
            at = at[name]
        if chance.random() < 0.5:
            at[last + "x"] = at.pop(last)
            yield path, last, content
        elif isinstance(at[last], str | int | float | dict | list):
            at[last] = (
                [[1], {"a": 2}]
                if not isinstance(at[last], list)
                else "nonsense"
            )
            yield path, last, content


@pytest.mark.parametrize(
    "times", [100, pytest.param(2000, marks=pytest.mark.long)]
)
def test_any_key_that_is_misspelt_or_of_another_type_is_refused(conf, times):
    for path, key, content in itertools.islice(spoilt_at_random(conf), times):
        group, kept = path.parent.name, path.read_bytes()
        path.write_text(yaml.safe_dump(content))
        try:
            with pytest.raises(ConfigError) as caught:
                section = read(group, path.stem)
                if group == "solver":
                    checks.solver(section)
        finally:
            path.write_bytes(kept)
        said = str(caught.value)
        assert f"{group}/{path.name}" in said and "\n" not in said
        assert key.partition("@")[0].strip("/") in said or "defaults" in said


# --- grids ----------------------------------------------------------------------------

FULL = {"passes": [1, 2], "step": {"logspace": [0.01, 1, 3]},
        "clip": [1, 2, 3]}  # fmt: skip


def test_grids_are_products_pairs_and_unions():
    found = grid.points(FULL)
    assert len(found) == 18
    assert found[0] == {"passes": 1.0, "step": 0.01, "clip": 1.0}
    np.testing.assert_allclose(
        sorted({one["step"] for one in found}), [0.01, 0.1, 1.0]
    )
    one = {"a": [1, 2, 2], "b": [3]}
    two = {"zip": {"a": [2, 4], "b": [3, 5]}}
    found = grid.points([one, two, {"a": [7], "c": [8]}], axes=None)
    pairs = [{"a": 1, "b": 3}, {"a": 2, "b": 3}, {"a": 4, "b": 5}]
    assert [*found] == [*pairs, {"a": 7, "c": 8}] and found[2] == pairs[2]
    assert grid.values(found, "a") == [1, 2, 4, 7]
    thin = grid.thin(grid.points(FULL), {"step": 2, "clip": 9})
    assert {one["step"] for one in thin} == {0.01, 1.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clip": []}, "clip: .*found none"),
        ({"clip": ["a"]}, "clip: expected numbers, found 'a'"),
        ({"clip": [True]}, "clip: expected numbers"),
        ({"clip": {"logspase": [1, 2, 3]}}, "clip: .*logspase"),
        (
            {"clip": {"logspace": [1, 2]}},
            r"clip: expected .*\[start, stop, num\]",
        ),
        ({"clip": {"logspace": [0, 2, 3]}}, "clip: .*positive"),
        ({"clip": {"logspace": [1, 2, 3.0]}}, "clip: .*how many"),
        ({"clip": {"logspace": [1, float("inf"), 2]}}, "clip: .*inf"),
        ({"clip": {"logspace": [1, 2, 10**8]}}, "clip: .*at most 1000000"),
        ({"clp": [1]}, "grid: .*'clp' .*mean clip"),
        ({"zip": {"step": [1], "clip": [1, 2]}}, "zip: .*equal lengths"),
        ({"zip": [1, 2]}, "zip: expected a mapping of axes"),
        ({"zip": {"clip": [1]}}, "'clip' is given twice"),
        (
            {axis: {"logspace": [1, 2, 1000]} for axis in FULL},
            "at most 1000000 points",
        ),
    ],
)
def test_a_spoilt_grid_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        grid.points({**FULL, **change}, "runs.dp_cd.grid")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"passes": [1], "step": [1]}, r"grid\.clip: .*found none"),
        ([], "the grid is empty"),
        ("all", "expected a mapping"),
    ],
)
def test_what_is_no_grid_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        grid.points(given, "grid")
