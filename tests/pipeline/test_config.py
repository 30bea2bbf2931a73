"""A wrong configuration is refused before anything runs, in one line that helps."""

import shutil
from pathlib import Path

import pytest
import yaml

from dperm import config
from dperm.config import compose
from dperm.locate import ConfigError


@pytest.fixture
def conf(tmp_path, monkeypatch):
    """A copy of conf/ that a test may spoil."""
    copy = tmp_path / "conf"
    shutil.copytree(config.conf_dir(), copy)
    monkeypatch.setenv("DPERM_CONF", str(copy))
    return copy


def test_every_shipped_combination_is_valid():
    for name in config.available("problem"):
        assert compose([f"problem={name}"]).problem.name == name
    for name in config.available("solver"):
        assert compose([f"solver={name}"]).solver.name == name
    for name in config.available("scale"):
        assert compose([f"scale={name}"]).scale.name == name
    for name in config.available("paper"):
        assert compose([f"paper={name}"]).paper.name == name


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
        ("solver.algorithm=dp_dc", "did you mean dp_cd"),
        ("+solver.options.smpling=uniform", "did you mean sampling"),
        ("solver.options.sampling=cyclical", "expected one of cyclic, uniform"),
        ("paper.replicates=0", "replicates: expected 1 or more"),
        ("paper.calibrations=[strikt]", "did you mean strict"),
        ("workers=0", "workers: expected 1 or more"),
        ("setting.passes=-1", "setting.passes: expected a positive number, found -1"),
        ("problem.privacy.epsilon=high", "could not be converted to Float"),
    ],
)
def test_refusals(override, message):
    with pytest.raises(ConfigError, match=message) as caught:
        compose([override])
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
        ("problem/diabetes.yaml", "penalty", {"l3": 1}, "Key 'l3' not in 'Penalty'"),
        ("paper/dpcd.yaml", "problems", ["calfornia_raw"], "mean california_raw"),
        ("paper/dpcd.yaml", "runs", {"dp_sg": {"grid": {}}}, "did you mean dp_sgd"),
        ("paper/dpcd.yaml", "published", {"t": "no.csv"}, "no file conf/no.csv"),
    ],
)
def test_a_spoilt_file_is_named(conf, file, key, value, message):
    path = conf / file
    content = yaml.safe_load(path.read_text())
    content[key] = value
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(ConfigError, match=message):
        compose([f"{Path(file).parent}={path.stem}"])


@pytest.mark.parametrize(
    ("axis", "values", "message"),
    [
        ("clip", [-1.0, 1.0], r"dpcd.yaml: runs.dp_cd.grid.clip: expected positive"),
        ("clip", [], r"runs.dp_cd.grid.clip: empty"),
        ("clip", [float("inf")], r".inf is accepted only for clip, without noise"),
        ("passes", [0], r"runs.dp_cd.grid.passes: expected positive"),
    ],
)
def test_a_spoilt_grid_is_named(conf, axis, values, message):
    path = conf / "paper/dpcd.yaml"
    content = yaml.safe_load(path.read_text())
    content["runs"]["dp_cd"]["grid"][axis] = values
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(ConfigError, match=message):
        compose([])


def test_broken_yaml_is_named(conf):
    (conf / "problem/diabetes.yaml").write_text("name: [diabetes\n")
    with pytest.raises(ConfigError, match=r"not valid YAML.*diabetes.yaml"):
        compose(["problem=diabetes"])


def test_a_missing_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_CONF", str(tmp_path / "nothing"))
    with pytest.raises(ConfigError, match=r"DPERM_CONF: .*nothing: expected a folder"):
        compose([])


def test_an_infinite_clip_without_noise_is_accepted(conf):
    path = conf / "paper/dpcd.yaml"
    content = yaml.safe_load(path.read_text())
    content["runs"]["dp_cd"]["grid"]["clip"] = [float("inf")]
    path.write_text(yaml.safe_dump(content))
    assert compose(["problem.privacy.epsilon=.inf"]).paper.name == "dpcd"


def test_accepted_spellings():
    found = compose(["problem.privacy.delta=1/n", "problem.penalty.l2=1/n"]).problem
    assert config.number(found.privacy.delta, 50, "") == 0.02
    assert config.number("1/n^2", 50, "") == 0.0004


def test_the_mirror_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("DPERM_MIRROR", "/somewhere")
    assert compose([]).data.mirror == "/somewhere"
    assert compose(["data.mirror=/else"]).data.mirror == "/else"
