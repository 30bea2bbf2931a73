"""The ``dperm`` command: what it lists, refuses and completes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dperm.cli import COMMANDS, papers
from dperm.locate import available

DPERM = [sys.executable, "-m", "dperm"]
REPOSITORY = Path(__file__).parents[2]


def run(*arguments, **environment):
    return subprocess.run(
        [*DPERM, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_lists_stages_and_papers_each_with_a_line():
    text = run("--help").stdout
    stages = {name: command.help for name, command in COMMANDS.items()}
    for name, line in {**stages, **papers()}.items():
        assert line and f"{name:14} {line}" in text
    assert set(papers()) == set(available("paper"))


@pytest.mark.parametrize(("word", "near"), [("tnue", "tune"), ("dpdc", "dpcd")])
def test_an_unknown_word_is_refused(word, near):
    done = run(word, "problem=diabetes")
    assert done.returncode == 1 and f"did you mean {near}?" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_stage_gets_its_keys():
    done = run("tune", "problem=nothing")
    assert done.stderr.startswith("ConfigError: command line: problem 'nothing'")


def test_anything_else_is_snakemakes():
    assert "rerun-triggers" in run("-j", "1", "--help").stdout.lower()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dperm ev", {"evaluate"}),
        ("dperm dps", {"dpsco", "dpskgd"}),
        ("dperm tune problem=diab", {"problem=diabetes"}),
        ("dperm tune sol", {"solver="}),
    ],
)
def test_completion(line, expected, tmp_path):
    out = tmp_path / "out"
    run(
        _ARGCOMPLETE="1",
        _ARGCOMPLETE_STDOUT_FILENAME=str(out),
        _ARGCOMPLETE_SHELL="fish",
        COMP_LINE=line,
        COMP_POINT=str(len(line)),
    )
    assert {word.strip() for word in out.read_text().split("\x0b")} == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_offered_to_every_shell(shell):
    script = Path(sys.executable).parent / "register-python-argcomplete"
    command = [str(script), "--shell", shell, "dperm"]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "dperm" in made.stdout
