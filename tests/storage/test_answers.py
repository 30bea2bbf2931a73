"""Answers that are kept from run to run are never outdated, and never damaged."""

import ast
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dperm.storage import answers, statements
from dperm.storage.answers import StoredAnswers

CALLS = []
TEXT = (
    "import numpy as np, os\n\ndef area(r: float):\n    return np.pi * r**2\n"
)


def letters(text, factor=1):
    CALLS.append(text)
    return tuple(text * factor)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(answers, "_folder", lambda: tmp_path)
    CALLS.clear()
    return tmp_path


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty folder of caches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    forget = answers._folder.cache_clear
    forget()
    yield tmp_path
    forget()


def test_an_answer_is_found_once_for_its_arguments_source_and_python(folder):
    for _ in range(2):
        assert StoredAnswers(letters)("ab") == ("a", "b")
    assert StoredAnswers(letters)("ab", 2) == ("a", "b", "a", "b")
    assert CALLS == ["ab", "ab"] and len([*folder.iterdir()]) == 2
    reader = StoredAnswers(letters)
    for part in (
        sys.version.encode(),
        b"letters\n",
        Path(__file__).read_bytes(),
    ):
        assert part in reader.made_by
    reader.made_by += b"#"
    assert reader("ab") == ("a", "b") and len(CALLS) == 3


def test_a_damaged_file_is_replaced(folder):
    text = "abc" * 9
    reader = StoredAnswers(letters)
    reader(text)
    (path,) = folder.iterdir()
    content = path.read_bytes()
    flips = [content[:k] + bytes([content[k] ^ 1]) + content[k + 1 :]
             for k in range(len(content))]  # fmt: skip
    for damaged in (b"", content[:-1], content + b"x", *flips):
        path.write_bytes(damaged)
        assert reader(text) == tuple(text) and path.read_bytes() == content
    assert answers._read(path.rename(folder / "other")) is None


def test_without_a_folder_nothing_is_kept(cache, monkeypatch):
    (cache / "dperm").write_text("no folder")
    assert answers._folder() is None and StoredAnswers(letters)("ab") == (
        "a",
        "b",
    )
    monkeypatch.setattr(answers, "_folder", lambda: cache / "gone")
    assert StoredAnswers(letters)("ab") == ("a", "b")


def test_writers_of_one_answer_do_not_spoil_it(folder):
    answer = "x" * 10**6
    path = folder / "name"

    def written(_):
        answers._write(path, answer)
        return answers._read(path)

    with ThreadPoolExecutor(8) as pool:
        assert {*pool.map(written, range(80))} == {answer}
    assert [*folder.iterdir()] == [path]


def test_the_folder_does_not_grow_for_ever(cache, monkeypatch):
    monkeypatch.setattr(answers, "MAX_FILES", 10)
    for number in range(11):
        (answers._folder() / f"{number}").write_text("")
    answers._folder.cache_clear()
    assert len([*answers._folder().iterdir()]) == 5


def test_what_is_kept_depends_on_the_text_alone():
    """So the module that reads it imports nothing whose edit would go unnoticed."""
    nodes = [*ast.walk(ast.parse(Path(statements.__file__).read_text()))]
    imports = [node for node in nodes if isinstance(node, ast.Import)]
    modules = {alias.name for node in imports for alias in node.names}
    modules |= {
        node.module for node in nodes if isinstance(node, ast.ImportFrom)
    }
    assert {
        name.partition(".")[0] for name in modules
    } <= sys.stdlib_module_names
    reader = StoredAnswers(statements.read)
    assert (
        reader(TEXT, False)
        == reader(TEXT, False)
        == statements.read(TEXT, False)
    )
