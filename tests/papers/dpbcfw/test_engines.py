"""Two engines, one algorithm: the same bits, on a real cluster of processes."""

import logging
import os
import signal
import warnings
from dataclasses import replace

import numpy as np
import pytest

from dperm.core.privacy.mechanisms import streams
from dperm.solvers.distributed.engines import (
    ENGINES,
    Dask,
    InMemory,
    Local,
    WorkerLostError,
    in_files,
    in_memory,
    shares,
)
from dperm.solvers.distributed.node import Message
from dperm.solvers.frank_wolfe import Noise, dp_bcfw

OPTIONS = dp_bcfw.Options(
    nodes=3, radius=1.5, update="feasible", sketch=12, entry_bound=4.0, label_bound=4.0
)
NOISE = Noise(None, 0.02, 0.4, 0.0)


def seeds():
    return streams(3).noise.integers(0, 2**62, OPTIONS.nodes).tolist()


@pytest.fixture(scope="module")
def local(instance):
    run = dp_bcfw.Run(instance.problem, streams(3), OPTIONS, NOISE)
    run.advance(25)
    return run


@pytest.fixture
def client():
    """Three processes, not restarted when they are killed."""
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            LocalCluster(
                n_workers=3,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
            ) as cluster,
            Client(cluster) as made,
        ):
            yield made


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


def started(instance, client, folder):
    """The server gets the sizes alone; each part goes to a file, and to its worker."""
    public = dp_bcfw.public_of(instance.problem, OPTIONS, NOISE)
    parts = in_files(instance.problem, OPTIONS.nodes, folder)
    engine = Recorded(Dask(parts, public, seeds(), client, patience=30.0))
    sizes = Sizes(instance.problem)
    return run_of(sizes, engine), engine


def run_of(problem, engine, options=OPTIONS, noise=NOISE):
    start = lambda *_: engine  # noqa: E731
    return dp_bcfw.Run(problem, streams(3), options, noise, start=start)


class Sizes:
    """A problem without its data: all that the server of a Dask run reads."""

    def __init__(self, problem):
        self.n, self.p, self.loss = problem.n, problem.p, problem.loss


def same(run, local):
    np.testing.assert_array_equal(run.x, local.x)
    np.testing.assert_array_equal(run.q, local.q)
    np.testing.assert_array_equal(np.array(run.chosen), np.array(local.chosen))
    np.testing.assert_array_equal(np.array(run.up), np.array(local.up))
    np.testing.assert_array_equal(np.array(run.down), np.array(local.down))


@pytest.mark.slow
def test_a_cluster_of_processes_gives_the_same_bits(instance, client, tmp_path, local):
    run, engine = started(instance, client, tmp_path)
    places = engine.engine.places
    pids = client.run(os.getpid)
    assert len({pids[place] for place in places}) == 3
    assert os.getpid() not in pids.values()
    run.advance(25)
    same(run, local)
    no_raw_column(instance, engine)


def no_raw_column(instance, engine):
    """No message has as many numbers as a column, and none holds any entry of one."""
    entries = set(np.abs(instance.problem.A.data).tolist())
    labels = set(np.abs(instance.problem.offset).tolist())
    assert engine.down and engine.up
    for content in (*engine.down, *engine.up):
        numbers = Message.unpack(content).numbers
        assert numbers.size in (0, 12) and instance.problem.n != 12
        assert not (entries | labels) & set(np.abs(numbers).tolist())


def test_messages_that_carried_raw_columns_would_be_seen(instance):
    quiet = Noise(None, 0.02, 0.0, 0.0)
    plain = replace(OPTIONS, sketch=None)
    public = dp_bcfw.public_of(instance.problem, plain, quiet)
    engine = Recorded(Local(in_memory(instance.problem, 3), public, seeds()))
    run_of(instance.problem, engine, plain, quiet).advance(3)
    with pytest.raises(AssertionError):
        no_raw_column(instance, engine)


def test_nodes_of_one_process_are_of_one_problem(instance):
    """They share what the message says of the slopes, which the offset enters."""
    parts = in_memory(instance.problem, 2)
    share = replace(parts[1].share, offset=parts[1].share.offset + 1.0)
    public = dp_bcfw.public_of(instance.problem, OPTIONS, NOISE)
    with pytest.raises(ValueError, match="one problem"):
        Local([parts[0], InMemory(share)], public, [1, 2])


@pytest.mark.slow
def test_a_lost_worker_is_replaced_and_the_run_goes_on(
    instance, client, tmp_path, local
):
    run, engine = started(instance, client, tmp_path)
    run.advance(10)
    kill(client, engine.engine.places[1])
    run.advance(15)
    same(run, local)


@pytest.mark.slow
def test_a_lost_part_is_a_clear_error(instance, client, tmp_path):
    run, engine = started(instance, client, tmp_path)
    run.advance(3)
    (tmp_path / "node-1.npz").unlink()
    kill(client, engine.engine.places[1])
    with pytest.raises(WorkerLostError, match="node 1 cannot be started"):
        run.advance(1)


def kill(client, place):
    """Kill a worker and its nanny's chance to bring it back."""
    os.kill(client.run(os.getpid, workers=[place])[place], signal.SIGKILL)


class Confused(Dask):
    """Starts a lost node with another seed."""

    def _start(self, k):
        if self.sent:
            part, public, seed = self.arguments[k]
            self.arguments[k] = (part, public, seed + 1)
        return super()._start(k)


@pytest.mark.slow
def test_a_successor_that_answers_otherwise_is_refused(instance, client, tmp_path):
    public = dp_bcfw.public_of(instance.problem, OPTIONS, NOISE)
    parts = in_files(instance.problem, OPTIONS.nodes, tmp_path)
    engine = Confused(parts, public, seeds(), client, patience=30.0)
    run = run_of(instance.problem, engine)
    run.advance(5)
    kill(client, engine.places[2])
    with pytest.raises(WorkerLostError, match="does not answer as it did"):
        run.advance(1)


@pytest.mark.slow
def test_the_engine_of_that_name_starts_a_cluster_of_its_own(instance, local):
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = (instance.problem, streams(3), OPTIONS, NOISE)
        with dp_bcfw.Run(*given, start=ENGINES["dask"]) as run:
            run.advance(25)
            same(run, local)


def test_parts_hold_each_column_once(instance, tmp_path):
    whole = instance.problem.A.toarray()
    found = [part.load() for part in in_files(instance.problem, 4, tmp_path)]
    np.testing.assert_array_equal(
        np.hstack([share.matrix.toarray() for share in found]), whole
    )
    firsts = [share.first for share in shares(instance.problem, 4)]
    assert [share.first for share in found] == firsts


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


def test_communication_is_counted_in_bytes(local):
    m, K = 12, 3
    first, later = np.array(local.down)[[0, 5]]
    assert (first == 8 + 8 * m).all() and (later == 8 + 8 * (K + m)).all()
    up = np.array(local.up)
    assert set(up.ravel()) == {16, 16 + 8 * m}
    assert (up == 16 + 8 * m).sum() == len(local.features)
