"""The plan has the Snakefile's jobs, knows their costs and places them as it would."""

import json
import re
import resource
import shutil
import subprocess
import sys

import pandas as pd
import pytest

from dperm import cli
from dperm.core.experiment.locate import available
from dperm.data.fetching import FetchRecord
from dperm.pipeline import forecast
from dperm.pipeline.forecast import (
    ALONE,
    BEGIN,
    GOAL,
    OVERHEAD,
    START,
    Cost,
    Costs,
    Task,
)
from dperm.pipeline.graph import STAGES, Graph, load_graph

TSV = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time"


def logged(folder, name, seconds, rss=300.0):
    """The log of a job, and Snakemake's benchmark, whose own CPU time is not right."""
    path = folder / f"{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"sweep r: 3 of 4\ncost: {seconds:.2f} CPU seconds\nwarning\n")
    row = f"9.0\t0\t{rss}\t0\t0\t0\t0\t0\t50.0\t15.0"
    path.with_suffix(".tsv").write_text(f"{TSV}\n{row}\n")


@pytest.fixture
def table():
    """A paper with a timed sweep and others, a run, and the data of its problem."""
    graph = Graph("", ["one"], dataset_of={"a": "wines"})
    graph.add("prepare", "a")
    graph.add("solve", "one", "a", "s", work=5e5)
    graph.add("sweep", "one", "long", work=100.0)
    graph.add("sweep", "one", "huge", work=1.0)
    graph.add("sweep", "one", "clock", alone=True)
    graph.add("timing", "one", alone=True)
    graph.add_drawing("one", "figures/f", [])
    graph.add("report")
    for name in "abcz":
        graph.add_drawing("one", f"tables/{name}", [name])
    return graph


# --- what jobs cost -------------------------------------------------------------------


def test_costs_are_those_that_jobs_end_their_logs_with(tmp_path):
    logged(tmp_path, "solve/p/a/s", 29.5)
    logged(tmp_path, "sweep/p/r", 190.0, "NA")  # too short a job to be sampled
    (tmp_path / "sweep/p/failed.log").write_text("ValueError: no\n")
    (tmp_path / "sweep/p/new.log").write_text(
        "sweep new: 0 reused, 1159 to compute\ncost: 5000.00 CPU seconds\n"
    )
    for name, kept in (("again", "1150 reused, 9 to"), ("tune", "7 lanes reused, 0")):
        (tmp_path / f"sweep/p/{name}.log").write_text(
            f"sweep: {kept} compute\ncost: 1.00 CPU seconds\n"
        )
    assert forecast.recorded(tmp_path) == {
        "solve/p/a/s": Cost(29.5, 0.0, 300.0, True),
        "sweep/p/r": Cost(190.0, 0.0, forecast.RESIDENT, True),
        "sweep/p/new": Cost(5000.0, 0.0, forecast.RESIDENT, True),
    }


BURNS = """
import sys, time
from joblib import Parallel, delayed
from dperm import cli

def burn():
    until = time.process_time() + 0.6
    while time.process_time() < until:
        pass

def stage(command, words):
    Parallel(2)(delayed(burn)() for _ in range(3))

cli.run_stage = stage
sys.argv = ["dperm", "claims"]
cli.main()
"""


def test_a_stage_notes_its_own_time_and_its_workers(tmp_path):
    (tmp_path / "burns.py").write_text(BURNS)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(
        [sys.executable, str(tmp_path / "burns.py")],
        capture_output=True,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    [noted] = map(float, forecast.SPENT.findall(ran.stderr))
    taken = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    assert noted >= 1.8
    assert noted == pytest.approx(taken, rel=0.1, abs=0.3)


def test_a_stage_that_fails_notes_nothing():
    ran = subprocess.run(
        [sys.executable, "-m", "dperm", "claims", "paper=nothing"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1 and "nothing" in ran.stderr
    assert not forecast.SPENT.search(ran.stderr)


def test_threads_follow_what_a_job_cost(table):
    known = {
        "sweep/one/long": Cost(3.5 * GOAL),
        "solve/one/a/s": Cost(GOAL / 2),
        "sweep/one/clock": Cost(1.0),
        "sweep/one/huge": Cost(1e6),
    }
    found = Costs(table, known)
    assert found.threads("sweep/one/long") == 4
    assert found.threads("solve/one/a/s") == 1
    assert found.threads("sweep/one/huge") == forecast.MOST
    for job in ("sweep/one/clock", "timing/one"):
        assert found.threads(job) == ALONE
    assert found.threads("draw/one/figures/f") == 1
    assert [
        found.workers("sweep/one/long", 3),
        found.workers("timing/one", 32),
        found.workers("sweep/one/clock", 2),
        found.workers("sweep/one/clock", 32),
    ] == [3, 1, 1, 4]


def test_what_is_not_recorded_is_estimated(table):
    known = Costs(table, {"sweep/one/huge": Cost(90.0), "sweep/two/x": Cost(30.0)})
    assert known.of("sweep/one/long") == Cost(60.0)  # the mean of the other sweeps
    assert known.of("report").cpu == STAGES["report"].seconds
    assert Costs(table, {}).of("sweep/one/long").cpu == STAGES["sweep"].seconds
    small = Costs(Graph("smoke", jobs=table.jobs), {})
    assert small.of("sweep/one/long").cpu == forecast.SMALL


def test_a_solver_s_time_follows_its_passes_and_the_entries(table, monkeypatch):
    monkeypatch.setattr(Costs, "_size", lambda *_: (100, 20, 2000))
    found = Costs(table, {"solve/one/b/s": Cost(1e6)}).of("solve/one/a/s")
    assert found.cpu == pytest.approx(START + forecast.PER_ROOT * (5e5 * 2000) ** 0.5)
    assert found.peak == pytest.approx(
        forecast.RESIDENT + forecast.COPIES * 8 * 2000 / 1e6
    )


@pytest.mark.parametrize(
    "text", ["", "job\nx\n", "job,cpu_seconds,longest_seconds\na,b,c\n", "\0"]
)
def test_damaged_costs_are_none(tmp_path, text):
    (tmp_path / "costs.csv").write_text(text)
    assert forecast.read_costs(tmp_path / "costs.csv") == {}


# --- what a job asks of a cluster -----------------------------------------------------


@pytest.fixture
def sized(table, tmp_path, monkeypatch):
    """Costs, and a way to say how large the data set is."""
    monkeypatch.chdir(tmp_path)

    def put(n, p, nnz):
        folder = tmp_path / "data" / "fetched" / "wines"
        folder.mkdir(parents=True, exist_ok=True)
        record = FetchRecord("wines", "ok", "", n=n, p=p, nnz=nnz)
        (folder / "fetch.json").write_text(json.dumps(vars(record)))

    return Costs(table, {}), put


def test_the_least_while_nothing_is_known(sized):
    costs, _ = sized
    assert costs.megabytes("solve/one/a/s") == forecast.BASE
    assert costs.minutes("solve/one/a/s") == forecast.MINUTES


def test_memory_and_time_grow_with_the_problem_and_the_attempt(sized):
    costs, put = sized

    def asked(job, *attempt):
        return costs.megabytes(job, *attempt), costs.minutes(job, *attempt)

    put(45312, 8, 362496)
    assert asked("solve/one/a/s") == (1017, 22)
    put(453120, 80, 36249600)
    large = (1000 + 1739, 10 + 1208)
    assert asked("solve/one/a/s") == asked("solve/one/a/s", 1) == large
    assert asked("solve/one/a/s", 2) == tuple(2 * value for value in large)
    assert costs.minutes("prepare/a") < large[1]
    several = (forecast.SWEEP_MEMORY, forecast.SWEEP_MINUTES)
    assert asked("sweep/one/long") == asked("timing/one") == several
    assert asked("timing/one", 2) == tuple(2 * value for value in several)


# --- placing --------------------------------------------------------------------------


def placed(table, cores, **jobs):
    """Jobs given as (cpu, threads, after)."""
    name = "draw/one/tables/{}".format
    made = {
        name(key): Task(
            name(key), tuple(map(name, after)), Cost(START + cpu, 0.0, 100.0), threads
        )
        for key, (cpu, threads, after) in jobs.items()
    }
    return forecast.plan(made, Costs(table, {}), cores)


def test_jobs_side_by_side_and_one_after_the_other(table):
    each = START + OVERHEAD + 10
    four = dict.fromkeys("abcz", (10.0, 1, ()))
    assert placed(table, 1, **four).wall == pytest.approx(BEGIN + 4 * each)
    two = placed(table, 2, **four)
    assert two.wall == pytest.approx(BEGIN + 2 * each)
    assert two.critical == pytest.approx(BEGIN + each)
    assert two.idle == pytest.approx(1 - 4 * (START + 10) / (2 * two.wall))
    assert two.peak == 2 * 100 + forecast.SNAKEMAKE
    chain = placed(table, 8, a=(10.0, 1, ()), b=(10.0, 1, "a"), c=(1.0, 1, ()))
    assert chain.wall == chain.critical == pytest.approx(BEGIN + 2 * each)
    assert [job.name[-1] for job in chain.path] == ["a", "b"]


def test_what_asks_for_all_cores_waits_for_them(table):
    many = dict.fromkeys("abc", (10.0, 1, ()))
    found = placed(table, 2, **many, z=(10.0, ALONE, ()))
    each = START + OVERHEAD + 10
    assert found.wall > BEGIN + 2 * each + START + 5


def test_threads_shorten_what_divides_and_no_longest_part():
    job = Task("sweep/one/long", (), Cost(START + 90.0, 0.0), 2, 2)
    assert job.wall == pytest.approx(START + 50.0 + OVERHEAD)
    whole = job._replace(cost=Cost(START + 90.0, 80.0))
    assert whole.wall == pytest.approx(START + 80.0 + OVERHEAD)


# --- the Snakefile's ------------------------------------------------------------------


def test_its_jobs_are_the_snakefile_s(whole):
    command = [
        sys.executable,
        "-m",
        "dperm",
        "-n",
        "-q",
        "rules",
        "--config",
        "scale=smoke",
        "--",
        "all",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    listed = dict(re.findall(r"^(\w+) +(\d+)$", done.stdout, re.MULTILINE))
    rules = {name: int(count) for name, count in listed.items()}
    jobs = forecast.tasks(whole, Costs(whole, {}))
    stages = pd.Series([job.stage for job in jobs.values()]).value_counts()
    draws = [count for name, count in rules.items() if name.startswith("draw_")]
    assert stages["draw"] == sum(draws)
    for stage in set(stages.index) - {"draw"}:
        assert stages[stage] == rules[stage]
    assert len(jobs) == rules["total"] - 1  # "all" itself
    every = set(jobs)
    assert all(every.issuperset(job.after) for job in jobs.values())


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder in which the graph of all papers is kept, and the graph."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return folder, load_graph(available("paper"), ["scale=smoke"])


@pytest.fixture
def whole(kept, tmp_path, monkeypatch):
    """The graph of all papers; it is kept in the folder that is worked in."""
    shutil.copytree(kept[0] / ".snakemake", tmp_path / ".snakemake")
    monkeypatch.chdir(tmp_path)
    return kept[1]


def planned(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["dperm", "plan", "--scale", "smoke", *words])
    cli.main()
    return capsys.readouterr().out


def test_the_command_writes_plans_and_costs_if_it_is_to(
    whole, tmp_path, monkeypatch, capsys
):
    logged(tmp_path / "logs/smoke", "solve/dpcd/diabetes/dp_cd", 1000.0)
    said = planned(monkeypatch, capsys, "-j", "4")
    assert "1 recorded" in said and "solve/dpcd/diabetes/dp_cd" in said
    assert not (tmp_path / "results").exists()
    assert planned(monkeypatch, capsys, "-j", "4", "--write") == said
    plans = pd.read_csv(tmp_path / "results/smoke/plan.csv")
    assert plans["cores"].tolist() == list(forecast.CORES)
    assert plans.columns.tolist() == [
        "cores",
        "wall_seconds",
        "critical_path_seconds",
        "idle_share",
        "peak_mb",
    ]
    assert plans["wall_seconds"].is_monotonic_decreasing
    kept = forecast.read_costs(tmp_path / "results/smoke/costs.csv")
    assert kept["solve/dpcd/diabetes/dp_cd"].cpu == 1000.0


def test_the_plan_of_a_figure_has_the_jobs_behind_it(whole, monkeypatch, capsys):
    figure = "figures/smoke/dpcd/figure1.png"
    needed = set(whole.ancestors([figure]))
    behind = {name for name, job in whole.jobs.items() if needed & set(job.outputs)}
    assert any(name.startswith("solve/dpcd") for name in behind)
    said = planned(monkeypatch, capsys, figure)
    assert "results/smoke/costs.csv" in said.splitlines()[0]
    work = said.partition("most work:")[2]
    assert set(re.findall(r"CPU s  (\S+)", work)) == behind
    assert planned(monkeypatch, capsys, f"./{figure}") == said


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["figures/smoke/dpcd/figure11.png"], "a run makes (did you mean figures/"),
        (["nothing"], "dpcd"),
        (["dpcd", "--write"], "expected no papers or files"),
    ],
)
def test_what_cannot_be_planned_is_refused(
    whole, tmp_path, monkeypatch, capsys, words, error
):
    with pytest.raises(SystemExit) as refused:
        planned(monkeypatch, capsys, *words)
    assert error in str(refused.value)
    assert not (tmp_path / "results").exists()
