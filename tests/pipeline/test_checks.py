"""Data that a problem can do nothing with are refused when they are prepared."""

from dataclasses import replace
from pathlib import Path

import pytest

from dperm.core.experiment.config import compose
from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.schema import Dataset, Reader, Source
from dperm.pipeline import inputs


@pytest.mark.parametrize(
    ("rows", "loss", "message"),
    [
        ("1,0\n2,1\n3,1\n", "logistic", r"labels must be -1 or \+1.*reader.positive"),
        ("1,1\n2,2\n3,1\n", "smoothed_hinge", "reader.positive names the class"),
        ("1,4\n2,4\n3,4\n", "least_squares", "found 4 in all 3 records"),
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
