"""Two engines, one algorithm: the same bits, on a real cluster of processes."""

import logging
import os
import signal
import warnings
from dataclasses import replace

import numpy as np
import pytest

from dperm.privacy.noise import streams
from dperm.solvers.distributed.engines import (
    ENGINES,
    Dask,
    Local,
    WorkerLostError,
    shares,
)
from dperm.solvers.distributed.node import Message
from dperm.solvers.frank_wolfe import Noise, dp_bcfw

OPTIONS = dp_bcfw.Options(
    nodes=3,
    radius=1.5,
    update="feasible",
    sketch=12,
    entry_bound=4.0,
    label_bound=4.0,
)
NOISE = Noise(None, 0.02, 0.4, 0.0)


@pytest.fixture(scope="module")
def local(instance):
    run = dp_bcfw.Run(instance.problem, streams(3), OPTIONS, NOISE)
    run.advance(25)
    return run


@pytest.fixture
def quiet():
    """Nothing is said when workers end."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Recorded:
    """An engine that keeps every message."""

    def __init__(self, engine):
        self.engine, self.down, self.up = engine, [], []

    def exchange(self, content):
        answers = list(self.engine.exchange(content))
        self.down.append(content)
        self.up += answers
        return answers

    def close(self):
        self.engine.close()


@pytest.fixture
def started(instance, quiet):
    """The server gets the sizes alone; each part goes to a file, and to its worker."""
    public = dp_bcfw.public_of(instance.problem, OPTIONS, NOISE)
    seeds = streams(3).noise.integers(0, 2**62, OPTIONS.nodes).tolist()
    engine = Recorded(Dask(instance.problem, public, seeds))
    given = (Sizes(instance.problem), streams(3), OPTIONS, NOISE)
    with dp_bcfw.Run(*given, start=lambda *_: engine) as run:
        yield run, engine


class Sizes:
    """A problem without its data: all that the server of a Dask run reads."""

    def __init__(self, problem):
        self.n, self.p, self.loss = problem.n, problem.p, problem.loss


def same(run, local):
    for name in ("x", "q", "chosen", "up", "down"):
        np.testing.assert_array_equal(
            *(getattr(one, name) for one in (run, local))
        )


def test_a_cluster_of_processes_gives_the_same_bits(instance, started, local):
    run, engine = started
    pids = engine.engine.client.run(os.getpid)
    assert len({*pids.values()}) == 3 and os.getpid() not in pids.values()
    run.advance(25)
    same(run, local)
    # no message has as many numbers as a column, and none holds any entry of one
    entries = set(np.abs(instance.problem.A.data).tolist())
    labels = set(np.abs(instance.problem.offset).tolist())
    assert engine.down and engine.up
    for content in (*engine.down, *engine.up):
        numbers = Message.unpack(content).numbers
        assert numbers.size in (0, 12) and instance.problem.n != 12
        assert not (entries | labels) & set(np.abs(numbers).tolist())


def test_nodes_of_one_process_are_of_one_problem(instance):
    """They share what the message says of the slopes, which the offset enters."""
    first, second = shares(instance.problem, 2)
    other = replace(second, offset=second.offset + 1.0)
    public = dp_bcfw.public_of(instance.problem, OPTIONS, NOISE)
    with pytest.raises(ValueError, match="one problem"):
        Local([first, other], public, [1, 2])


def test_a_lost_worker_ends_the_run_with_a_clear_error(started):
    """Its unit runs again by resume; the answers that were given are not repeated."""
    run, engine = started
    run.advance(3)
    first, *_ = engine.engine.client.run(os.getpid).values()
    os.kill(first, signal.SIGKILL)
    with pytest.raises(WorkerLostError, match="a node was lost"):
        run.advance(1)


def test_a_scheduler_that_is_configured_is_used_and_left_running(
    instance, quiet, local
):
    import dask
    from distributed import Client, LocalCluster

    how = {
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": None,
    }
    with (
        LocalCluster(n_workers=2, **how) as cluster,
        dask.config.set({"scheduler-address": cluster.scheduler_address}),
    ):
        given = (instance.problem, streams(3), OPTIONS, NOISE)
        with dp_bcfw.Run(*given, start=ENGINES["dask"]) as run:
            run.advance(25)
            same(run, local)
        with Client(cluster.scheduler_address) as other:
            assert len(other.scheduler_info()["workers"]) == 2


def test_messages_survive_the_journey():
    sent = Message(np.array([3, -8]), np.array([0.1, -2.5e-7, 3.0]))
    content = sent.pack()
    assert len(content) == 8 + 8 * 5
    got = Message.unpack(content)
    np.testing.assert_array_equal(got.indices, sent.indices)
    np.testing.assert_array_equal(got.numbers, sent.numbers)
    for broken in (content[:-1], content + b"x", b""):
        with pytest.raises(ValueError, match="message"):
            Message.unpack(broken)
