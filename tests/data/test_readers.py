"""Files of every format: sound ones are read, damaged ones refused by name and line."""

import gzip
import zipfile

import numpy as np
import pandas as pd
import pytest

from dperm.config.schema import Reader
from dperm.data import read_table, table_arrays
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
INDICES = {"n_features": 5}
PLAIN = "a,b,y\n1,2,3\n4,5,6\n"
GAPS = "a,b,y\n1,2,3\nNA,5,6\n?,8,9\n9,11,12\n"
DECLARED = ("target", "positive", "drop", "missing", "categories")


def read(folder, format_, *texts, **keys):
    """Read texts; keys are those of the reader, others are options of the format."""
    paths = [folder / f"part{i}" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    given = {key: keys.pop(key) for key in DECLARED if key in keys}
    return read_files(paths, Reader(format=format_, options=keys, **given))


# --- sound files ----------------------------------------------------------------------

SAME = [[1, 2], [4, 5]], [3, 6]  # as PLAIN
SOUND = [  # format, texts, keys; X, y
    ("csv", [PLAIN], {}, *SAME),
    ("csv", ["a,b,y\n1,2,3,\n4,5,6,\n"], {}, *SAME),
    ("csv", ["a,b,y,\n1,2,3,\n4,5,6,\n"], {}, *SAME),
    ("csv", ["a,b,y,\n1,2,3\n4,5,6\n"], {}, *SAME),
    ("csv", ["a,b,y\n1,2,3,\n4,5,6\n"], {}, *SAME),
    ("csv", ['"a","b",y\n"1"," 2 ",3\n\n4,5,"6"\n'], {}, *SAME),
    ("csv", ["\n a, b , y\n1, 2 , 3\n4,5,6\n\n"], {}, *SAME),
    ("csv", ["a,b,y\n1,2,3e0\n+4,5.0,0.6E1\n"], {}, *SAME),
    ("csv", [PLAIN.replace(",", ";")], {}, *SAME),
    ("csv", [PLAIN.replace(",", "\t")], {}, *SAME),
    ("csv", ["sep=;\n" + PLAIN.replace(",", ";")], {}, *SAME),
    ("csv", [PLAIN.replace(",", "#")], {"separator": "#"}, *SAME),
    ("csv", ["a;b;y\n1,0;2;3\n4;5,00;6\n"], {"decimal": ","}, *SAME),
    ("csv", ["1\t2\t3,5\n4\t5\t6\n"],
     {"header": False, "separator": "\t", "decimal": ",", "drop": ["1"]},
     [[2], [5]], [3.5, 6]),
    ("csv", ["0,1\n3,4\n"], {"header": True}, [[3]], [4]),
    # the separator that gives each line as many fields
    ("csv", ["a (x, y, z, w);b;y\n1;2;3\n4;5;6\n"], {}, *SAME),
    ("csv", ["a|b, c, d|y\n1|2|3|\n4|5|6|\n"], {}, *SAME),
    ("csv", ["a;b;c, d, e and f\n1;2,0;3\n4;5;6,0\n"], {"decimal": ","}, *SAME),
    ("csv", ["a\tb; c; d\ty\n1\t2\t3\n4\t5\t6\n"], {}, *SAME),
    ("csv", ["a b y\n1 2 3\n4 5 6\n"], {"separator": " "}, *SAME),
    ("csv", ["k,,a,y\n9,8,1,2\n7,6,3,4\n"], {"drop": ["", "k"]}, [[1], [3]], [2, 4]),
    ("csv", ["c,y\n1.0,1\n2,2\n"], {"categories": {"c": [1, 1.0, "2"]}},
     [[1, 0], [0, 1]], [1, 2]),
    ("csv", ["c;y\n1,5;1\nx;2\n"], {"categories": {"c": ["1,5", "x"]}, "decimal": ","},
     [[1, 0], [0, 1]], [1, 2]),
    ("csv", ["a,y\n#N/A,2\n1,3\nn/a,4\n<NA>,5\n3,6\n"], {"missing": "mean"},
     [[2], [1], [2], [2], [3]], [2, 3, 4, 5, 6]),
    ("csv", [",a,y\n0,1,2\n1,3,4\n"], {"drop": ["1"]}, [[1], [3]], [2, 4]),
    ("csv", [COLOURS], CODED, [[0, 1], [1, 0], [0, 1]], [1, 2, 3]),
    ("csv", [GAPS], {"missing": "mean"}, [[1, 2], [5, 5], [5, 8], [9, 11]],
     [3, 6, 9, 12]),
    ("csv", ["a,y\n1,2\n,3\n2,4\n9,5\n"], {"missing": "median"},
     [[1], [2], [2], [9]], [2, 3, 4, 5]),
    ("csv", [GAPS], {"missing": "drop"}, [[1, 2], [9, 11]], [3, 12]),
    ("arff", [ARFF], CLASS, [[0.25, 3], [-0.001, 1]], [1, -1]),
    # of a sparse one, what is left out is 0 or the first category
    ("arff", [SPARSE_ARFF], {"positive": "yes"},
     [[1.5, 2, 0], [0, 2, 0], [0, 5, -2]], [1, -1, -1]),
    ("arff", [ARFF.replace("UP", "1").replace("DOWN", "-1")], {"drop": ["day"]},
     [[0.25], [-0.001]], [1, -1]),
    ("arff", [ARFF + "?,2,UP\n4,1,?\n"], {**CLASS, "missing": "drop"},
     [[0.25, 3], [-0.001, 1]], [1, -1]),
    ("arff", [ARFF], {"categories": {"day": [1, 2, 3]}, "positive": "UP"},
     [[0.25, 0, 0, 1], [-0.001, 1, 0, 0]], [1, -1]),
    ("libsvm", ["+1 1:0.5 3:2\n\n-1 2:1 # x\n", "-1 1:4\n"], {"n_features": 4},
     [[0.5, 0, 2, 0], [0, 1, 0, 0], [4, 0, 0, 0]], [1, -1, -1]),
    ("libsvm", ["2 0:1\n1 1:1\n"], {"zero_based": True, "dense": True, "positive": "2"},
     [[1, 0], [0, 1]], [1, -1]),
    ("nips2003", ["1 2 \n3 4 \n", "1\n-1\n", "5 6 \n", "-1\n"], {},
     [[1, 2], [3, 4], [5, 6]], [1, -1, -1]),
    ("nips2003", ["1 3 \n\n4 \n", "1\n-1\n1\n"], INDICES,
     [[1, 0, 1, 0, 0], [0] * 5, [0, 0, 0, 1, 0]], [1, -1, 1]),
    # the last bit of these is wrong in the parsers of pandas, and with 16 digits
    ("csv", ["a,y\n0.33043707618338714,1\n0.36457239618607573,-0.16290994799305278\n"],
     {}, [[0.33043707618338714], [0.36457239618607573]], [1, -0.16290994799305278]),
]  # fmt: skip


@pytest.mark.parametrize("mark", [False, True])
@pytest.mark.parametrize(("format_", "texts", "keys", "X", "y"), SOUND)
def test_sound_files_are_read(tmp_path, format_, texts, keys, X, y, mark):
    if mark and format_ != "nips2003":  # as some editors write them
        texts = ["\ufeff" + text.replace("\n", "\r\n") for text in texts]
    found = read(tmp_path, format_, *texts, **keys)
    dense = (
        found[0] if isinstance(found[0], np.ndarray) else found[0].toarray()
    )
    assert dense.tolist() == X and found[1].tolist() == y


def test_arrays(tmp_path):
    X, y = np.eye(3), np.arange(3.0)

    def arrays(**parts):
        np.savez(tmp_path / "some.npz", **parts)
        return read_files([tmp_path / "some.npz"], Reader())

    found = arrays(X=X, y=y)
    assert (found[0] == X).all() and (found[1] == y).all()
    with pytest.raises(
        RefusedError, match="the arrays X and y, found X, target"
    ):
        arrays(X=X, target=y)
    days = np.arange(9).astype("datetime64[D]").reshape(3, 3)
    for odd, kind in (
        (days, "datetime64"),
        (X.astype("U3"), "U3"),
        (X * 1j, "omplex"),
    ):
        with pytest.raises(
            RefusedError, match=f"^some.npz: X: expected .*{kind}"
        ):
            arrays(X=odd, y=y)
    assert arrays(X=X > 0, y=y.astype("int8"))[0].tolist() == X.tolist()
    with pytest.raises(RefusedError, match="allow_pickle"):
        arrays(X=np.array([[object()]]), y=y)


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


def test_a_table_may_be_packed_or_parquet(tmp_path):
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("t.csv", PLAIN)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(PLAIN.encode()))
    table = pd.DataFrame(
        {"a": [1, 4], "b": pd.array([2, 5], "Int64"), "y": [3.0, 6.0]}
    )
    table.to_parquet(tmp_path / "t.parquet")
    for path in sorted(tmp_path.iterdir()):
        X, y, names = table_arrays(read_table(path))
        assert (X.tolist(), y.tolist(), names) == (*SAME, ["a", "b"])
    with pytest.raises(FileNotFoundError):
        # the system's, no fault of the file
        read_table(tmp_path / "gone.csv")


# --- damaged files --------------------------------------------------------------------


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


DAMAGED = {
    "csv": [
        ("a,b,y\n2,1,9,8\n4,2,9,8\n", {}, "line 2: expected 3 fields, found 4"),
        ("a,b,y\n1,2,3\n\n4,5,6,,\n", {}, "line 4: expected 3 fields, found 5"),
        ("a,b,y\n1,2\n4,5,6\n", {}, "line 2: expected 3 fields, found 2"),
        ("1,2\n3,4,5\n", {"header": False}, "line 2: expected 2 fields, found 3"),
        ("a,y\n", {}, "no rows"),
        ("y\n1\n", {}, "line 1: .*`separator`"),
        ("a#y\n1#2\n", {}, "line 1: .*`separator`"),
        (PLAIN, {"separator": ",,"}, "separator: expected one character, found ',,'"),
        ("1,2\n3,4\n", {}, "line 1: .*found 1: `header: false`"),
        ("28.8,16,g\n31,11,h\n", {}, "line 1: .*found 28.8: `header: false`"),
        ("a,a,y\n1,2,3\n", {}, "line 1: two columns are named 'a'"),
        ('a,y\n1,"2\n', {}, "cannot be read as csv"),
        ("a,y\n1,é\n".encode("latin-1"), {}, "save it as UTF-8"),
        (PLAIN.encode("utf-16"), {}, "save it as UTF-8"),
        ("a,y\n1,2\nx,3\n", {}, "'a', line 3: found 'x'.*categories"),
        ("a,y\n1,2\n\n3,4\nTotal,\n", {}, "'a', line 5: found 'Total'.*'y', line 5"),
        ("a;y\n1,5;2\n", {}, "'a', line 2: found '1,5'.*`decimal: ','`"),
        ("a;y\n1;2,5\n", {}, "'y', line 2: found '2,5'.*`decimal: ','`"),
        ("a;y\n1,5;2\nx;3\nNA;4\n", {"decimal": ","}, r"line 3: found 'x'.*1 of 3 "),
        ("a;y\n1.234;2\n5,5;3\n", {"decimal": ","}, "found '1.234'.*`decimal: '.'`"),
        ("a,b,y\n$3,12 %,4\n", {}, r"'a', line 2: found '\$3'.*'b', line 2: found '12"),
        ('a,y\n"1,000",2\n', {}, "'a', line 2: found '1,000'"),
        ("a;b;y\n1;2;3\n4,5,6\n", {}, "line 3: .*found 1, with ';'.*`separator`"),
        ("a,b\n1,2\n3\n", {}, "line 3: .*found 1, with ','.*`separator`"),
        ('a,y\n"1,010.84",2\n', {}, "found '1,010.84'.*: take out .*','"),
        ('a,y\n"-1,000,000",2\n3,4\n', {}, "'-1,000,000'.*: take out .*','"),
        ("a,y\n1'010.5,2\n3,4\n", {}, """found "1'010.5".*: take out .*"'\""""),
        ("a,y\n1\u2019010,2\n3,4\n", {}, "found '1\u2019010'.*: take out "),
        ("a,y\n1 010.5,2\n3,4\n", {}, "found '1 010.5'.*: take out .*' '"),
        ("a;y\n1\u00a0010,5;2\n", {"decimal": ","}, "found .*010,5'.*: take out "),
        ("a;y\n1.010,5;2\n3;4\n", {"decimal": ","}, "'1.010,5'.*: take out .*'.'"),
        ("a;y\n1;2.010.000\n", {"decimal": ","}, "'y', line 2: found '2.010.000'"),
        ("a,y\n1,2\n.,3\n4,5\n", {"missing": "mean"}, r"found '\.'.*\?, NA, n/a, #N/A"),
        ("a,y\n.,2\n.,3\n4,5\n", {"missing": "mean"}, r"found '\.'.*\?, NA, n/a, #N/A"),
        ("a,y\n1,inf\n", {}, "'y', line 2: found inf, expected at most 1e\\+150"),
        ("a,y\n1e300,2\n", {}, "'a', line 2: found 1e\\+300, expected at most"),
        ("a,y\n1_0,2\n", {}, "'a', line 2: found '1_0'"),
        ("a,b,y\n1,2,3\n,4,5\n6,NA,7\n", {}, "'a', line 3: found no v.*'b', line 4"),
        ("a,y\n1,2\n3,?\n", {"missing": "mean"}, "'y', line 3: .*`missing: drop`"),
        ("a,y\n1,2\n3,?\n", {"positive": "2"}, "'y', line 3: .*`missing: drop`"),
        ("a,y\n,2\nNA,3\n", {"missing": "mean"}, "'a' has no value at all"),
        ("a,y\n,2\nNA,3\n", {"missing": "drop"}, "no records"),
        ("a,y\n1,yes\n2,no\n", {}, "'y', line 2: found 'yes'.*`positive`.*no, yes"),
        ("a,y\n1,1\n2,2\n", {"positive": "3"}, "classes 1, 2, expected '3'"),
        ("a,y\n1,yes\n2,no\n", {"target": "x"}, "column x is missing; there are a, y"),
        ("a,b,y,\n1,2,3,4\n", {}, r"column 4 has no name: `drop: \[4\]`"),
        (",a,y\n0,1,2\n", {}, r"column 1 has no name: `drop: \[1\]`"),
        ("a,y\n1,2\n", {"categories": {"k": ["a"]}}, "categories: 'k' is no feature"),
        (f"{COLOURS}pink,9\n", CODED, "'c', line 5: found 'pink'"),
        ("a,b,c,y\nx,1,,u\nz,2,4,v\n", {},  # all faults at once
         "'a', line 2: .*'c', line 2: .*'y', line 2: .*`positive`"),
    ],
    "arff": [
        (ARFF[:-9], CLASS, "cannot be read as arff"),
        (ARFF[: ARFF.index("0.25")], CLASS, "no rows"),
        (ARFF, {**CLASS, "positive": "up"}, "classes DOWN, UP.*'up'"),
        (ARFF, {"target": "klass"}, "column klass is missing.*class"),
        (ARFF, {"target": "day"}, "'class', line 7: found 'UP'"),
        (ARFF.replace("0.25", "?"), CLASS, "'first one', line 7: .*missing"),
        (ARFF.replace("3,UP", "3,?"), CLASS, "'class', line 7: .*missing"),
        (SPARSE_ARFF.replace("1.5", "?"), {"positive": "yes"}, "'a', line 7: found no"),
    ],
    "libsvm": [
        ("+1 1:0.5 3:", {}, "line 1: expected label, index:value"),
        ("1 1:1\n\n1 2:x\n", {}, "line 3: expected label, index:value"),
        ("1 1:1\n1 3:1 2:1\n", {}, "line 2: .*should be sorted"),
        ("1 1:1\n1 2:nan\n", {}, "line 2: expected finite"),
        ("1 1:1\nnan 2:1\n", {}, "line 2: expected finite"),
        ("1 1000000000:1\n", {}, "feature 1000000000, expected at most"),
        ("1 3:1\n", {"n_features": 2}, "line 1: .*n_features.*2"),
    ],
    "nips2003": [
        ("1 2\n", {}, "pairs"),
        (["1 2\n3\n", "1\n-1\n"], {}, "cannot be read as nips2003"),
        (["1 2\n3 4\n", "1\n"], {}, "expected"),
        (["1 2\n3 4\n", "1\n0\n"], {}, "labels other than"),
        (["1\n2\n", "1\n"], INDICES, "cannot be read"),
        (["6\n", "1\n"], INDICES, "line 1: .*n_features.*5"),
        (["0\n", "1\n"], INDICES, "line 1: .*Invalid index 0"),
        (["2 2\n", "1\n"], INDICES, "line 1: .*sorted and unique"),
    ],
    "cal_housing": [
        ("1,2,3\n4,5,6\n", {}, "got 3"),
        ("1,2,3,4,5,6,0,8,9\n", {}, "divide by zero"),
        ("1,2,3,4,5,6,7,8,9\n1,2", {}, "cannot be read"),
        (["1,2\n", "3,4\n"], {}, "one file, found 2"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("format_", "texts", "keys", "words"),
    [(format_, *case) for format_, cases in DAMAGED.items() for case in cases],
)
def test_damaged_files_are_refused_by_name_and_line(
    tmp_path, format_, texts, keys, words
):
    texts = texts if isinstance(texts, list) else [texts]
    with pytest.raises(RefusedError, match=f"^part0.*{words}") as error:
        read(tmp_path, format_, *texts, **keys)
    assert "\n" not in str(error.value)


def test_the_part_of_libsvm_that_is_damaged_is_named(tmp_path):
    with pytest.raises(RefusedError, match=r"^part1, line 2: .*spam"):
        read(tmp_path, "libsvm", "1 1:1\n", "1 1:1\nspam 1:1\n")


def test_a_column_of_another_type_is_refused_by_its_name(tmp_path):
    days = pd.date_range("2020-01-01", periods=3)
    parts = pd.cut([1, 2, 3], 3, labels=["low", "mid", "top"])
    table = pd.DataFrame(
        {"when": days, "part": parts, "own": [True, False, True]}
    )
    table.assign(y=1.0, raw=[b"x", b"y", b"z"]).to_parquet(
        tmp_path / "t.parquet"
    )
    table = read_table(tmp_path / "t.parquet")
    words = (
        r"'when', record 1: .*'part', record 1: found 'low'.*'raw', record 1: "
    )
    with pytest.raises(RefusedError, match=words):
        table_arrays(table, "y")
    coded = {"part": ["low", "mid", "top"]}
    X, _, names = table_arrays(
        table, "y", drop=["when", "raw"], categories=coded
    )
    assert X.tolist() == [[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 1]]
    assert names == ["part=low", "part=mid", "part=top", "own"]
