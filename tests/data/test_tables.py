"""Tables of separated values and Parquet: odd forms are read, faults named at once."""

import bz2
import gzip
import zipfile

import numpy as np
import pandas as pd
import pytest

from dperm.data import read_table, table_arrays
from dperm.data.arrays import RefusedError

PLAIN = "a,b,y\n1,2,3\n4,5,6\n"
TEXT = "a,b,c,y\nx,1,,u\nz,2,4,v\n"


def read(folder, content, name="part.csv", keys=(), **options):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return table_arrays(read_table(path, **options), **dict(keys))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (PLAIN, {}),
        ("\ufeffa,b,y\n1,2,3\n4,5,6", {}),
        (PLAIN.replace("\n", "\r\n"), {}),
        ("a,b,y\n1,2,3,\n4,5,6,\n", {}),
        ("a,b,y,\n1,2,3,\n4,5,6,\n", {}),
        ("a,b,y,\n1,2,3\n4,5,6\n", {}),
        ("a,b,y\n1,2,3,\n4,5,6\n", {}),
        ('"a","b",y\n"1"," 2 ",3\n\n4,5,"6"\n', {}),
        ("\n a, b , y\n1, 2 , 3\n4,5,6\n\n", {}),
        ("a,b,y\n1,2,3e0\n+4,5.0,0.6E1\n", {}),
        (PLAIN.replace(",", ";"), {}),
        (PLAIN.replace(",", "\t"), {}),
        ("sep=;\n" + PLAIN.replace(",", ";"), {}),
        (PLAIN.replace(",", "#"), {"separator": "#"}),
        ("a;b;y\n1,0;2;3\n4;5,00;6\n", {"decimal": ","}),
    ],
)
def test_odd_forms_are_the_same_data(tmp_path, text, options):
    X, y, names = read(tmp_path, text, **options)
    assert X.tolist() == [[1, 2], [4, 5]] and y.tolist() == [3, 6]
    assert names == ["a", "b"]


def test_a_word_or_a_point_among_decimal_commas_is_found(tmp_path):
    with pytest.raises(RefusedError, match=r"'a', line 2: found '1_234'"):
        read(tmp_path, "a;y\n1.234;2\n5,5;3\n", decimal=",")
    with pytest.raises(RefusedError, match=r"'a', line 3: found 'x'.*\(1 of 3 "):
        read(tmp_path, "a;y\n1,5;2\nx;3\nNA;4\n", decimal=",")


def test_packed_files_and_parquet_by_their_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("t.csv", PLAIN)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(PLAIN.encode()))
    (tmp_path / "t.csv.bz2").write_bytes(bz2.compress(PLAIN.encode()))
    table = pd.DataFrame({"a": [1, 4], "b": pd.array([2, 5], "Int64"), "y": [3.0, 6.0]})
    table.to_parquet(tmp_path / "t.parquet")
    for path in sorted(tmp_path.iterdir()):
        X, y, names = table_arrays(read_table(path))
        assert X.tolist() == [[1, 2], [4, 5]] and y.tolist() == [3, 6]
        assert names == ["a", "b"]


def test_columns_without_names_are_called_by_their_number(tmp_path):
    keys = {"target": "3", "drop": ["1"]}
    X, y, names = read(tmp_path, "1\t2\t3\n4\t5\t6\n", keys=keys, header=False)
    assert X.tolist() == [[2], [5]] and y.tolist() == [3, 6] and names == ["2"]
    X, _, _ = read(tmp_path, "0,1\n3,4\n", header=True)
    assert X.tolist() == [[3]]
    X, _, names = read(tmp_path, ",a,y\n0,1,2\n1,3,4\n", keys={"drop": ["1"]})
    assert X.tolist() == [[1], [3]] and names == ["a"]


def test_every_digit_is_read(tmp_path):
    values = np.random.default_rng(1).standard_normal((20, 3))
    lines = ["a,b,y", *(",".join(map(repr, row)) for row in values.tolist())]
    X, y, _ = read(tmp_path, "\n".join(lines))
    assert (np.column_stack([X, y]) == values).all()


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("a,b,y\n2,1,9,8\n4,2,9,8\n", {}, "line 2: expected 3 fields, found 4"),
        ("a,b,y\n1,2,3\n\n4,5,6,,\n", {}, "line 4: expected 3 fields, found 5"),
        ("a,b,y\n1,2\n4,5,6\n", {}, "line 2: expected 3 fields, found 2"),
        ("1,2\n3,4,5\n", {"header": False}, "line 2: expected 2 fields, found 3"),
        ("a,y\n", {}, "no rows"),
        ("", {}, "is empty"),
        ("y\n1\n", {}, "line 1: .*`separator`"),
        ("a#y\n1#2\n", {}, "line 1: .*`separator`"),
        ("a::y\n1::2\n", {"separator": "::"}, "separator: expected one character"),
        ("1,2\n3,4\n", {}, "line 1: .*found 1: `header: false`"),
        ("28.8,16,g\n31,11,h\n", {}, "line 1: .*found 28.8: `header: false`"),
        ("a,a,y\n1,2,3\n", {}, "line 1: two columns are named 'a'"),
        (PLAIN, {"separator": ",,"}, "separator: expected one character, found ',,'"),
        ('a,y\n1,"2\n', {}, "cannot be read as a table"),
        ("<HTML>", {}, "web page"),
        ("a,y\n1,é\n".encode("latin-1"), {}, "save it as UTF-8"),
        (PLAIN.encode("utf-16"), {}, "save it as UTF-8"),
    ],
)
def test_a_damaged_table_is_refused_by_file_and_line(tmp_path, text, options, words):
    with pytest.raises(RefusedError, match=f"^part.csv.*{words}"):
        read(tmp_path, text, **options)


@pytest.mark.parametrize(
    ("text", "keys", "words"),
    [
        ("a,y\n1,2\nx,3\n", {}, "'a', line 3: found 'x'.*categories"),
        ("a,y\n1,2\n\n3,4\nTotal,\n", {}, "'a', line 5: found 'Total'.*'y', line 5"),
        ("a;y\n1,5;2\n", {}, "'a', line 2: found '1,5'.*`decimal: ','`"),
        ("a;y\n1;2,5\n", {}, "'y', line 2: found '2,5'.*`decimal: ','`"),
        ("a,b,y\n$3,12 %,4\n", {}, r"'a', line 2: found '\$3'.*'b', line 2: found '12"),
        ('a,y\n"1,000",2\n', {}, "'a', line 2: found '1,000'"),
        ("a,y\n1,inf\n", {}, "'y', line 2: found inf, expected at most 1e\\+150"),
        ("a,y\n1e300,2\n", {}, "'a', line 2: found 1e\\+300, expected at most"),
        ("a,y\n1,2\n3,-1e300\n", {}, "'y', line 3: found -1e\\+300"),
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
        ("c,y\nred,1\n", {"categories": {"c": ["blue"]}}, "'c', line 2: found 'red'"),
        (TEXT, {}, "'a', line 2: .*'c', line 2: .*'y', line 2: .*`positive`"),
    ],
)
def test_all_faults_of_columns_are_named_at_once(tmp_path, text, keys, words):
    with pytest.raises(RefusedError, match=words) as error:
        read(tmp_path, text, keys=keys)
    assert "\n" not in str(error.value)


def test_an_error_of_the_system_is_no_fault_of_the_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "gone.csv")


def test_a_column_of_another_type_is_refused_by_its_name(tmp_path):
    days = pd.date_range("2020-01-01", periods=3)
    parts = pd.cut([1, 2, 3], 3, labels=["low", "mid", "top"])
    table = pd.DataFrame({"when": days, "part": parts, "own": [True, False, True]})
    table.assign(y=1.0, raw=[b"x", b"y", b"z"]).to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    words = r"'when', record 1: .*'part', record 1: found 'low'.*'raw', record 1: "
    with pytest.raises(RefusedError, match=words):
        table_arrays(table, "y")
    coded = {"part": ["low", "mid", "top"]}
    X, _, names = table_arrays(table, "y", drop=["when", "raw"], categories=coded)
    assert X.tolist() == [[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 1]]
    assert names == ["part=low", "part=mid", "part=top", "own"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("mean", [1, 5, 5, 9]), ("median", [1, 5, 5, 9]), ("drop", [1, 9])],
)
def test_gaps_by_a_declared_rule(tmp_path, rule, expected):
    text = "a,b,y\n1,2,3\nNA,5,6\n?,8,9\n9,11,12\n"
    X, y, _ = read(tmp_path, text, keys={"missing": rule})
    assert X[:, 0].tolist() == expected
    assert y.tolist() == ([3, 12] if rule == "drop" else [3, 6, 9, 12])


def test_listed_categories_become_columns(tmp_path):
    keys = {"categories": {"a": ["x", "z"]}, "positive": "u", "drop": ["c"]}
    X, y, names = read(tmp_path, TEXT, keys=keys)
    assert X.tolist() == [[1, 0, 1], [0, 1, 2]] and y.tolist() == [1, -1]
    assert names == ["a=x", "a=z", "b"]
