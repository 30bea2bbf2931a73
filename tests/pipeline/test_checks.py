"""Data that a problem can do nothing with are refused when they are prepared."""

from dataclasses import replace
from pathlib import Path

import pytest

from dperm.core.experiment.config import compose
from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.schema import Dataset, Preparation, Reader, Source
from dperm.data import load_prepared
from dperm.pipeline import inputs


@pytest.mark.parametrize(
    ("rows", "loss", "message"),
    [
        ("1,0\n2,1\n3,1\n", "logistic", r"labels must be -1 or \+1.*reader.positive"),
        ("1,1\n2,2\n3,1\n", "smoothed_hinge", "reader.positive names the class"),
        ("1,4\n2,4\n3,4\n", "least_squares", "found 4 in all 3 records"),
        ("1,1\n2,1\n", "logistic", "expected labels that differ, found 1 in all"),
        ("1,4\n", "least_squares", "expected 2 records or more, found 1"),
    ],
)
def test_labels_of_no_use(tmp_path, monkeypatch, rows, loss, message):
    monkeypatch.chdir(tmp_path)
    Path("own.csv").write_text("a,y\n" + rows)
    config = compose(["problem=diabetes"])
    own = Dataset("own", sources=[Source(kind="file", files=["own.csv"])],
                  reader=Reader(format="csv"))  # fmt: skip
    problem = replace(config.problem, dataset=own, loss=loss)
    config = replace(config, problem=problem)
    inputs.fetch(config)
    with pytest.raises(ConfigError, match=rf"conf/problem/diabetes\.yaml: .*{message}"):
        inputs.prepare(config)
    assert not Path("data/prepared/diabetes").exists()


@pytest.mark.parametrize(("zero", "one"), [(0, 1), (1, 2)])
def test_classes_of_libsvm_are_refused_until_one_is_named(
    tmp_path, monkeypatch, zero, one
):
    monkeypatch.chdir(tmp_path)
    Path("own.txt").write_text(f"{zero} 1:2 3:1\n{one} 2:1\n{one} 1:1 2:3\n")
    config = compose(["problem=diabetes"])
    for positive in (None, str(one)):
        own = Dataset("own", sources=[Source(kind="file", files=["own.txt"])],
                      reader=Reader(format="libsvm", positive=positive))  # fmt: skip
        problem = replace(config.problem, dataset=own, loss="logistic",
                          preparation=Preparation())  # fmt: skip
        config = replace(config, problem=problem)
        inputs.fetch(config)
        if positive is None:
            said = r"conf/problem/diabetes\.yaml: loss: .*reader\.positive"
            with pytest.raises(ConfigError, match=said):
                inputs.prepare(config)
    inputs.prepare(config)
    assert load_prepared("diabetes", config.data).y.tolist() == [-1.0, 1.0, 1.0]
