"""A wrong configuration is refused before anything runs, in one line that helps."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf

from dperm import cli
from dperm.core.experiment import config, locate
from dperm.core.experiment.config import compose, read
from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.validation import number
from dperm.pipeline import checks


@pytest.fixture
def conf(tmp_path, monkeypatch):
    """A copy of conf/ that a test may spoil."""
    copy = tmp_path / "conf"
    shutil.copytree(locate.conf_dir(), copy)
    monkeypatch.setenv("DPERM_CONF", str(copy))
    return copy


def hydra(overrides, group=None):
    """What Hydra itself composes, as dataclasses; of one group without the others."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir

    cli.register()
    others = [f"~{other}" for other in config.CHOSEN if group and other != group]
    chosen = [*map(cli.in_folders, overrides), *others]
    with initialize_config_dir(str(locate.conf_dir()), version_base="1.3"):
        composed = hydra_compose("config", chosen)
    return OmegaConf.to_object(composed[group] if group else composed)


SHIPPED = [(group, n) for group in config.CHOSEN for n in locate.available(group)]
BELOW = {
    "paper": ["paper.fresh=20", "++paper.evaluated=best", "paper.offline=[log1, log2]"],
    "problem": [
        *("problem.privacy.epsilon=2", "problem.privacy.delta=1/n"),
        *("+problem.dataset.reader.options={a: 1, b: [x]}", "problem.title='x, y'"),
        *("problem.penalty.upper=inf", "problem.penalty.l1=1e-3"),
    ],
    "solver": ["+solver.options.other=1e-3", "++solver.options.third=[a,2]"],
    "scale": ["++scale.keep.clip=2", "++scale.keep.step=3", "~scale.keep.step"],
}  # fmt: skip


@pytest.mark.parametrize(("group", "name"), SHIPPED)
def test_a_section_read_is_what_hydra_composes(group, name):
    assert read(group, name) == hydra([f"{group}={name}"], group)


@pytest.mark.parametrize(("group", "name"), SHIPPED[::4])
def test_its_overrides_are_applied_as_by_hydra(group, name):
    """To some of each group: nothing about an override depends on the name."""
    chosen = f"{group}={name}"
    others = ["seed=7", "problem.title=z"] if group != "problem" else ["solver.label=z"]
    below = BELOW[group]
    assert read(group, name, [*others, *below]) == hydra([chosen, *below], group)


@pytest.mark.parametrize(
    "overrides",
    [[], ["paper=dpsco", "scale=full", "seed=3", "workers=2", "setting.clip=inf"]],
)
def test_all_of_it_is_what_hydra_composes(overrides, monkeypatch):
    monkeypatch.delenv("DPERM_MIRROR", raising=False)
    theirs = replace(hydra(overrides), overrides=overrides)
    assert compose(overrides) == theirs
    ours = config.settings([o for o in overrides if "paper" not in o])
    for key in ("scale", "data", "output", "setting", "seed", "workers"):
        assert getattr(ours, key) == getattr(theirs, key)


@pytest.mark.parametrize(
    "value",
    [
        *("a", "dp_cd", "A1", "0", "-7", "12345", "007", "1_000", "1e3", "1.5", "0x10"),
        *("true", "False", "NULL", "inf", "NaN", "truer", "off", "yes", "-a", "1a"),
        *("a-b", "a.b", "'a'", "{a: 1}", "[1,2]", "1/n", "", "9999999999999999999"),
    ],
)
def test_values_are_what_hydra_reads(value):
    key = "problem.dataset.reader.options.x"
    theirs = hydra([f"+{key}={value}"], "problem").dataset.reader.options["x"]
    for overrides in (
        [f"+{key}={value}"],
        [f"+{key}=0", f"++{key}=0", f"{key}={value}"],
    ):
        ours = compose(overrides).problem.dataset.reader.options["x"]
        assert repr(ours) == repr(theirs)


def test_a_variant_inherits_as_with_hydra(conf):
    (conf / "solver/mine.yaml").write_text(
        "defaults: [_self_, dp_cd]\nname: mine\noptions: {first: 3, share: 2}\n"
    )
    (conf / "solver/yours.yaml").write_text(
        "defaults: [dp_cd_priv]\nname: yours\noptions: {first: 3}\n"
    )
    (conf / "problem/mine.yaml").write_text(
        "defaults: [diabetes]\nname: mine\ndataset: {title: again}\n"
    )
    root = conf / "config.yaml"
    root.write_text(root.read_text() + "solver: {label: from the root}\n")
    for group, name in (("solver", "yours"), ("problem", "mine")):
        assert read(group, name) == hydra([f"{group}={name}"], group)
    assert read("solver", "yours").options == {
        "sampling": "cyclic", "first": 3, "share": 0.1,
    }  # fmt: skip
    assert read("solver", "yours").label == "from the root"
    assert read("problem", "mine").dataset.title == "again"
    with pytest.raises(ConfigError, match="name: expected mine, found 'dp_cd'"):
        read("solver", "mine")


@pytest.mark.parametrize(
    ("defaults", "message"),
    [
        (
            "[dp_cdd]",
            r"solver/x\.yaml: defaults: solver 'dp_cdd' is unknown.*mean dp_cd",
        ),
        ("[x]", r"solver/x\.yaml: defaults: expected no circle"),
        ("[{/problem: log1}]", r"x\.yaml: defaults: expected a name of its group"),
        ("[[dp_cd]]", r"x\.yaml: defaults: expected a name of its group"),
        ("{a: 1}", r"x\.yaml: defaults: expected a list"),
        ("5", r"x\.yaml: defaults: expected a list"),
    ],
)
def test_a_wrong_defaults_list_is_named(conf, defaults, message):
    (conf / "solver/x.yaml").write_text(f"defaults: {defaults}\nname: x\n")
    with pytest.raises(ConfigError, match=message):
        read("solver", "x")


def test_reading_imports_nothing_heavy():
    code = (
        "import sys; from dperm.core.experiment import config;"
        "config.read('paper', 'dpcd');"
        "print([m for m in ('hydra', 'numba', 'scipy', 'pandas', 'dperm.core.solvers',"
        " 'dperm.core.erm') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("problem=california_nrm", "did you mean california_norm"),
        ("solver=dp_cdd", "did you mean dp_cd"),
        ("problem.loss=logistc", "did you mean logistic"),
        ("problem.privacy.epsilon=0", "privacy.epsilon: expected a positive number"),
        ("problem.privacy.epsilon=-1", "privacy.epsilon: expected a positive number"),
        ("problem.privacy.delta=1", r"privacy.delta: expected in \(0, 1\)"),
        ("problem.privacy.delta=0", r"privacy.delta: expected in \(0, 1\)"),
        ("problem.privacy.delta=2/n", "expected a number, 1/n or"),
        ("problem.penalty.l1=-1", "penalty.l1: expected 0 or more"),
        ("problem.penalty.lower=1", "the box must hold 0"),
        ("problem.lss=1", "problem.lss"),
        ("+problem.penlty=1", "did you mean penalty"),
        ("solver.algorithm=dp_ccd", "did you mean dp_cd"),
        ("+solver.options.smpling=uniform", "did you mean sampling"),
        (
            "solver.options.sampling=cyclical",
            "expected one of cyclic, reshuffled, uniform",
        ),
        ("paper.replicates=0", "replicates: expected 1 or more"),
        ("paper.calibrations=[strikt]", "did you mean strict"),
        ("problem=log1,log2", "problem 'log1,log2' is unknown"),
        ("seed=1,2", "seed=1,2: expected key=value, one value"),
        ("problem.title='a", "problem.title='a: expected key=value"),
        ("seed", "seed: expected key=value"),
        ("+seed=3", "seed=3: is there; expected it without"),
        ("~solver.options.nothing", "there is no solver.options.nothing"),
        ("workers=0", "workers: expected 1 or more"),
        ("setting.passes=-1", "setting.passes: expected a positive number, found -1"),
        ("problem.privacy.epsilon=high", "epsilon: expected a number, found 'high'"),
    ],
)
def test_refusals(override, message):
    with pytest.raises(ConfigError, match=message) as caught:
        checks.check(compose([override]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "key", "value", "message"),
    [
        (
            "problem/diabetes.yaml",
            "los",
            "logistic",
            "problem/diabetes.yaml.*mean loss",
        ),
        (
            "problem/diabetes.yaml",
            "penalty",
            {"l3": 1},
            "penalty.l3: expected one of l1, l2",
        ),
        ("paper/dpcd/paper.yaml", "problems", ["calfornia_raw"], "mean california_raw"),
        (
            "paper/dpcd/paper.yaml",
            "runs",
            {"dp_sg": {"grid": {}}},
            "did you mean dp_sgd",
        ),
        (
            "paper/dpcd/paper.yaml",
            "published",
            {"t": "no.csv"},
            "no file conf/paper/dpcd/no.csv",
        ),
    ],
)
def test_a_spoilt_file_is_named(conf, file, key, value, message):
    path = conf / file
    content = yaml.safe_load(path.read_text())
    content[key] = value
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(ConfigError, match=message):
        read(*Path(file).with_suffix("").parts[:2])


@pytest.mark.parametrize(
    ("axis", "values", "message"),
    [
        (
            "clip",
            [-1.0, 1.0],
            r"dpcd/paper.yaml: runs.dp_cd.grid.clip: expected positive",
        ),
        ("clip", [], r"runs.dp_cd.grid.clip: empty"),
        ("clip", [float("inf")], r".inf is accepted only for clip, without noise"),
        ("passes", [0], r"runs.dp_cd.grid.passes: expected positive"),
    ],
)
def test_a_spoilt_grid_is_named(conf, axis, values, message):
    path = conf / "paper/dpcd/paper.yaml"
    content = yaml.safe_load(path.read_text())
    content["runs"]["dp_cd"]["grid"][axis] = values
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(ConfigError, match=message):
        compose([])


def test_broken_yaml_is_named(conf):
    (conf / "problem/diabetes.yaml").write_text("name: [diabetes\n")
    with pytest.raises(ConfigError, match=r"diabetes.yaml: not valid YAML: line 2: "):
        compose(["problem=diabetes"])


def test_a_missing_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_CONF", str(tmp_path / "nothing"))
    with pytest.raises(ConfigError, match=r"DPERM_CONF: .*nothing: expected a folder"):
        compose([])


def test_an_infinite_clip_without_noise_is_accepted(conf):
    path = conf / "paper/dpcd/paper.yaml"
    content = yaml.safe_load(path.read_text())
    content["runs"]["dp_cd"]["grid"]["clip"] = [float("inf")]
    path.write_text(yaml.safe_dump(content))
    assert compose(["problem.privacy.epsilon=.inf"]).paper.name == "dpcd"


def test_accepted_spellings():
    found = compose(["problem.privacy.delta=1/n", "problem.penalty.l2=1/n"]).problem
    assert number(found.privacy.delta, 50, "") == 0.02
    assert number("1/n^2", 50, "") == 0.0004


def test_the_mirror_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("DPERM_MIRROR", "/somewhere")
    assert compose([]).data.mirror == "/somewhere"
    assert compose(["data.mirror=/else"]).data.mirror == "/else"
