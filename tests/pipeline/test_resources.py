"""Threads, memory and time of a job follow from its stage and its size."""

import json

import pytest

from dperm.data.fetching import FetchRecord
from dperm.pipeline import resources
from dperm.pipeline.graph import Graph
from dperm.pipeline.resources import ALONE, JobResources


@pytest.fixture
def jobs():
    """A paper with a timed sweep and another, a run, and the data of its problem."""
    graph = Graph("", ["one"], dataset_of={"a": "wines"})
    graph.add("prepare", "a")
    graph.add("solve", "one", "a", "s", work=5e5)
    graph.add("sweep", "one", "long", work=100.0)
    graph.add("sweep", "one", "clock", alone=True)
    graph.add("timing", "one", alone=True)
    graph.add("audit", "controls")
    graph.add_drawing("one", "figures/f", [])
    return graph


@pytest.fixture
def sized(jobs, tmp_path):
    """The resources, and a way to say how large the data set is."""

    def put(n, p, nnz):
        folder = tmp_path / "fetched" / "wines"
        folder.mkdir(parents=True, exist_ok=True)
        record = FetchRecord("wines", "ok", "", n=n, p=p, nnz=nnz)
        (folder / "fetch.json").write_text(json.dumps(vars(record)))

    return JobResources(jobs, str(tmp_path)), put


def test_threads_follow_from_passes_and_entries(sized):
    found, put = sized
    assert found.threads("solve/one/a/s") == 1  # its data are not there yet
    put(1000, 20, 20000)
    assert found.threads("solve/one/a/s") == 1
    put(45312, 80, 3624960)
    assert found.threads("solve/one/a/s") == 4
    put(10**7, 100, 10**9)
    assert found.threads("solve/one/a/s") == resources.MOST


def test_threads_of_other_stages_are_constant(sized):
    found, _ = sized
    assert found.threads("sweep/one/long") == resources.SWEEP_THREADS
    assert found.threads("draw/one/figures/f") == 1
    for job in ("sweep/one/clock", "timing/one"):
        assert found.threads(job) == ALONE


def test_what_is_timed_leaves_cores_idle(sized):
    found, _ = sized
    assert [
        found.workers("sweep/one/long", 3),
        found.workers("timing/one", 32),
        found.workers("sweep/one/clock", 2),
        found.workers("sweep/one/clock", 32),
    ] == [3, 1, 1, 4]


def test_the_least_while_nothing_is_known(sized):
    found, _ = sized
    assert found.megabytes("solve/one/a/s") == resources.BASE
    assert found.minutes("solve/one/a/s") == resources.MINUTES


def test_memory_and_time_grow_with_the_problem_and_the_attempt(sized):
    found, put = sized

    def asked(job, *attempt):
        return found.megabytes(job, *attempt), found.minutes(job, *attempt)

    put(45312, 8, 362496)
    assert asked("solve/one/a/s") == (1017, 22)
    put(453120, 80, 36249600)
    large = (1000 + 1739, 10 + 1208)
    assert asked("solve/one/a/s") == asked("solve/one/a/s", 1) == large
    assert asked("solve/one/a/s", 2) == tuple(2 * value for value in large)
    assert found.minutes("prepare/a") < large[1]
    several = (resources.SWEEP_MEMORY, resources.SWEEP_MINUTES)
    assert asked("sweep/one/long") == asked("timing/one") == several
    assert asked("timing/one", 2) == tuple(2 * value for value in several)
