"""What a run shows, says at its end and leaves: progress, completion, manifest."""

import json
import logging
import os
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from dperm.experiments import stages
from dperm.storage import files as store
from dperm.workflow import manifest, progress, verify, workflow
from dperm.workflow.jobs import Job, Jobs

SETTINGS = SimpleNamespace(show_failed_logs=True)


@pytest.fixture
def handler():
    made = progress.LogHandler(SETTINGS, None)
    yield made
    made.close()


def send(handler, event=None, level=logging.INFO, message="", **fields):
    record = logging.LogRecord("snakemake", level, "", 0, message, (), None)
    vars(record).update(fields, **({"event": event} if event else {}))
    handler.emit(record)


def start(handler, log):
    fields = {"jobid": 3, "rule_name": "solve", "log": [str(log)]}
    names = {"paper": "dpcd", "problem": "diabetes", "solver": "dp_cd"}
    send(handler, LogEvent.JOB_INFO, wildcards=names, **fields)


def test_forty_jobs_are_ten_lines(handler, tmp_path, capsys):
    for done in range(1, 41):
        start(handler, tmp_path / "log")
        send(handler, LogEvent.JOB_FINISHED, job_id=3)
        send(handler, LogEvent.PROGRESS, done=done, total=40)
    lines = capsys.readouterr().err.splitlines()
    name = "solve dpcd diabetes dp_cd"
    assert lines == [f"[{done}/40] {name}" for done in range(4, 41, 4)]
    assert not handler.running


def test_what_will_be_made_is_said_before_it_starts(
    handler, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    drawings = {"draw_dpcd_figures_a": 1, "draw_dpcd_tables_b": 1}
    counts = {"fetch": 48, "solve": 92, **drawings, "total": 142}
    send(handler, LogEvent.RUN_INFO, stats=counts)
    Path("results").mkdir()
    spent = {"cpu_seconds": {"dpcd": 551.0, "arena": 852.5}}
    Path("results/manifest.json").write_text(json.dumps(spent))
    send(handler, LogEvent.RUN_INFO, stats={"claims": 1, "total": 1})
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "142 jobs to run: 48 fetch, 92 solve, 2 draw",
        "1 job to run: 1 claims (all papers took 1,404 CPU s)",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "first\nresults/dp_cd, 20 of 50 settings in 00:01\r",
            "20 of 50 settings in 00:01",
        ),
        (
            "they are taken: of a time before\n",
            "they are taken: of a time before",
        ),
    ],
)
def test_a_running_job_shows_the_last_line_of_its_log(
    handler, tmp_path, text, shown
):
    log = tmp_path / "log"
    start(handler, log)
    (job,) = handler.running.values()
    assert progress.state(*job) == "solve dpcd diabetes dp_cd"
    log.write_text(text)
    assert progress.state(*job) == f"solve dpcd diabetes dp_cd ({shown})"


def fail(handler, log, message=None, is_of_group=False):
    """Send what Snakemake says of a job that failed."""
    empty = dict.fromkeys(("input", "output", "conda_env", "container_img"))
    send(handler, LogEvent.JOB_ERROR, logging.ERROR, rule_name="solve", jobid=3,
         rule_msg=message, log=[str(log)], aux={}, indent=is_of_group,
         shellcmd="dperm solve", **empty)  # fmt: skip


def test_a_failure_tells_what_the_cluster_says(handler, tmp_path, capsys):
    log = tmp_path / "log"
    log.write_text("two of 3 settings\n")
    start(handler, log)
    fail(handler, log, "SLURM status is OUT_OF_MEMORY")
    (line,) = capsys.readouterr().err.splitlines()
    assert "failed: SLURM status is OUT_OF_MEMORY: two of 3 settings" in line


def test_of_a_group_those_are_told_that_failed(handler, tmp_path, capsys):
    """Snakemake names all its jobs."""
    send(handler, LogEvent.GROUP_ERROR, logging.ERROR, groupid="draw",
         aux_logs=["slurm.log"], job_error_info=[])  # fmt: skip
    log = tmp_path / "log"
    for text in ("figures/a.png\n", "ValueError: the cause\n"):
        log.write_text(text)
        fail(handler, log, is_of_group=True)
    group, member = capsys.readouterr().err.splitlines()
    assert group == "group draw failed (all of it in slurm.log)"
    assert member.startswith("solve failed: ValueError: the cause (")


def test_a_failure_shows_the_log_of_its_job(handler, tmp_path, capsys):
    log = tmp_path / "log"
    log.write_text(
        "two of 3 settings\nIncompleteError: made all but\nmtp: gone\n"
    )
    start(handler, log)
    fail(handler, log)
    (line,) = capsys.readouterr().err.splitlines()
    name = "solve dpcd diabetes dp_cd"
    assert line.startswith(
        f"{name} failed: IncompleteError: made all but; mtp: gone ("
    )
    assert str(log) in line and not handler.running


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (137, "killed by signal 9 (SIGKILL): out of memory?"),
        (143, "killed by signal 15 (SIGTERM)"),
        (139, "killed by signal 11 (SIGSEGV)"),
    ],
)
def test_the_end_of_a_job_is_one_line(handler, capsys, status, words):
    text = """RuleException:
CalledProcessError in file "Snakefile", line 110:
Command 'set -euo pipefail; (python -m dperm solve) > log 2>&1' returned non-zero exit
"""
    text = text.rstrip() + f" status {status}.\n"
    send(handler, level=logging.ERROR, message=text)
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1


def test_a_failure_whose_log_says_why_is_told_once(handler, capsys):
    text = "Command 'dperm solve' returned non-zero exit status 1."
    send(handler, level=logging.ERROR, message=f"CalledProcessError: {text}")
    end = (
        "Exiting because a job execution failed. Look above for error messages"
    )
    send(handler, level=logging.ERROR, message=end)
    assert capsys.readouterr().err == ""


def test_a_run_that_is_terminated_says_so_in_one_line(
    handler, capsys, monkeypatch
):
    monkeypatch.setattr(progress, "silenced", threading.Event())
    remark = "Will exit after finishing currently running jobs (scheduler)."
    send(handler, message=remark)
    failed = "WorkflowError:\nAt least one job did not complete successfully."
    send(handler, level=logging.ERROR, message=failed)
    told = capsys.readouterr().err
    assert told.startswith("dperm: terminated") and told.count("\n") == 1


def test_warnings_are_shown_and_snakemakes_own_remarks_are_not(
    handler, capsys
):
    send(handler, level=logging.WARNING, message="careful")
    send(handler, message="Building DAG of jobs...")
    assert capsys.readouterr().err == "careful\n"


def test_a_run_ends_with_the_answer_or_the_file_that_was_asked_for(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for path in ("results/dpcd/complete.txt", "figures/dpcd/figure1.png"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("dpcd: figures in figures/dpcd\n")
    said = workflow.answers(
        ["snakemake", "dpcd", "-j", "2"], "results/", ["dpcd"]
    )
    assert said == "dpcd: figures in figures/dpcd"
    picture = "figures/dpcd/figure1.png"
    assert (
        workflow.answers(["snakemake", picture], "results/", ["dpcd"])
        == picture
    )


@pytest.mark.parametrize("target", ["audit", "results/audit/epsilon.csv"])
def test_a_run_of_the_audit_ends_with_who_was_caught(
    tmp_path, monkeypatch, target
):
    monkeypatch.chdir(tmp_path)
    folder = Path("results/audit/solvers")
    folder.mkdir(parents=True)
    (folder / "sound.csv").write_text("check,caught\nnoise,False\n")
    (folder / "open.csv").write_text("\n")  # states no privacy
    assert "CAUGHT" not in workflow.answers(
        ["snakemake", target], "results/", []
    )
    leaky = folder / "leaky.csv"
    leaky.write_text("check,caught\nnoise,True\ncount,False\n")
    line = workflow.answers(
        ["snakemake", target], "results/", []
    ).splitlines()[0]
    assert line == f"CAUGHT by 1 of 2 checks: {leaky}"
    assert "CAUGHT" not in workflow.answers(
        ["snakemake", "dpcd"], "results/", []
    )


# --- completion, and the manifest -----------------------------------------------------

ONLY = (  # one solver; no sweep and table of no problem
    "~paper.runs.dp_cd_priv",
    "~paper.runs.dp_sgd",
    "~paper.sweeps.lower_bound",
    "~paper.tables.lower_bound",
)


def test_the_best_setting_of_each_problem_is_named(configured):
    """And a problem that nothing needed is no obstacle, as in a paper of sweeps."""
    narrow = "paper.small_problems=[diabetes,breast_cancer_lasso]"
    runs = "paper.runs.dp_cd.problems=[diabetes]"
    config = configured("solver=dp_cd", *ONLY, narrow, runs)
    stages.solve(config)
    _, *said = verify.complete(config).read_text().splitlines()
    assert len(said) == 1
    assert (
        said[0].startswith("  diabetes: least relative error ")
        and "DP-CD" in said[0]
    )


def note_cost(job, wall, spent):
    """What a job leaves of its cost."""
    cost = {
        "wall_seconds": wall,
        "cpu_seconds": spent,
        "peak_mb": 1.0,
        "threads": 1,
    }
    store.write_json(Path("logs", f"{job}.json"), cost)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """What a full run of two papers left, and a function that writes its manifest."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(manifest.store, "commit", lambda: "first")
    for job, wall, spent in (
        ("solve/dpcd/diabetes/dp_cd", 30.0, 40.0), ("draw/dpcd/tables/a", 1.5, 0.0),
        ("solve/dpgcd/square/dp_cd", 500.0, 600.0), ("audit/solvers/dp_cd", 7.0, 6.0),
        ("smoke/solve/dpcd/diabetes/dp_cd", 9.0, 9.0),
    ):  # fmt: skip
        note_cost(job, wall, spent)
    for name in ("results/claims.csv", "results/dpcd/table2.csv",
                 "results/dpcd/diabetes/dp_cd/tune.parquet", "figures/dpcd/a.png",
                 "figures/dpcd/a.svg", "figures/smoke/dpcd/a.png"):  # fmt: skip
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("made\n")

    def written(*papers, began=0.0, is_whole=True):
        """The record after a run of these papers, or of all."""
        audit = {} if papers else {"audit/solvers/dp_cd": Job([], [], "")}
        names = papers or ("dpcd", "dpgcd")
        solves = {"dpcd": "diabetes", "dpgcd": "square"}
        jobs = {
            f"solve/{paper}/{solves[paper]}/dp_cd": Job([], [], "")
            for paper in names
        }
        path = manifest.write(
            Jobs("", [*names], jobs | audit), 2, began, is_whole
        )
        return json.loads(path.read_text())

    return written


TABLE = Path("results/dpcd/table2.csv")
RECORD = Path("results/manifest.json")


def test_the_manifest_has_the_seconds_and_the_files_that_git_holds(run):
    made = run()
    assert made["wall_seconds"] == {"dpcd": 31.5, "dpgcd": 500.0, "audit": 7.0}
    assert made["cpu_seconds"] == {"dpcd": 40.0, "dpgcd": 600.0, "audit": 6.0}
    assert made["jobs"]["solve/dpcd/diabetes/dp_cd"]["wall_seconds"] == 30.0
    assert len(made["jobs"]) == 4, "another scale's job is not of this run"
    assert made["cores"] == 2 and {"commit", "date", "machine"} <= set(made)
    held = [
        "figures/dpcd/a.png",
        "results/claims.csv",
        "results/dpcd/table2.csv",
    ]
    assert sorted(made["files"]) == held


@pytest.mark.parametrize(
    ("papers", "lost"),
    [
        pytest.param(["dpcd"], [], id="one paper"),
        pytest.param(
            [], ["solve/dpgcd"], id="all, of which some ran elsewhere"
        ),
        pytest.param([], ["audit"], id="all but the audit"),
        pytest.param(["dpcd"], ["solve/dpcd"], id="a single figure"),
    ],
)
def test_a_run_of_a_part_leaves_the_record_of_a_full_run(
    run, monkeypatch, papers, lost
):
    run()
    before = RECORD.read_bytes()
    monkeypatch.setattr(manifest.store, "commit", lambda: "second")
    for folder in lost:
        shutil.rmtree(Path("logs", folder))
    note_cost("draw/dpcd/tables/a", 9.0, 9.0)
    run(*papers, is_whole=not papers)
    assert RECORD.read_bytes() == before


def test_a_full_run_replaces_the_record(run, monkeypatch):
    run()
    monkeypatch.setattr(manifest.store, "commit", lambda: "second")
    note_cost("solve/dpcd/diabetes/dp_cd", 5.0, 5.0)
    again = run()
    assert again["commit"] == "second" and again["cpu_seconds"]["dpcd"] == 5.0
    os.utime(TABLE, (10**9, 10**9))
    monkeypatch.setattr(manifest.store, "commit", lambda: "third")
    assert run(began=1.5e9)["commit"] == "second, third", (
        "a table is of the run before"
    )


def test_a_stage_notes_the_files_that_it_makes_otherwise(run, monkeypatch):
    before = run()
    monkeypatch.setattr(manifest.store, "commit", lambda: "second")
    manifest.note(Path("results"), [TABLE])
    assert json.loads(RECORD.read_text()) == before, (
        "its content is as recorded"
    )
    for name in (TABLE, Path("results/claims.csv")):
        name.write_text("other\n")
    manifest.note(Path("results"), [TABLE, Path("README.md")])
    after = json.loads(RECORD.read_text())
    assert after["files"][str(TABLE)] != before["files"][str(TABLE)]
    assert [*after["later"]] == [str(TABLE)]
    assert after["later"][str(TABLE)].startswith("second of ")
    assert (
        after["files"]["results/claims.csv"]
        == before["files"]["results/claims.csv"]
    )
    assert {
        key: after[key] for key in before if key not in ("files", "later")
    } == {key: before[key] for key in before if key not in ("files", "later")}
    os.utime(TABLE, (10**9, 10**9))
    again = run(began=1.5e9)
    assert again["commit"] == "first, second" and again["later"] == {}
    assert again["files"] == after["files"], (
        "no run vouches for what was edited"
    )


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"files": 3}', '{"files": {}}']
)
def test_a_damaged_manifest_is_told_and_left(run, caplog, content):
    run()
    RECORD.write_text(content)
    Path(TABLE).write_text("other\n")
    manifest.note(Path("results"), [TABLE])
    manifest.write(Jobs("", [], {}), 2, 0.0, True)
    told = [line for line in caplog.messages if "is damaged" in line]
    assert len(told) == 2 and all("`git checkout` it" in line for line in told)
    assert RECORD.read_text() == content


def test_a_run_does_not_fail_on_a_manifest_that_cannot_be_written(
    tmp_path, monkeypatch, caplog
):
    """All has been computed by then."""
    monkeypatch.chdir(tmp_path)
    Path("results").write_text("a file")
    manifest.write(Jobs("", [], {}), 2, 0.0, True)
    assert "the manifest was left as it is: " in caplog.text
    assert "results" in caplog.text


@pytest.mark.parametrize(
    "content", ["", "garbled", "{}", '{"cpu_seconds": 5}', "\x00"]
)
def test_a_damaged_log_ends_no_run(run, content):
    before = run()
    Path("logs/solve/dpcd/diabetes/dp_cd.json").write_text(content)
    assert run()["cpu_seconds"] == before["cpu_seconds"]
