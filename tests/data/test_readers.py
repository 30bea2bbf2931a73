"""Files of every format: sound ones are read, damaged ones refused by name and line."""

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
INDICES = {"options": {"n_features": 5}}


def read(folder, format_, *texts, **keys):
    paths = [folder / f"part{i}" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_files(paths, Reader(format=format_, **keys))


SOUND = {  # format, texts and keys to X and y
    "arff": (("arff", [ARFF], CLASS), [[0.25, 3], [-0.001, 1]], [1, -1]),
    "sparse arff fills in first categories": (
        ("arff", [SPARSE_ARFF], {"target": "class", "positive": "yes"}),
        [[1.5, 2, 0], [0, 2, 0], [0, 5, -2]], [1, -1, -1]),
    "arff's target is by default last, columns are left out": (
        ("arff", [ARFF.replace("UP", "1").replace("DOWN", "-1")], {"drop": ["day"]}),
        [[0.25], [-0.001]], [1, -1]),
    "arff with gaps left out": (
        ("arff", [ARFF + "?,2,UP\n4,1,?\n"], {**CLASS, "missing": "drop"}),
        [[0.25, 3], [-0.001, 1]], [1, -1]),
    "arff with listed categories": (
        ("arff", [ARFF], {"categories": {"day": [1, 2, 3]}, "positive": "UP"}),
        [[0.25, 0, 0, 1], [-0.001, 1, 0, 0]], [1, -1]),
    "csv with listed categories": (
        ("csv", [COLOURS], CODED), [[0, 1], [1, 0], [0, 1]], [1, 2, 3]),
    "csv by its options": (
        ("csv", ["1\t2\t3,5\n4\t5\t6\n"],
         {"options": {"header": False, "separator": "\t", "decimal": ","},
          "drop": ["1"]}), [[2], [5]], [3.5, 6]),
    "libsvm stacks parts": (
        ("libsvm", ["+1 1:0.5 3:2\n\n-1 2:1 # x\n", "-1 1:4\n"],
         {"options": {"n_features": 4}}),
        [[0.5, 0, 2, 0], [0, 1, 0, 0], [4, 0, 0, 0]], [1, -1, -1]),
    "libsvm from 0 with a class": (
        ("libsvm", ["2 0:1\n1 1:1\n"],
         {"options": {"zero_based": True, "dense": True}, "positive": "2"}),
        [[1, 0], [0, 1]], [1, -1]),
    "nips2003 stacks pairs": (
        ("nips2003", ["1 2 \n3 4 \n", "1\n-1\n", "5 6 \n", "-1\n"], {}),
        [[1, 2], [3, 4], [5, 6]], [1, -1, -1]),
    "nips2003 by lists of indices": (
        ("nips2003", ["1 3 \n\n4 \n", "1\n-1\n1\n"], INDICES),
        [[1, 0, 1, 0, 0], [0] * 5, [0, 0, 0, 1, 0]], [1, -1, 1]),
}  # fmt: skip


@pytest.mark.parametrize("mark", [False, True])
@pytest.mark.parametrize("name", SOUND)
def test_sound_files_are_read(tmp_path, name, mark):
    (format_, texts, keys), expected, labels = SOUND[name]
    if mark and format_ != "nips2003":  # as some editors write them
        texts = ["\ufeff" + text.replace("\n", "\r\n") for text in texts]
    X, y = read(tmp_path, format_, *texts, **keys)
    X = X if isinstance(X, np.ndarray) else X.toarray()
    assert X.tolist() == expected and y.tolist() == labels


def test_arrays(tmp_path):
    X, y = np.eye(3), np.arange(3.0)
    np.savez(tmp_path / "both.npz", X=X, y=y)
    np.savez(tmp_path / "other.npz", X=X, target=y)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "evil.npy", np.array([[object()]]), allow_pickle=True)

    def arrays(*names):
        return read_files([tmp_path / name for name in names], Reader())

    for names in (["both.npz"], ["X.npy", "y.npy"]):
        found = arrays(*names)
        assert (found[0] == X).all() and (found[1] == y).all()
    with pytest.raises(RefusedError, match="the arrays X and y, found X, target"):
        arrays("other.npz")
    with pytest.raises(RefusedError, match="allow_pickle"):
        arrays("evil.npy", "y.npy")


def test_cal_housing_equals_scikit_learn(tmp_path):
    import joblib
    from sklearn.datasets import fetch_california_housing

    table = np.random.default_rng(2).uniform(1.0, 9e5, (30, 9))
    text = "\n".join(",".join(map(repr, row)) for row in table.tolist())
    X, y = read(tmp_path, "cal_housing", text)
    kept = table[:, [8, 7, 2, 3, 4, 5, 6, 1, 0]]
    joblib.dump(kept, tmp_path / "cal_housing_py3.pkz")
    expected_x, expected_y = fetch_california_housing(
        data_home=tmp_path, download_if_missing=False, return_X_y=True
    )
    assert (expected_x == X).all() and (expected_y == y).all()


@pytest.mark.parametrize("format_", sorted(FORMATS))
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("\n<!DOCTYPE html>\n<html></html>", "web page"),
        ("<HTML><body>gone</body>", "web page"),
        (b"\x00\xff\xfe\x9c" * 50, "cannot be read|UTF-8|expected|reads"),
        ("not data at all\nnone\n", "cannot be read|missing|expected|reads"),
    ],
)
def test_what_is_not_data_is_refused(tmp_path, format_, text, words):
    with pytest.raises(RefusedError, match=f"part0.*({words})"):
        read(tmp_path, format_, text, target="class", positive="UP")


@pytest.mark.parametrize(
    ("format_", "texts", "keys", "words"),
    [
        ("arff", [ARFF[:-9]], CLASS, "cannot be read as arff"),
        ("arff", [ARFF[: ARFF.index("0.25")]], CLASS, "no rows"),
        ("arff", [ARFF], {**CLASS, "positive": "up"}, "classes DOWN, UP.*'up'"),
        ("arff", [ARFF], {"target": "klass"}, "column klass is missing.*class"),
        ("arff", [ARFF], {"target": "day"}, "'class', line 7: found 'UP'"),
        ("arff", [ARFF.replace("0.25", "?")], CLASS, "'first one', line 7: .*missing"),
        ("arff", [ARFF.replace("3,UP", "3,?")], CLASS, "'class', line 7: .*missing"),
        ("arff", [SPARSE_ARFF.replace("1.5", "?")], {"positive": "yes"},
         "'a', line 7: found no value"),
        ("csv", [f"{COLOURS}pink,9\n"], CODED, "'c', line 5: found 'pink'"),
        ("libsvm", ["+1 1:0.5 3:"], {}, "line 1: expected label, index:value"),
        ("libsvm", ["1 1:1\n\n1 2:x\n"], {}, "line 3: expected label, index:value"),
        ("libsvm", ["1 1:1\n1 3:1 2:1\n"], {}, "line 2: .*should be sorted"),
        ("libsvm", ["1 1:1\n1 2:nan\n"], {}, "line 2: expected finite"),
        ("libsvm", ["1 1:1\nnan 2:1\n"], {}, "line 2: expected finite"),
        ("libsvm", ["1 1000000000:1\n"], {}, "feature 1000000000, expected at most"),
        (
            "libsvm",
            ["1 3:1\n"],
            {"options": {"n_features": 2}},
            "line 1: .*n_features.*2",
        ),
        ("nips2003", ["1 2\n"], {}, "pairs"),
        ("nips2003", ["1 2\n3\n", "1\n-1\n"], {}, "cannot be read as nips2003"),
        ("nips2003", ["1 2\n3 4\n", "1\n"], {}, "expected"),
        ("nips2003", ["1 2\n3 4\n", "1\n0\n"], {}, "labels other than"),
        ("nips2003", ["6\n", "1\n"], INDICES, "line 1: .*n_features.*5"),
        ("nips2003", ["0\n", "1\n"], INDICES, "line 1: .*Invalid index 0"),
        ("nips2003", ["2 2\n", "1\n"], INDICES, "line 1: .*sorted and unique"),
        ("cal_housing", ["1,2,3\n4,5,6\n"], {}, "got 3"),
        ("cal_housing", ["1,2,3,4,5,6,0,8,9\n"], {}, "divide by zero"),
        ("cal_housing", ["1,2,3,4,5,6,7,8,9\n1,2"], {}, "cannot be read"),
        ("cal_housing", ["1,2\n", "3,4\n"], {}, "one file, found 2"),
    ],
)  # fmt: skip
def test_damaged_files_are_refused(tmp_path, format_, texts, keys, words):
    with pytest.raises(RefusedError, match=f"^part0.*{words}") as error:
        read(tmp_path, format_, *texts, **keys)
    assert "\n" not in str(error.value)


def test_the_part_of_libsvm_that_is_damaged_is_named(tmp_path):
    with pytest.raises(RefusedError, match=r"^part1, line 2: .*spam"):
        read(tmp_path, "libsvm", "1 1:1\n", "1 1:1\nspam 1:1\n")
