"""A small project, and the same one run in peace."""

import pytest

from faults.tiny import Project


@pytest.fixture
def project(tmp_path):
    """A project without results."""
    return Project(tmp_path)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The same project, run to its end in peace."""
    project = Project(tmp_path_factory.mktemp("undisturbed"))
    done = project.run("snakemake")
    assert done.returncode == 0, done.stdout
    return project
