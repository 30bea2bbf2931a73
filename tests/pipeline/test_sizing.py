"""What a job asks of a cluster grows with its problem."""

import json

import pytest

from dperm.data.fetching import FetchRecord
from dperm.pipeline import sizing
from dperm.pipeline.runtable import RunTable


@pytest.fixture
def sized(tmp_path, monkeypatch):
    """A run table with one job, and a way to say how large its data set is."""
    monkeypatch.chdir(tmp_path)
    table = RunTable(folder="", dataset_of={"wine": "wines"}, work={"a/wine/dp": 5e5})

    def put(n, p, nnz):
        folder = tmp_path / "data" / "fetched" / "wines"
        folder.mkdir(parents=True, exist_ok=True)
        record = FetchRecord("wines", "ok", "", n=n, p=p, nnz=nnz)
        (folder / "fetch.json").write_text(json.dumps(vars(record)))

    return table, put


def test_the_least_while_nothing_is_known(sized):
    table, _ = sized
    assert sizing.memory(table, "wine") == sizing.BASE
    assert sizing.minutes(table, "wine", "a/wine/dp") == sizing.START


def test_memory_and_time_grow_with_the_problem_and_the_attempt(sized):
    table, put = sized
    put(45312, 8, 362496)
    small = sizing.memory(table, "wine"), sizing.minutes(table, "wine", "a/wine/dp")
    put(453120, 80, 36249600)
    large = sizing.memory(table, "wine"), sizing.minutes(table, "wine", "a/wine/dp")
    assert small == (1017, 22)
    assert large == (1000 + 1739, 10 + 1208)
    names = type("Names", (list,), {"problem": "wine"})(["a", "wine", "dp"])
    memory, minutes = sizing.asked(table)
    assert (memory(names, 1), minutes(names, 1)) == large
    assert (memory(names, 2), minutes(names, 2)) == tuple(2 * value for value in large)
    assert sizing.minutes(table, "wine") < large[1]
