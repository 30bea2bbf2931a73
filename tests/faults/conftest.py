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
