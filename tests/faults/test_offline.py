"""A run from a mirror, with the network blocked and every attempt to use it noted."""

import numpy as np
import pytest

from faults.tiny import PAPER, Project

# Python imports it at start-up: no process of the run escapes it. One socket is let
# pass: urllib3, which Snakemake imports, tries whether IPv6 exists and sends nothing.
GUARD = """
import sys

def refuse(event, arguments):
    inet = event == "socket.__new__" and arguments[1] in (2, 10)
    if inet and sys._getframe(1).f_back.f_code.co_name == "_has_ipv6":
        return
    if inet or event in ("socket.getaddrinfo", "socket.gethostbyname"):
        with open({log!r}, "a") as handle:
            handle.write(f"{{event}} {{arguments[1:]}} {{sys.argv}}\\n")
        raise OSError("the network is blocked")

sys.addaudithook(refuse)
"""


FAR = {
    "name": "far", "title": "Far away", "loss": "least_squares",
    "dataset": {"name": "far", "sources": [
                    {"origin": "mirror", "files": ["far.csv"]},
                    {"origin": "http", "urls": ["http://127.0.0.1:9/far.csv"]}],
                "reader": {"format": "csv"}},
    "preparation": {"standardize": True}, "penalty": {"l2": 0.1},
}  # fmt: skip


def blocked(project: Project):
    """Block the network for all that the project runs; returns the log of attempts."""
    folder, log = project.folder / "guard", project.folder / "attempts"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(GUARD.format(log=str(log)))
    path = project.environment.get("PYTHONPATH")
    project.environment["PYTHONPATH"] = (
        f"{folder}:{path}" if path else str(folder)
    )
    return log


def test_the_guard_sees_an_attempt(project):
    log = blocked(project)
    project.add("problem/far", FAR)
    done = project.run("fetch", "problem=far", "data.retries=0")
    assert done.returncode == 1 and "no source serves it: " in done.stdout
    assert "socket" in log.read_text()


@pytest.fixture
def away(project):
    """A project with nothing but a mirror of its data, on the web for all others."""
    rows = np.random.default_rng(3).standard_normal((80, 4)).tolist()
    text = "\n".join(["a,b,c,y", *(",".join(map(repr, row)) for row in rows)])
    (project.folder / "mirror").mkdir()
    (project.folder / "mirror/far.csv").write_text(text)
    project.add("problem/far", FAR)
    project.add(
        "paper/tiny/paper",
        {**PAPER, "problems": ["far"], "small_problems": ["far"]},
    )
    project.environment["DPERM_MIRROR"] = str(project.folder / "mirror")
    return project


RUN = pytest.param(["snakemake"], marks=pytest.mark.long, id="a run")


@pytest.mark.parametrize("words", [["fetch", "problem=far"], RUN])
def test_with_a_mirror_no_socket_is_opened(away, words):
    log = blocked(away)
    done = away.run(*words)
    assert done.returncode == 0, done.stdout
    assert (away.folder / "data/fetched/far/arrays.npz").exists()
    drawn = (away.folder / "figures/tiny/curves.png").exists()
    assert drawn == (words == ["snakemake"])
    assert not log.exists()
