"""The plan has the Snakefile's jobs and places them as Snakemake would."""

import re
import subprocess
import sys

import pandas as pd
import pytest

from dperm.locate import available
from dperm.pipeline import costs, forecast
from dperm.pipeline.costs import ALONE, GOAL, START, Cost, Costs
from dperm.pipeline.forecast import BEGIN, OVERHEAD, Job
from dperm.pipeline.jobs import PaperTable, RunTable
from dperm.pipeline.runtable import run_table

TSV = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time"


def benchmark(folder, name, seconds, load, rss=300.0):
    path = folder / f"{name}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{TSV}\n{seconds}\t0\t{rss}\t0\t0\t0\t0\t0\t{load}\t0.0\n")


@pytest.fixture
def table():
    """A paper with a timed sweep and another."""
    keys = ("problems", "runs", "figures", "tables", "sweeps", "problems_of",
            "sweeps_of", "prepared", "tuned")  # fmt: skip
    paper = PaperTable(**{key: {} for key in keys}, alone=["clock"])
    return RunTable("", {"one": paper}, work={"one/sweeps/long": 100.0})


# --- what jobs cost -------------------------------------------------------------------


def test_benchmarks_of_now_and_of_earlier_layouts(tmp_path):
    benchmark(tmp_path, "solve/p/a/s", 10.0, 50.0)
    benchmark(tmp_path, "tune/p/a/s/tune", 900.0, 100.0)  # of before: not counted
    benchmark(tmp_path, "tune/p/b/s/tune", 20.0, 150.0, 200.0)
    benchmark(tmp_path, "evaluate/p/b/s/evaluate", 4.0, 100.0, 400.0)
    benchmark(tmp_path, "sweep/p/sweeps/r", 100.0, 190.0)
    benchmark(tmp_path, "prepare/c", "NA", "NA")
    found = costs.recorded(tmp_path)
    assert found == {
        "solve/p/a/s": Cost(5.0, 0.0, 300.0, True),
        "solve/p/b/s": Cost(34.0, 0.0, 400.0, True),
        "sweep/p/r": Cost(190.0, 0.0, 300.0, True),
    }


def test_threads_follow_what_a_job_cost(table):
    known = {"sweep/one/long": Cost(3.5 * GOAL), "solve/one/a/s": Cost(GOAL / 2),
             "sweep/one/clock": Cost(1.0), "sweep/one/huge": Cost(1e6)}  # fmt: skip
    found = Costs(table, known)
    assert found.threads("sweep/one/long") == 4
    assert found.threads("solve/one/a/s") == 1
    assert found.threads("sweep/one/huge") == costs.MOST
    for job in ("sweep/one/clock", "timing/one"):
        assert found.threads(job) == ALONE
    assert found.threads("draw/one/figures/f") == 1
    assert [found.workers("sweep/one/long", 3), found.workers("timing/one", 32),
            found.workers("sweep/one/clock", 2), found.workers("sweep/one/clock", 32)
            ] == [3, 1, 1, 4]  # fmt: skip


def test_what_is_not_recorded_is_estimated(table):
    known = Costs(table, {})
    assert known.of("sweep/one/long").cpu == START + 100 * costs.PER_TASK
    assert not known.of("sweep/one/long").is_recorded
    assert known.of("report").cpu == costs.FIXED["report"]


@pytest.mark.parametrize("text", ["", "job\nx\n", "job,cpu_seconds,longest_seconds\n"
                                  "a,b,c\n", "\0"])  # fmt: skip
def test_damaged_costs_are_none(tmp_path, text):
    (tmp_path / "costs.csv").write_text(text)
    assert costs.kept(tmp_path / "costs.csv") == {}


# --- placing --------------------------------------------------------------------------


def placed(table, cores, **jobs):
    """Jobs given as (cpu, threads, after)."""
    made = {
        f"draw/one/{name}": Job(
            f"draw/one/{name}", tuple(f"draw/one/{each}" for each in after),
            Cost(START + cpu, 0.0, 100.0), threads,
        )
        for name, (cpu, threads, after) in jobs.items()
    }  # fmt: skip
    return forecast.plan(made, Costs(table, {}), cores)


def test_jobs_side_by_side_and_one_after_the_other(table):
    each = START + OVERHEAD + 10
    four = dict.fromkeys("abcd", (10.0, 1, ()))
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
    job = Job("sweep/one/long", (), Cost(START + 90.0, 0.0), 2, 2)
    assert job.wall == pytest.approx(START + 50.0 + OVERHEAD)
    whole = job._replace(cost=Cost(START + 90.0, 80.0))
    assert whole.wall == pytest.approx(START + 80.0 + OVERHEAD)


# --- the Snakefile's ------------------------------------------------------------------


def test_its_jobs_are_the_snakefile_s(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-m", "dperm", "-n", "-q", "rules", "--config",
               "scale=smoke", "--", "all"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    listed = dict(re.findall(r"^(\w+) +(\d+)$", done.stdout, re.MULTILINE))
    rules = {name: int(count) for name, count in listed.items()}
    table = run_table(available("paper"), ["scale=smoke"])
    jobs = forecast.graph(table, Costs(table, {}))
    stages = pd.Series([job.stage for job in jobs.values()]).value_counts()
    draws = [count for name, count in rules.items() if name.startswith("draw_")]
    assert stages["draw"] == sum(draws)
    for stage in set(stages.index) - {"draw"}:
        assert stages[stage] == rules[stage]
    assert len(jobs) == rules["total"] - 1  # "all" itself
    every = set(jobs)
    assert all(every.issuperset(job.after) for job in jobs.values())


def test_the_command_writes_plans_and_costs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    benchmark(tmp_path / "logs/smoke", "solve/dpcd/diabetes/dp_cd", 1000.0, 100.0)
    arguments = ["dperm plan", "--scale", "smoke", "-j", "4"]
    monkeypatch.setattr(sys, "argv", arguments)
    forecast.main()
    said = capsys.readouterr().out
    assert "1 recorded" in said and "solve/dpcd/diabetes/dp_cd" in said
    plans = pd.read_csv(tmp_path / "results/smoke/plan.csv")
    assert plans["cores"].tolist() == list(forecast.CORES)
    assert plans.columns.tolist() == [
        "cores", "wall_seconds", "critical_path_seconds", "idle_share", "peak_mb",
    ]  # fmt: skip
    assert plans["wall_seconds"].is_monotonic_decreasing
    kept = costs.kept(tmp_path / "results/smoke/costs.csv")
    assert kept["solve/dpcd/diabetes/dp_cd"].cpu == 1000.0
