"""Every stage that fails says so in one line; the shell is given no text of a user."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dperm import cli
from faults.tiny import ROOT

OWN = """
name: own
loss: {loss}
dataset:
  name: own
  sources: [{{kind: file, files: [own.csv]}}]
  reader: {{format: csv}}
penalty: {{l1: {l1}}}
"""


@pytest.fixture
def own(project):
    """A project with a problem on a file of its own."""

    def make(rows, loss="least_squares", l1=0.1):
        (project.folder / "own.csv").write_text("a,b,y\n" + rows)
        text = OWN.format(loss=loss, l1=l1)
        (project.conf / "problem" / "own.yaml").write_text(text)
        return project

    return make


def stages(project, *names, **environment):
    project.environment.update(environment)
    for name in names:
        done = project.run(name, "problem=own")
    return done


def test_an_optimum_of_zero_is_refused(own):
    project = own("1,2,3\n0,1,1\n2,2,4\n", l1=0)  # y = a + b
    done = stages(project, "fetch", "prepare", "optimum")
    assert done.returncode == 1 and "Traceback" not in done.stdout
    last = done.stdout.strip().splitlines()[-1]
    assert last.startswith("ValueError: conf/problem/own.yaml: loss, penalty: ")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TypeError("f() got\nan argument"), "TypeError: f() got an argument; DPERM"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by"),
        (MemoryError("Unable to allocate 8 GiB"),
         "MemoryError: conf/problem/diabetes.yaml: dataset: Unable to allocate 8 GiB"),
        (MemoryError(), "conf/problem/diabetes.yaml: dataset: it does not fit"),
        (AssertionError(), "AssertionError: ; DPERM_DEBUG=1 shows where"),
        (ValueError("as it is"), "ValueError: as it is"),
    ],
)  # fmt: skip
def test_whatever_a_stage_raises_is_one_line(monkeypatch, error, said):
    def fail(*_):
        raise error

    monkeypatch.setattr(cli, "function_of", lambda command: fail)
    with pytest.raises(SystemExit) as caught:
        cli.run_stage(cli.COMMANDS["fetch"], ["problem=diabetes"])
    assert said in str(caught.value) and "\n" not in str(caught.value)
    monkeypatch.setenv("DPERM_DEBUG", "1")
    with pytest.raises(type(error)):
        cli.run_stage(cli.COMMANDS["fetch"], ["problem=diabetes"])


def test_a_sweep_that_does_not_fit_is_not_put_on_a_problem_it_does_not_read(
    monkeypatch,
):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(cli, "function_of", lambda command: fail)
    with pytest.raises(SystemExit) as caught:
        cli.run_stage(cli.COMMANDS["sweep"], ["paper=dpgcd", "product=coordinates"])
    place = "conf/paper/dpgcd/paper.yaml: sweeps.coordinates: it does not fit"
    assert place in str(caught.value)


def test_the_current_folder_hides_no_library(project):
    def hide(*names):
        for name in names:
            text = f"raise SystemExit('{name} of mine')"
            (project.folder / f"{name}.py").write_text(text)

    hide("html", "yaml", "statistics")
    done = project.run("fetch")
    assert done.returncode == 0, done.stdout
    hide("random", "hashlib", "pathlib")  # that Python reads before any line of ours
    done = subprocess.run(
        [sys.executable, "-P", "-m", "dperm", "fetch", "problem=diabetes"],
        cwd=project.folder, env=project.environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_rules_leave_the_current_folder_aside():
    lines = (ROOT / "Snakefile").read_text().splitlines()
    called = [line for line in lines if "python" in line and "-m dperm" in line]
    assert len(called) > 5 and all("python -P -m dperm" in line for line in called)


def test_what_is_set_is_no_command(prepared):
    """Nothing that ``set`` holds is run by a shell, and it arrives letter by letter."""
    title = "$HOME *|touch$IFS/evil `touch evil`; touch evil"
    given = shlex.join([f"problem.title='{title}'", "scale.keep.clip=2"])
    command = [
        *prepared.command("snakemake", "-j", "1", "-q", "all", "-F"),
        "--config",
        "scale=smoke",
        f"set={given}",
        "--",
        "data/prepared/diabetes/meta.json",
    ]
    done = subprocess.run(
        command, cwd=prepared.folder, env=prepared.environment, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert not (prepared.folder / "evil").exists() and not Path("/evil").exists()
    logs = (prepared.folder / "logs/smoke/prepare").iterdir()
    assert sorted(path.name for path in logs) == ["diabetes.log", "diabetes.tsv"]
