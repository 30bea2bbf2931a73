"""Sweeps: a function at every point, reused where it was computed before."""

import os
import signal
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pandas as pd
import psutil
import pytest

from changing import changed
from commands import python
from dperm.config import schema
from dperm.config.locate import ConfigError
from dperm.experiments import makers, scopes, stages
from dperm.experiments.stages import SweepRun
from dperm.experiments.task import IDENTITY
from dperm.numerics.parallel import forked
from dperm.storage import files as store
from dperm.workflow import jobs


def power(point, seed, base=2.0):
    """A measurement that depends on its point and seed alone."""
    return [
        {"checkpoint": k, "value": base ** point["n"] + seed % 97}
        for k in range(2)
    ]


def entry(given=0.0):
    """What a point was given."""
    return {"given": given}


@pytest.fixture
def swept(configured, monkeypatch):
    """A function that composes a paper with one sweep; ``codes`` of its solvers."""
    codes = {}
    real, known = makers.place_of, {"power": power, "entry": entry}
    monkeypatch.setattr(makers, "entry_of", lambda *given: "")
    monkeypatch.setattr(
        makers,
        "function_of",
        lambda paper, kind, name: known.get(name) or real(paper, kind, name),
    )
    monkeypatch.setattr(
        stages.SweepRun,
        "code_of",
        lambda self, point: f"1{[codes.get(k) for k in self._solvers(point)]}",
    )
    monkeypatch.setattr(scopes, "swept", lambda *given: {"seed": 1})

    def make(sweep, *overrides, results="results", **code):
        config = configured("scale=full", *overrides, results=results)
        codes.update(code)
        return changed(config, "paper.sweeps", {"powers": sweep})

    return make


def powers(values):
    return schema.Sweep(
        "power", {"n": values, "kind": ["a", "b"]}, replicates=3
    )


def made(config, caplog):
    """What a sweep says of the points that it reused, and its table."""
    caplog.clear()
    with caplog.at_level("INFO"):
        (path,) = stages.sweep(config)
    said = next(text for text in caplog.messages if "reused" in text)
    return said.partition(": ")[2], pd.read_parquet(path)


def test_rows_of_every_point_and_replicate_are_kept_when_it_grows(
    swept, caplog
):
    said, before = made(swept(powers([1, 2])), caplog)
    assert said == "0 reused, 12 to compute"
    assert len(before) == 2 * 2 * 3 * 2 and (before["status"] == "ok").all()
    assert before["seed"].nunique() == 2 * 2 * 3
    said, after = made(swept(powers([1, 2, 5])), caplog)
    assert said == "12 reused, 6 to compute" and list(after["n"].unique()) == [
        1,
        2,
        5,
    ]
    pd.testing.assert_frame_equal(
        before, after[after["n"] < 5].reset_index(drop=True)
    )


def test_large_points_come_first(swept, monkeypatch):
    """With more workers than one a long point at the end would be waited for."""
    began, real = [], SweepRun.measured

    def noted(self, task):
        began.append(task.point["n"])
        return real(self, task)

    monkeypatch.setattr(SweepRun, "measured", noted)
    stages.sweep(swept(powers([1, 3, 2])))
    assert began == [3] * 6 + [2] * 6 + [1] * 6


def test_unknown_names_are_refused(swept):
    with pytest.raises(ConfigError, match="did you mean powers"):
        stages.sweep(swept(powers([1]), "product=power"))
    unknown = schema.Sweep("powers", {"n": [1]})
    with pytest.raises(
        ConfigError, match=r"sweeps\.function: .*found 'powers'"
    ):
        stages.sweep(swept(unknown))


def test_seconds_of_a_point_add_up_over_its_rows(swept, monkeypatch):
    monkeypatch.setattr(
        stages.time, "perf_counter", iter(range(0, 99, 6)).__next__
    )
    table = pd.read_parquet(stages.sweep(swept(powers([1])))[0])
    assert (table.groupby(["kind", "replicate"])["seconds"].sum() == 6.0).all()


# --- from a tuning --------------------------------------------------------------------


def tuned_to(config, objective):
    """What tuning of one solver left, as far as a sweep looks at it."""
    columns = [*IDENTITY, "noise_multiplier", "objective", "relative_error"]
    row = dict.fromkeys(columns, 1.0) | {
        "calibration": "published",
        "objective": objective,
    }
    path = Path(config.output.results, "dpcd/diabetes/dp_cd/tune.parquet")
    store.write_table(path, pd.DataFrame([row]))


def test_a_sweep_that_starts_from_tuning_follows_it(swept, caplog):
    axes = {"problem": ["diabetes"], "solver": ["dp_cd"], "n": [1, 2]}
    config = swept(schema.Sweep("power", axes, replicates=1, tuned=True))
    config = changed(config, "paper.problems", ["diabetes"])
    with pytest.raises(FileNotFoundError, match=r"tune\.parquet"):
        stages.sweep(config)
    tuned_to(config, 0.5)
    assert made(config, caplog)[0] == "0 reused, 2 to compute"
    assert made(config, caplog)[0] == "2 reused, 0 to compute"
    tuned_to(config, 0.4)
    assert made(config, caplog)[0] == "0 reused, 2 to compute"


def test_snakemake_waits_for_the_tuning_that_a_sweep_starts_from():
    law = ("sweep", "dpgcd", "tuning_law")
    table, other = (jobs.compose(["dpgcd"], text) for text in
                    ([], ["paper.replicates=6"]))  # fmt: skip
    inputs = table.job(*law).inputs
    assert "results/dpgcd/dorothea/dp_gcd/tune.parquet" in inputs
    assert sum(path.endswith("tune.parquet") for path in inputs) == 21
    assert table.job(*law).key != other.job(*law).key


# --- points that stand apart ----------------------------------------------------------


def pairs(problems, given, **more):
    axes = {"problem": problems, "solver": [*given]}
    options = {"replicates": 1, "problems": problems, "apart": True} | more
    return schema.Sweep("entry", axes, options={"given": given}, **options)


def test_a_new_problem_or_solver_computes_itself_alone(swept, caplog):
    first, table = made(swept(pairs(["diabetes"], {"dp_cd": 1.0})), caplog)
    assert first == "0 reused, 1 to compute" and table["given"].tolist() == [
        1.0
    ]
    two, both = ["diabetes", "breast_cancer"], {"dp_cd": 1.0, "dp_sgd": 2.0}
    said, _ = made(swept(pairs(two, {"dp_cd": 1.0})), caplog)
    assert said == "1 reused, 1 to compute"
    said, table = made(swept(pairs(two, both)), caplog)
    assert said == "2 reused, 2 to compute"
    assert table.set_index("solver")["given"].to_dict() == both
    changed = pairs(two, {**both, "dp_sgd": 3.0})
    assert made(swept(changed), caplog)[0] == "2 reused, 2 to compute"
    assert (
        made(swept(changed, dp_cd="2"), caplog)[0] == "2 reused, 2 to compute"
    )


def test_arrays_that_changed_are_noticed_by_points_that_stand_apart(
    swept, monkeypatch
):
    config = swept(pairs(["diabetes"], {"dp_cd": 1.0}, prepared=["red_wine"]))
    read = type("Read", (), {"meta": {"digest": "1"}})
    monkeypatch.setattr(stages.data, "load_prepared", lambda *_: read)
    ((_, _, before),) = SweepRun(config, "powers").tasks()
    assert SweepRun(config, "powers").tasks()[0][2] == before
    read.meta = {"digest": "2"}
    assert SweepRun(config, "powers").tasks()[0][2] != before


# --- workers --------------------------------------------------------------------------


def worker_of(place):
    """The process that a place was computed in; place 9 fails, 8 is killed."""
    if place == 9:
        raise ValueError("nine")
    if place == 8:
        os.kill(os.getpid(), signal.SIGKILL)
    return place, os.getpid()


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_workers_share_the_items_and_end(workers):
    with forked(worker_of, range(6), workers) as results:
        found = dict(results)
    assert sorted(found) == [*range(6)]
    others = {*found.values()} - {os.getpid()}
    assert bool(others) == (workers > 1) and len(others) <= workers
    assert not any(psutil.pid_exists(process) for process in others)


def test_what_a_worker_computes_needs_no_pickle():
    with forked(lambda place: place + 1, [1, 2], 2) as results:
        assert sorted(results) == [2, 3]


def test_a_failure_of_a_worker_is_raised_here():
    with (
        pytest.raises(ValueError, match="nine"),
        forked(worker_of, [9, 1], 2) as some,
    ):
        list(some)


def test_a_worker_that_the_system_ended_is_no_endless_wait():
    with (
        pytest.raises(BrokenProcessPool),
        forked(worker_of, [8, 1], 2) as results,
    ):
        list(results)


def test_workers_end_with_the_process_that_forked_them(tmp_path):
    code = (
        "import os, threading, time\nfrom dperm.numerics.parallel import forked\n"
        "os.dup2(os.open(os.devnull, os.O_WRONLY), 1)\nos.dup2(1, 2)\n"
        "def call(place):\n"
        "  open(str(os.getpid()), 'w').close()\n  time.sleep(600)\n"
        "threading.Timer(2.0, os.kill, (os.getpid(), 9)).start()\n"
        "with forked(call, [1, 2], 2) as results: list(results)"
    )
    assert python("-c", code, cwd=tmp_path).returncode == -signal.SIGKILL
    workers = [int(path.name) for path in tmp_path.iterdir()]
    deadline = time.monotonic() + 10
    while any(map(psutil.pid_exists, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [worker for worker in workers if psutil.pid_exists(worker)]
    for worker in left:
        os.kill(worker, signal.SIGKILL)
    assert len(workers) == 2 and not left
