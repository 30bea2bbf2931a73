from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import scale

from changing import changed
from dperm.config.schema import (
    Dataset,
    Preparation,
    ProblemSection,
    Reader,
    Source,
)
from dperm.data import digest_arrays, fetch, load_prepared, prepare
from dperm.data.preparing import prepared_folder

X = np.random.default_rng(0).normal(5.0, 3.0, (40, 4))
X[:, 2] = 0.0
Y = np.arange(40.0)
SOURCE = Source(origin="mirror", files=["both.npz"])
STANDARD = Preparation(standardize=True, drop_zero_columns=True)


def fetched(data, values=X):
    np.savez(Path(data.mirror) / "both.npz", X=values, y=Y)
    dataset = Dataset(name="small", sources=[SOURCE])
    fetch(dataset, data)
    return ProblemSection(
        name="small_norm", dataset=dataset, preparation=STANDARD
    )


def fetched_sparse(data, preparation):
    lines = "1 2:1.5 5:1\n-1 2:2\n"
    (Path(data.mirror) / "small.txt").write_text(lines)
    dataset = Dataset(
        name="sparse",
        sources=[Source(origin="mirror", files=["small.txt"])],
        reader=Reader(format="libsvm", options={"n_features": 6}),
    )
    fetch(dataset, data)
    return ProblemSection(
        name="sparse_raw", dataset=dataset, preparation=preparation
    )


def test_arrays_are_stored_raw_or_standardised(data):
    problem = fetched(data)
    raw = prepare(replace(problem, preparation=Preparation()), data)
    assert (raw.X == X).all() and (raw.y == Y).all()
    assert (
        raw.meta["digest"] == raw.meta["dataset_digest"] == digest_arrays(X, Y)
    )
    made = prepare(problem, data)
    np.testing.assert_allclose(made.X, scale(X[:, [0, 1, 3]]), atol=1e-12)
    assert (made.y == Y).all()
    sizes = {key: made.meta[key] for key in ("n", "p", "nnz", "status")}
    assert sizes == {"n": 40, "p": 3, "nnz": 120, "status": "ok"}
    loaded = load_prepared("small_norm", data)
    assert (loaded.X == made.X).all() and loaded.X.flags.f_contiguous
    assert (
        loaded.available
        and loaded.meta == made.meta == prepare(problem, data).meta
    )
    steps = replace(STANDARD, intercept=True, centre=True)
    last = prepare(replace(problem, preparation=steps), data)
    assert (last.X[:, :-1] == made.X).all()
    assert (last.X[:, -1] == 1).all() and abs(last.y.sum()) < 1e-12


@pytest.mark.parametrize(
    "column",
    [np.full(40, 3.0), 1e-200 * np.arange(40)],
    ids=["constant", "tiny"],
)
def test_a_column_without_a_deviation_is_refused_by_its_place(data, column):
    values = X.copy()
    values[:, 1] = column
    with pytest.raises(
        ValueError, match=r"small_norm: .*column 1 \(counted from 0\)"
    ):
        prepare(fetched(data, values), data)
    assert not prepared_folder("small_norm", data).exists()


def test_sparse_columns_of_zeros_are_dropped(data):
    made = prepare(
        fetched_sparse(data, Preparation(drop_zero_columns=True)), data
    )
    loaded = load_prepared("sparse_raw", data)
    for X_ in (made.X, loaded.X):
        assert sparse.issparse(X_) and X_.format == "csc"
        assert X_.toarray().tolist() == [[1.5, 1.0], [2.0, 0.0]]
    assert loaded.meta["nnz"] == 3
    made = prepare(fetched_sparse(data, Preparation(intercept=True)), data)
    assert sparse.issparse(made.X) and (made.X[:, [-1]].toarray() == 1).all()


def test_sparse_arrays_are_not_standardised(data):
    said = "sparse_raw: preparation: standardize: expected false"
    with pytest.raises(ValueError, match=said):
        prepare(fetched_sparse(data, Preparation(standardize=True)), data)
    assert not prepared_folder("sparse_raw", data).exists()


def test_unavailable_is_carried_over(data):
    problem = fetched(data)
    prepare(problem, data)
    (Path(data.mirror) / "both.npz").unlink()
    lost = replace(problem.dataset, digest="sha256:" + "0" * 64)
    fetch(lost, data)
    made = prepare(problem, data)
    loaded = load_prepared("small_norm", data)
    assert made == loaded and not loaded.available and loaded.X is None
    assert "mirror: both.npz" in loaded.meta["reason"]


def test_what_was_not_fetched_or_prepared_is_said(data):
    problem = ProblemSection(
        name="p", dataset=Dataset(name="none", sources=[SOURCE])
    )
    with pytest.raises(ValueError, match="p: data set none was not fetched"):
        prepare(problem, data)
    other = changed(fetched(data), "dataset.digest", "sha256:" + "0" * 64)
    with pytest.raises(ValueError, match="fetch it again"):
        prepare(other, data)
    with pytest.raises(ValueError, match="small_norm: not prepared"):
        load_prepared("small_norm", data)


def test_damage_is_noticed(data):
    prepare(fetched(data), data)
    path = prepared_folder("small_norm", data) / "arrays.npz"
    np.savez(path, **{**np.load(path), "y": Y + 1.0})
    for content in (path.read_bytes(), b"", path.read_bytes()[:-9]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="small_norm: missing or damaged"):
            load_prepared("small_norm", data)
