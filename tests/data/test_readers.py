import numpy as np
import pytest

from dperm.core.experiment.schema import Reader
from dperm.data.arrays import RefusedError
from dperm.data.readers import FORMATS, read_files

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
COLOURS = "c,y\nred,1\nblue,2\nred,3\n"
CODED = {"categories": {"c": ["blue", "red"]}}


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


@pytest.mark.parametrize(
    "text",
    [
        "a,b,y\n1,2,3\n4,5,6\n",
        "\ufeffa,b,y\n1,2,3\n4,5,6",
        "a,b,y\r\n1,2,3\r\n4,5,6\r\n",
        "a,b,y\n1,2,3,\n4,5,6,\n",
        "a,b,y,\n1,2,3,\n4,5,6,\n",
        "a,b,y,\n1,2,3\n4,5,6\n",
        '"a","b",y\n"1"," 2 ",3\n\n4,5,"6"\n',
        " a, b , y\n1, 2 , 3\n4,5,6\n\n",
        "a,b,y\n1,2,3e0\n+4,5.0,0.6E1\n",
    ],
)
def test_odd_forms_of_csv_are_the_same_data(tmp_path, text):
    X, y = read(tmp_path, "csv", text)
    assert X.tolist() == [[1, 2], [4, 5]] and y.tolist() == [3, 6]


@pytest.mark.parametrize(
    "text",
    [
        "a,b,y\n2,1,9,8\n4,2,9,8\n",  # a header that is a field short
        "a,b,y\n1,2,3,\n4,5,6\n",  # a trailing comma on some lines
        "a,b,y\n1,2,3\n4,5,6,7\n",
        "a,b,y\n1,2\n4,5,6\n",
        "a,b,y,\n1,2,3,4\n",
    ],
)
def test_a_ragged_csv_is_refused_with_its_line(tmp_path, text):
    with pytest.raises(RefusedError, match=r"part0: line \d: expected . fields, found"):
        read(tmp_path, "csv", text)


def test_csv_without_names(tmp_path):
    keys = {"options": {"header": False, "separator": "\t"}, "drop": ["1"]}
    X, y = read(tmp_path, "csv", "1\t2\t3\n4\t5\t6\n", **keys)
    assert X.tolist() == [[2], [5]] and y.tolist() == [3, 6]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("mean", [1, 4, 4, 7]), ("median", [1, 4, 4, 7]), ("drop", [1, 7])],
)
def test_missing_values_by_a_declared_rule(tmp_path, rule, expected):
    text = "a,b,y\n1,2,3\nNA,5,6\n?,8,9\n7,11,12\n"
    X, y = read(tmp_path, "csv", text, missing=rule)
    assert X[:, 0].tolist() == expected
    assert y.tolist() == ([3, 12] if rule == "drop" else [3, 6, 9, 12])
    text = text.replace("7,11", "10,11")
    X, _ = read(tmp_path, "csv", text, missing="median", drop=["b"])
    assert X[1, 0] == 5.5
    arff = ARFF + "?,2,UP\n4,1,?\n"
    X, y = read(tmp_path, "arff", arff, **CLASS, missing="drop")
    assert len(X) == len(y) == 2


def test_categories_by_a_declared_list(tmp_path):
    X, y = read(tmp_path, "csv", COLOURS, **CODED)
    assert X.tolist() == [[0, 1], [1, 0], [0, 1]] and y.tolist() == [1, 2, 3]
    keys = {"categories": {"day": [1, 2, 3]}, "positive": "UP"}
    X, _ = read(tmp_path, "arff", ARFF, **keys)
    assert X.tolist() == [[0.25, 0, 0, 1], [-0.001, 1, 0, 0]]


@pytest.mark.parametrize(
    ("format_", "text", "keys"),
    [("arff", ARFF, CLASS), ("arff", SPARSE_ARFF, {"positive": "yes"}),
     ("libsvm", "+1 1:0.5 3:2\n\n-1 2:1 # x\n", {})],
)  # fmt: skip
def test_a_mark_and_line_ends_do_not_matter(tmp_path, format_, text, keys):
    X, y = read(tmp_path, format_, text, **keys)
    odd, odd_y = read(tmp_path, format_, "\ufeff" + text.replace("\n", "\r\n"), **keys)
    X, odd = (one if isinstance(one, np.ndarray) else one.toarray() for one in (X, odd))
    assert X.tolist() == odd.tolist() and y.tolist() == odd_y.tolist()


def test_an_npz_of_other_arrays_is_told_apart(tmp_path):
    np.savez(tmp_path / "both.npz", X=np.eye(2), target=np.ones(2))
    with pytest.raises(RefusedError, match="the arrays X and y, found X, target"):
        read_files([tmp_path / "both.npz"], Reader(format="arrays"))


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
        ("arff", [ARFF.replace("0.25", "?")], CLASS, "'first one', line 7: a missing"),
        ("arff", [ARFF.replace("3,UP", "3,?")], CLASS, "'class', line 7: a missing"),
        (
            "arff",
            [SPARSE_ARFF.replace("1.5", "?")],
            CLASS,
            "column 'a', line 7: a miss",
        ),
        ("csv", ["a,y\n1,2\n3\n"], {}, "line 3: expected 2 fields, found 1"),
        ("csv", ["a,y\n1,2\nx,3\n"], {}, "not of numbers: found x, first in line 3"),
        ("csv", ["a,y\n1,2\n3,4,5,6\n"], {}, "line 3: expected 2 fields, found 4"),
        (
            "csv",
            ["a,y\n1,inf\n"],
            {},
            "'y', line 2: found inf, expected numbers of at most 1e\\+150",
        ),
        ("csv", ["a,y\n1e300,2\n"], {}, "'a', line 2: found 1e300, expected numbers"),
        ("csv", ["a,y\n1,2\n3,-1e300\n"], {}, "'y', line 3: found -1e300, expected"),
        ("csv", ["a,y\n1_0,2\n"], {}, "'a' is not of numbers: found 1_0"),
        ("csv", ["a,b,y\n1,2,3\n,4,5\n6,NA,7\n"], {}, "'a', line 3: a missing value"),
        (
            "csv",
            ["a,b,y\n1,2,3\n1,4,5\n6,NA,7\n"],
            {},
            "'b', line 4: .*'NA'.*mean, med",
        ),
        (
            "csv",
            ["a,y\n1,2\n3,?\n"],
            {"missing": "mean"},
            "'y', line 3: a missing value",
        ),
        ("csv", ["a,y\n1,2\n3,?\n"], {"positive": "2"}, "'y', line 3: .*a class, or"),
        ("csv", ["a,y\n,2\nNA,3\n"], {"missing": "mean"}, "'a' has no value at all"),
        ("csv", ["a,y\n,2\nNA,3\n"], {"missing": "drop"}, "leaves no record"),
        ("csv", ["1,2\n3,4\n"], {}, "line 1: expected the names.*header: false"),
        ("csv", ["a,a,y\n1,2,3\n"], {}, "line 1: two columns are named 'a'"),
        ("csv", [",a,y\n0,1,2\n"], {}, "line 1: column 1 has no name"),
        ("csv", ["a;y\n1;2\n"], {}, r"line 1: .*separated by ',' \(reader.options.sep"),
        ("csv", ['a,y\n1,"2\n'], {}, "part0 cannot be read as csv"),
        (
            "csv",
            [f"{COLOURS}pink,9\n"],
            CODED,
            "'c', line 5: found 'pink', expected one",
        ),
        ("csv", [COLOURS], {"categories": {"k": ["a"]}}, "categories: 'k' is no feat"),
        (
            "libsvm",
            ["+1 1:0.5 3:"],
            {},
            "part0, line 1: expected index:value, found '3:'",
        ),
        ("libsvm", ["1 1:1\n\n1 2:x\n"], {}, "part0, line 3: expected index:value"),
        (
            "libsvm",
            ["1 1:1\n", "1 1:1\nspam 1:1\n"],
            {},
            "part1, line 2: .*label.*'spam'",
        ),
        ("libsvm", ["1 1:1\n1 3:1 2:1\n"], {}, "line 2: expected indices that rise"),
        ("libsvm", ["1 1:1\n1 2:nan\n"], {}, "line 2: expected index:value.*'2:nan'"),
        ("libsvm", ["1 1:1\nnan 2:1\n"], {}, "line 2: expected a number as label"),
        ("libsvm", ["1 1000000000:1\n"], {}, "feature 1000000000, expected at most"),
        ("libsvm", ["1 3:1\n"], {"options": {"n_features": 2}}, "n_features.*2"),
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
