"""A run shows its finished jobs, what is running, and every failure."""

import logging
from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from dperm.pipeline import progress, workflow

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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("first\nresults/dp_cd, 20 of 50 lanes in 00:01\r", "20 of 50 lanes in 00:01"),
        ("they are taken: of a time before\n", "they are taken: of a time before"),
    ],
)
def test_a_running_job_shows_the_last_line_of_its_log(handler, tmp_path, text, shown):
    log = tmp_path / "log"
    start(handler, log)
    (job,) = handler.running.values()
    assert progress.state(*job) == "solve dpcd diabetes dp_cd"
    log.write_text(text)
    assert progress.state(*job) == f"solve dpcd diabetes dp_cd ({shown})"


def test_a_failure_shows_the_log_of_its_job(handler, tmp_path, capsys):
    log = tmp_path / "log"
    log.write_text("ValueError: the cause\n")
    start(handler, log)
    fields = {"rule_name": "solve", "rule_msg": None, "jobid": 3, "log": [str(log)]}
    empty = dict.fromkeys(("input", "output", "conda_env", "container_img"))
    send(handler, LogEvent.JOB_ERROR, logging.ERROR, aux={}, indent=False,
         shellcmd="dperm solve", **fields, **empty)  # fmt: skip
    assert "ValueError: the cause" in capsys.readouterr().err
    assert not handler.running


def test_warnings_are_shown_and_snakemakes_own_remarks_are_not(handler, capsys):
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
    said = workflow.answers(["snakemake", "dpcd", "-j", "2"], "results/", ["dpcd"])
    assert said == "dpcd: figures in figures/dpcd"
    picture = "figures/dpcd/figure1.png"
    assert workflow.answers(["snakemake", picture], "results/", ["dpcd"]) == picture
