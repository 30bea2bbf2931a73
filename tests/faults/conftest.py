"""A small project, and the same one run in peace."""

import shutil
import subprocess
from pathlib import Path

import pytest

from commands import in_turn
from faults.tiny import PAPER, Project


@pytest.fixture
def project(tmp_path):
    """A project without results."""
    return Project(tmp_path)


def run_stages(project, *stages):
    """Run stages one after the other in one process."""
    words = [[*stage, "problem=diabetes"] for stage in stages]
    done = in_turn(*words, cwd=project.folder, env=project.environment)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def solved_problem(tmp_path_factory):
    """The folder of the data and of the optimum."""
    project = Project(tmp_path_factory.mktemp("solved_problem"))
    run_stages(project, ["fetch"], ["prepare"], ["optimum"])
    return project.folder / "data"


@pytest.fixture(scope="session")
def undisturbed(solved_problem, tmp_path_factory):
    """The same project, all of whose stages have run in peace."""
    project = Project(tmp_path_factory.mktemp("undisturbed"))
    shutil.copytree(solved_problem, project.folder / "data")
    solves = [["solve", f"solver={name}"] for name in PAPER["runs"]]
    run_stages(project, *solves, ["figure"], ["table"])
    return project


@pytest.fixture
def prepared(project, solved_problem):
    """A project with data and optimum ready, without results."""
    shutil.copytree(solved_problem, project.folder / "data")
    return project


@pytest.fixture
def mounted(tmp_path):
    """Mount small file systems; skipped where that is not allowed."""
    folder = tmp_path / "mounted"
    folder.mkdir()

    def mount(options: str) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(
                f"no file system can be mounted here: {done.stderr.strip()}"
            )
        return folder

    yield mount
    if folder.is_mount():
        subprocess.run(["umount", str(folder)], check=True)
