"""A small project, the same one run in peace, and the tables of `make faults`."""

import csv
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tabulate import tabulate

from commands import in_turn
from faults.tiny import PAPER, Project

TABLE = os.environ.get("FAULT_TABLE")  # set by `make faults`
FOUND: list[tuple] = []
LOGS: list[str] = []


@pytest.fixture
def project(tmp_path):
    """A project without results."""
    return Project(tmp_path)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The same project, all of whose stages have run in peace."""
    project = Project(tmp_path_factory.mktemp("undisturbed"))
    solves = [["solve", f"solver={name}"] for name in PAPER["runs"]]
    stages = ("fetch", "prepare", "optimum"), ("figure", "table")
    first, last = ([[stage] for stage in part] for part in stages)
    words = [[*one, "problem=diabetes"] for one in (*first, *solves, *last)]
    done = in_turn(*words, cwd=project.folder, env=project.environment)
    assert done.returncode == 0, done.stderr
    return project


@pytest.fixture
def prepared(project, undisturbed):
    """A project with data and optimum ready, without results."""
    shutil.copytree(undisturbed.folder / "data", project.folder / "data")
    return project


@pytest.fixture
def mounted(tmp_path):
    """Mount small file systems; skipped where that is not allowed."""
    folder = tmp_path / "mounted"
    folder.mkdir()

    def mount(options: str) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
        return folder

    yield mount
    if folder.is_mount():
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def tally(request, record_property):
    """Say how often a fault was made, what was said of it, and a log to keep."""

    def note(times: int, said: str = "", log: str = "") -> None:
        record_property("times", times)
        record_property("said", impersonal(said.strip().replace("|", "/")))
        LOGS.extend([log] if log else [])

    spec = getattr(request.node, "callspec", None)
    words = f"{request.function.__doc__} {spec.id if spec else ''}"
    request.node.fault = " ".join(words.split())
    return note


def impersonal(said: str) -> str:
    """Without the folder, the machine and the numbers of processes and ports."""
    said = re.sub(r"/\S*/pytest-\d+/[^/ ]+", ".", said)
    said = said.replace(platform.node(), "this machine")
    return re.sub(r"(process |127\.0\.0\.1:)\d+", r"\1...", said)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Note the outcome of every test that made a fault."""
    report = yield
    if hasattr(item, "fault") and (report.when == "call" or report.skipped):
        known = dict(item.user_properties)
        said = known.get("said", "") if report.passed else str(report.longrepr)[-200:]
        row = (item.fault, known.get("times", 0), report.outcome, said)
        FOUND.append(row)
    return report


def pytest_sessionfinish(session):
    """Write the tables that ``make faults`` asks for."""
    if not TABLE or not FOUND:
        return
    total = sum(row[1] for row in FOUND if row[2] == "passed")
    words = "after each the run was completed, with the rows of an undisturbed one"
    head = ("fault", "times", "outcome", "said")
    rows = [(*row[:3], " ".join(row[3].split())[:160]) for row in FOUND]
    table = tabulate(rows, headers=head, tablefmt="pipe", disable_numparse=True)
    text = [f"{total} faults were made; {words}.", table, *LOGS]
    Path(TABLE).write_text("\n\n".join(text) + "\n")
    with open(Path(TABLE).with_suffix(".csv"), "w", newline="") as handle:
        csv.writer(handle, lineterminator="\n").writerows([head, *rows])
