"""Answers that are kept from run to run are never outdated, and never damaged."""

import ast
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dperm.storage import kept, statements

CALLS = []
TEXT = "import numpy as np, os\n\ndef area(r: float):\n    return np.pi * r**2\n"


def letters(text, factor=1):
    CALLS.append(text)
    return tuple(text * factor)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "_folder", lambda: tmp_path)
    CALLS.clear()
    return tmp_path


def test_an_answer_is_found_once_for_all_processes(folder):
    for _ in range(2):
        assert kept.Kept(letters)("ab") == ("a", "b")
    assert kept.Kept(letters)("ab", 2) == ("a", "b", "a", "b")
    assert CALLS == ["ab", "ab"] and len([*folder.iterdir()]) == 2


@pytest.mark.parametrize("changed", ["source", "python"])
def test_another_source_or_python_finds_its_own(folder, monkeypatch, changed):
    kept.Kept(letters)("ab")
    if changed == "source":
        read = Path.read_bytes
        monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"#")
    monkeypatch.setattr(sys, "version", sys.version + "+" * (changed == "python"))
    reader = kept.Kept(letters)
    monkeypatch.undo()
    monkeypatch.setattr(kept, "_folder", lambda: folder)
    assert reader("ab") == ("a", "b") and len(CALLS) == 2


def test_a_damaged_file_is_replaced(folder):
    reader = kept.Kept(letters)
    reader("abc" * 30)
    (path,) = folder.iterdir()
    content = path.read_bytes()
    flipped = [
        content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        for at in range(len(content))
    ]
    for damaged in [b"", content[:-1], content + b"x", *flipped]:
        path.write_bytes(damaged)
        assert reader("abc" * 30) == tuple("abc" * 30)
        assert path.read_bytes() == content
    other = folder / path.name.replace(path.name[0], "g")
    path.rename(other)
    assert kept._read(other) is None


def test_without_a_folder_nothing_is_kept(tmp_path, monkeypatch):
    (tmp_path / "dperm").write_text("no folder")
    for home in (tmp_path, Path("/proc")):
        monkeypatch.setenv("XDG_CACHE_HOME", str(home))
        kept._folder.cache_clear()
        assert kept._folder() is None and kept.Kept(letters)("ab") == ("a", "b")
    kept._folder.cache_clear()
    monkeypatch.setattr(kept, "_folder", lambda: tmp_path / "gone")
    assert kept.Kept(letters)("ab") == ("a", "b")


def test_writers_of_one_answer_do_not_spoil_it(folder):
    answer = "x" * 10**6
    path = folder / "name"

    def written(number):
        kept._write(path, answer)
        return kept._read(path)

    with ThreadPoolExecutor(8) as pool:
        assert {*pool.map(written, range(80))} == {answer}
    assert [*folder.iterdir()] == [path]


def test_the_folder_does_not_grow_for_ever(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kept, "MOST", 10)
    kept._folder.cache_clear()
    folder = kept._folder()
    for number in range(11):
        (folder / f"{number}").write_text("")
    kept._folder.cache_clear()
    assert len([*kept._folder().iterdir()]) == 5
    kept._folder.cache_clear()


def test_what_is_kept_depends_on_the_text_alone():
    """So the module that reads it imports nothing whose edit would go unnoticed."""
    tree = ast.parse(Path(statements.__file__).read_text())
    imports = [node for node in tree.body if isinstance(node, ast.Import)]
    modules = {alias.name for node in imports for alias in node.names}
    modules |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in modules} <= sys.stdlib_module_names
    reader = kept.Kept(statements.read)
    assert reader(TEXT, False) == reader(TEXT, False) == statements.read(TEXT, False)
