import numpy as np
import pytest

from dperm.data.errors import RefusedError
from dperm.data.readers import FORMATS, read_files
from dperm.schema import Reader

ARFF = """% a comment
@relation small
@attribute 'first one' numeric
@attribute day {1,2,3}
@attribute class {UP,DOWN}
@data
0.25,3,UP
-1e-3,1,DOWN
"""
SPARSE_ARFF = """@relation sparse
@attribute a numeric
@attribute b {2,5}
@attribute c numeric
@attribute class {no,yes}
@data
{0 1.5, 3 yes}
{}
{1 5, 2 -2}
"""
CLASS = {"target": "class", "positive": "UP"}


def write(folder, *texts):
    paths = [folder / f"part{i}" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return paths


def read(folder, format_, *texts, **keys):
    return read_files(write(folder, *texts), Reader(format=format_, **keys))


def test_arff(tmp_path):
    X, y = read(tmp_path, "arff", ARFF, **CLASS)
    assert X.tolist() == [[0.25, 3.0], [-0.001, 1.0]]
    assert y.tolist() == [1.0, -1.0]


def test_arff_target_is_by_default_last_and_columns_can_be_dropped(tmp_path):
    text = ARFF.replace("{UP,DOWN}", "{1,-1}").replace("UP", "1").replace("DOWN", "-1")
    X, y = read(tmp_path, "arff", text, drop=["day"])
    assert X.tolist() == [[0.25], [-0.001]]
    assert y.tolist() == [1.0, -1.0]


def test_sparse_arff_fills_in_first_categories(tmp_path):
    X, y = read(tmp_path, "arff", SPARSE_ARFF, target="class", positive="yes")
    assert X.toarray().tolist() == [[1.5, 2, 0], [0, 2, 0], [0, 5, -2]]
    assert y.tolist() == [1.0, -1.0, -1.0]


def test_csv(tmp_path):
    text = "y,a,b,name\n1,0.1,2,x\n0,1e3,-4,z\n"
    X, y = read(tmp_path, "csv", text, target="y", positive="1", drop=["name"])
    assert X.tolist() == [[0.1, 2.0], [1000.0, -4.0]]
    assert y.tolist() == [1.0, -1.0]


def test_csv_reads_every_digit(tmp_path):
    values = np.random.default_rng(1).standard_normal((20, 3))
    lines = ["a,b,y", *(",".join(map(repr, row)) for row in values.tolist())]
    X, y = read(tmp_path, "csv", "\n".join(lines))
    assert (np.column_stack([X, y]) == values).all()


def test_libsvm_stacks_parts(tmp_path):
    parts = ("+1 1:0.5 3:2\n-1 2:1\n", "-1 1:4\n")
    X, y = read(tmp_path, "libsvm", *parts, options={"n_features": 4})
    assert X.toarray().tolist() == [[0.5, 0, 2, 0], [0, 1, 0, 0], [4, 0, 0, 0]]
    assert y.tolist() == [1.0, -1.0, -1.0]
    dense, _ = read(tmp_path, "libsvm", *parts, options={"dense": True})
    assert dense.tolist() == X.toarray()[:, :3].tolist()


def test_libsvm_zero_based_and_positive(tmp_path):
    keys = {"options": {"zero_based": True}, "positive": "2"}
    X, y = read(tmp_path, "libsvm", "2 0:1\n1 1:1\n", **keys)
    assert X.toarray().tolist() == [[1, 0], [0, 1]]
    assert y.tolist() == [1.0, -1.0]


def test_nips2003_dense_stacks_pairs(tmp_path):
    texts = ("1 2 \n3 4 \n", "1\n-1\n", "5 6 \n", "-1\n")
    X, y = read(tmp_path, "nips2003", *texts)
    assert X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert y.tolist() == [1.0, -1.0, -1.0]


def test_nips2003_index_lists(tmp_path):
    texts = ("1 3 \n\n4 \n", "1\n-1\n1\n")
    X, y = read(tmp_path, "nips2003", *texts, options={"n_features": 5})
    assert X.toarray().tolist() == [[1, 0, 1, 0, 0], [0] * 5, [0, 0, 0, 1, 0]]
    assert y.tolist() == [1.0, -1.0, 1.0]


def test_arrays(tmp_path):
    X, y = np.eye(3), np.arange(3.0)
    np.savez(tmp_path / "both.npz", X=X, y=y)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    for files in (["both.npz"], ["X.npy", "y.npy"]):
        paths = [tmp_path / name for name in files]
        found = read_files(paths, Reader(format="arrays"))
        assert (found[0] == X).all() and (found[1] == y).all()


def test_cal_housing_equals_scikit_learn(tmp_path):
    import joblib
    from sklearn.datasets import fetch_california_housing

    table = np.random.default_rng(2).uniform(1.0, 9e5, (30, 9))
    text = "\n".join(",".join(map(repr, row)) for row in table.tolist())
    X, y = read(tmp_path, "cal_housing", text)
    kept = table[:, [8, 7, 2, 3, 4, 5, 6, 1, 0]]
    joblib.dump(kept, tmp_path / "cal_housing_py3.pkz")
    expected = fetch_california_housing(
        data_home=tmp_path, download_if_missing=False, return_X_y=True
    )
    expected_x, expected_y = expected
    assert (expected_x == X).all() and (expected_y == y).all()


@pytest.mark.parametrize("format_", sorted(FORMATS))
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("\n<!DOCTYPE html>\n<html></html>", "web page"),
        ("<HTML><body>gone</body>", "web page"),
        (b"\x00\xff\xfe\x9c" * 50, "cannot be read|missing|expected|reads|target"),
        ("not data at all\nnone\n", "cannot be read|missing|expected|reads|target"),
    ],
)
def test_what_is_not_data_is_refused(tmp_path, format_, text, words):
    with pytest.raises(RefusedError, match=words):
        read(tmp_path, format_, text, target="class", positive="UP")


@pytest.mark.parametrize(
    ("format_", "texts", "keys", "words"),
    [
        ("arff", [ARFF[:-9]], CLASS, "cannot be read as arff"),
        ("arff", [ARFF[: ARFF.index("0.25")]], CLASS, "no rows"),
        ("arff", [ARFF], {**CLASS, "positive": "up"}, "classes DOWN, UP.*'up'"),
        ("arff", [ARFF], {"target": "klass"}, "column klass is missing.*class"),
        ("arff", [ARFF], {"target": "day"}, "'class' is not of numbers"),
        ("arff", [ARFF.replace("0.25", "?")], CLASS, "X has 1 missing"),
        ("arff", [ARFF.replace("3,UP", "3,?")], CLASS, "target has missing"),
        ("csv", ["a,y\n1,2\n3\n"], {}, "y has 1 missing"),
        ("csv", ["a,y\n1,2\nx,3\n"], {}, "not of numbers: found x, first in record 2"),
        ("csv", ["a,y\n1,2\n3,4,5,6\n"], {}, "cannot be read as csv"),
        ("csv", ["a,y\n1,inf\n"], {}, "y has 1 missing or infinite"),
        ("libsvm", ["+1 1:0.5 3:"], {}, "cannot be read as libsvm"),
        ("libsvm", ["1 3:1\n"], {"options": {"n_features": 2}}, "cannot be read"),
        ("nips2003", ["1 2\n"], {}, "pairs"),
        ("nips2003", ["1 2\n3\n", "1\n-1\n"], {}, "cannot be read as nips2003"),
        ("nips2003", ["1 2\n3 4\n", "1\n"], {}, "expected"),
        ("nips2003", ["1 2\n3 4\n", "1\n0\n"], {}, "labels other than"),
        ("nips2003", ["6\n", "1\n"], {"options": {"n_features": 5}}, "1 to 5"),
        ("nips2003", ["0\n", "1\n"], {"options": {"n_features": 5}}, "1 to 5"),
        ("nips2003", ["2 2\n", "1\n"], {"options": {"n_features": 5}}, "twice"),
        ("cal_housing", ["1,2,3\n4,5,6\n"], {}, "9 columns, found 3"),
        ("cal_housing", ["1,2,3,4,5,6,0,8,9\n"], {}, "without households"),
        ("cal_housing", ["1,2,3,4,5,6,7,8,9\n1,2"], {}, "cannot be read"),
        ("cal_housing", ["1,2\n", "3,4\n"], {}, "one file, found 2"),
    ],
)
def test_damaged_files_are_refused(tmp_path, format_, texts, keys, words):
    with pytest.raises(RefusedError, match=words):
        read(tmp_path, format_, *texts, **keys)


def test_pickled_arrays_are_refused(tmp_path):
    np.save(tmp_path / "X.npy", np.array([[object()]]), allow_pickle=True)
    np.save(tmp_path / "y.npy", np.ones(1))
    with pytest.raises(RefusedError, match="allow_pickle"):
        read_files([tmp_path / "X.npy", tmp_path / "y.npy"], Reader(format="arrays"))
