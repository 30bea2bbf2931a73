"""A run from a mirror, with the network blocked and every attempt to use it noted."""

import shutil
import subprocess

import numpy as np
import pytest

from data.conftest import Site
from faults.tiny import PAPER, Project, same_rows

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


def isolated() -> list[str]:
    """The prefix that takes the network from a process, where the system allows it."""
    for prefix in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        if not shutil.which("unshare"):
            break
        if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0:
            return prefix
    return []


def blocked(project: Project):
    """Block the network for all that the project runs; returns the log of attempts."""
    folder, log = project.folder / "guard", project.folder / "attempts"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(GUARD.format(log=str(log)))
    path = project.environment.get("PYTHONPATH")
    project.environment["PYTHONPATH"] = f"{folder}:{path}" if path else str(folder)
    return log


@pytest.fixture
def served(project):
    """The project with a data set that one web server has."""
    site = Site()
    rng = np.random.default_rng(3)
    lines = [",".join(map(repr, row)) for row in rng.standard_normal((80, 4)).tolist()]
    text = "a,b,c,y\n" + "\n".join(lines)
    url = site.put("/far.csv", site.good(text.encode()))
    (project.folder / "mirror").mkdir()
    (project.folder / "mirror/far.csv").write_text(text)
    project.add("problem/far", {
        "name": "far", "title": "Far away", "loss": "least_squares",
        "dataset": {"name": "far", "sources": [
                        {"kind": "mirror", "files": ["far.csv"]},
                        {"kind": "http", "urls": [url]}],
                    "reader": {"format": "csv"}},
        "preparation": {"standardize": True}, "penalty": {"l2": 0.1},
    })  # fmt: skip
    project.add("paper/tiny/paper", {**PAPER, "problems": ["far"], "offline": ["far"]})
    yield project
    site.close()


def test_the_guard_sees_an_attempt(project):
    log = blocked(project)
    project.add("problem/gone", {
        "name": "gone", "loss": "least_squares",
        "dataset": {"name": "gone", "sources": [
            {"kind": "http", "urls": ["http://127.0.0.1:9/x.csv"]}]},
    })  # fmt: skip
    done = project.run("fetch", "problem=gone", "data.retries=0")
    assert done.returncode == 1 and "none of its sources serves it" in done.stdout
    assert "socket" in log.read_text()


def away_from(served, folder):
    """The same project elsewhere, with nothing but a mirror and no network."""
    away = Project(folder)
    shutil.rmtree(away.conf)
    shutil.copytree(served.conf, away.conf)
    away.environment["DPERM_MIRROR"] = str(served.folder / "mirror")
    return away, blocked(away)


@pytest.mark.long
def test_a_run_from_a_mirror_opens_no_socket(served, tmp_path_factory):
    away, log = away_from(served, tmp_path_factory.mktemp("away"))
    done = away.run("snakemake", prefix=isolated())
    assert done.returncode == 0, done.stdout
    assert "far: mirror" in (away.folder / "logs/fetch/far.log").read_text()
    assert (away.folder / "figures/tiny/curves.svg").exists()
    assert not log.exists()
    online = served.run("snakemake")
    assert online.returncode == 0, online.stdout
    same_rows(away, served)


def test_a_fetch_from_a_mirror_opens_no_socket(served, tmp_path_factory):
    away, log = away_from(served, tmp_path_factory.mktemp("away"))
    done = away.run("fetch", "problem=far", prefix=isolated())
    assert done.returncode == 0 and "far: mirror" in done.stdout, done.stdout
    assert not log.exists()
