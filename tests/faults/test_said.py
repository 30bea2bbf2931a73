"""Every stage that fails says so in one line; the shell is given no text of a user."""

import re
import shlex
from pathlib import Path

import pytest

from commands import python
from dperm import cli
from dperm.numerics.parallel import forked

OWN = {
    "name": "own", "loss": "least_squares", "penalty": {"l1": 0},
    "dataset": {"name": "own", "sources": [{"origin": "file", "files": ["own.csv"]}],
                "reader": {"format": "csv"}},
}  # fmt: skip


def test_an_optimum_of_zero_is_refused(project, monkeypatch):
    monkeypatch.setenv("DPERM_CONF", str(project.conf))
    monkeypatch.chdir(project.folder)
    Path("own.csv").write_text("a,b,y\n1,2,3\n0,1,1\n2,2,4\n")  # y = a + b
    project.add("problem/own", OWN)
    for stage in ("fetch", "prepare"):
        cli.run_stage(cli.COMMANDS[stage], ["problem=own"])
    said = r"ValueError: conf/problem/own.yaml: loss, penalty: .*"
    with pytest.raises(SystemExit, match=said) as caught:
        cli.run_stage(cli.COMMANDS["optimum"], ["problem=own"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TypeError("f() got\nan argument"), "TypeError: f() got an argument (HERE, in"),
        (AssertionError(), "AssertionError:  (HERE, in fail); DPERM_DEBUG=1 shows"),
        (ValueError("as it is"), "ValueError: as it is"),
    ],
)  # fmt: skip
def test_whatever_a_stage_raises_is_one_line(monkeypatch, error, said):
    def fail(*_):
        raise error

    monkeypatch.setattr(cli, "function_of", lambda command: fail)
    with pytest.raises(SystemExit) as caught:
        cli.run_stage(cli.COMMANDS["fetch"], ["problem=diabetes"])
    line = re.sub(r"\(\S*test_said\.py:\d+,", "(HERE,", str(caught.value))
    assert said in line and "\n" not in line
    monkeypatch.setenv("DPERM_DEBUG", "1")
    with pytest.raises(type(error)):
        cli.run_stage(cli.COMMANDS["fetch"], ["problem=diabetes"])


def test_an_error_in_a_forked_process_says_where():
    def fail(_):
        raise ValueError("Seed must be between 0 and 2**32 - 1")

    with (
        forked(fail, [1, 2], 2) as outcomes,
        pytest.raises(ValueError) as caught,
    ):
        next(outcomes)
    place = cli.own_place(caught.value)
    assert re.search(
        r"test_said.py:\d+, in fail\): .* seed % 2\*\*32 is small", place
    )


def hide(project, *names):
    """Files of a user that have the names of modules."""
    for name in names:
        (project.folder / f"{name}.py").write_text(
            f"raise SystemExit('my {name}')"
        )


def test_the_current_folder_hides_no_library(project):
    hide(project, "html", "yaml", "statistics")
    done = project.run("fetch")
    assert done.returncode == 0, done.stdout


def test_what_is_set_is_no_command_and_what_lies_about_no_library(project):
    """Nothing that ``set`` holds is run by a shell, and it arrives letter by letter."""
    # read before any line of ours
    hide(project, "random", "hashlib", "pathlib")
    title = "$HOME *|touch$IFS/evil `touch evil`; touch evil"
    given = shlex.join([f"problem.title='{title}'", "scale.keep.clip=2"])
    words = ("-j", "1", "-q", "all", "-F", "--config", "scale=smoke", f"set={given}",
             "--", "data/prepared/diabetes/meta.json")  # fmt: skip
    conf = str(project.conf)
    done = python(
        "-P", "-m", "dperm", *words, cwd=project.folder, DPERM_CONF=conf
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert (
        not (project.folder / "evil").exists() and not Path("/evil").exists()
    )
    logs = (project.folder / "logs/smoke/prepare").iterdir()
    assert sorted(path.name for path in logs) == [
        "diabetes.json",
        "diabetes.log",
    ]
