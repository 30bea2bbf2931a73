"""Prepared arrays and optima that were edited on disk are noticed by their content."""

import json
import shutil
from pathlib import Path

import pytest

from dperm.config.config import compose
from dperm.experiments import inputs


@pytest.fixture
def stored(data_dir, tmp_path):
    """A configuration whose problem is solved, in a folder of its own."""
    shutil.copytree(data_dir, tmp_path / "data")
    where = (f"data.dir={tmp_path / 'data'}", f"output.results={tmp_path}")
    config = compose(
        ["paper=dpcd", "problem=diabetes", "solver=dp_cd", *where]
    )
    inputs.load_job(config)
    return config


def edited(path: Path, **values):
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | values))


EDITS = [
    ("optimum", "optimum.json", {"value": 0.5}),
    ("optimum", "optimum.json", {"gap": 0.0, "relative_gap": 0.0}),
    ("prepared", "meta.json", {"n": 10}),
    ("prepared", "meta.json", {"status": "unavailable", "reason": "none"}),
    ("prepared", "meta.json", {"content": "0"}),
]


@pytest.mark.parametrize(("folder", "file", "values"), EDITS)
def test_an_edited_record_is_noticed(stored, folder, file, values):
    edited(Path(stored.data.dir, folder, "diabetes", file), **values)
    with pytest.raises(
        ValueError, match=rf"{file} was changed after .*: delete .*run"
    ):
        inputs.load_job(stored)


@pytest.mark.parametrize(
    "file", ["optimum/diabetes/w.npy", "prepared/diabetes/arrays.npz"]
)
def test_a_truncated_array_is_noticed(stored, file):
    path = Path(stored.data.dir, file)
    path.write_bytes(path.read_bytes()[:-64])
    with pytest.raises(ValueError, match=r"damaged.*delete .* run again"):
        inputs.load_job(stored)


def test_what_other_code_or_settings_made_is_noticed(stored, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(
            "dperm.experiments.digests.priced", lambda *_, **__: "other"
        )
        with pytest.raises(
            ValueError, match="by other code: run `dperm prepare"
        ):
            inputs.load_job(stored)
    monkeypatch.setattr("dperm.data.made_by", lambda steps: "other")
    with pytest.raises(
        ValueError, match="by other settings or code: run `dperm prep"
    ):
        inputs.load_job(stored)
