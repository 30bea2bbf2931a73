"""The commands of the pages run, each line as a reader types it, in a new folder.

Lines that add to a paper are run by ``tests/workflow/test_extension.py``. A run of a
whole paper, or of all, is tried without its jobs (``-n``), and the fits of ``dperm
try`` are two for each method instead of twenty.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dperm.cli import name_of

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
PAGES = ("README", "docs/command", "docs/arena", "docs/accounting", "docs/howto/try",
         "docs/howto/audit", "docs/howto/artifact")  # fmt: skip
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
REMARK = re.compile(r"(?:\s+#|  +(?=[A-Za-z])(?!&&)).*$")
NOT_RUN = {  # the beginning of a line: why it is not run here
    "make ": "the test would run itself",
    "export ": "a setting of the shell",
    "unzip ": "a file of a release",
    "git status": "it says what differs in the reader's clone",
    "python3 -m venv other": "packages over a network",
    "cd docs/examples && ../../other": "the environment of the line before",
    "dperm try mine.csv target=y solvers=[dp_gd,diffprivlib]": "the same",
    "dperm verify": "a finished run; tests/faults/test_verify.py has one",
    "dperm figure ": "a finished run; tests/papers has small ones",
    "dperm table ": "a finished run; tests/papers has small ones",
    "dperm dpcd --profile": "a cluster; tests/faults/test_slurm.py has one",
}


def lines(page):
    """The lines of the blocks of a page without a language, without their remarks."""
    text = (ROOT / f"{page}.md").read_text()
    for language, block in FENCE.findall(text):
        shell = block if language in ("", "sh", "console") else ""
        for line in shell.replace("\\\n", " ").splitlines():
            command = line.removeprefix("$ ")
            is_typed = re.match(r"(dperm|cp|cd|for|make|export|unzip|git|python3) ",
                                command)  # fmt: skip
            if is_typed:
                yield " ".join(REMARK.sub("", command).split())


ALL = [line for page in PAGES for line in lines(page)]
RUN = [
    line for line in dict.fromkeys(ALL) if not line.startswith(tuple(NOT_RUN))
]


def shortened(line):
    """A line with as little work as shows that it runs."""
    words = line.split()
    if line.startswith("dperm try"):
        return f"{line} fresh=2"
    if line.startswith("dperm solve"):
        return f"{line} scale=smoke"
    if words[0] == "dperm" and name_of(words[1:]) is None:
        return f"{line} -n"
    return line


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A reader's folder: the clone's examples, a file mine.csv, a module mine.py."""
    place = tmp_path_factory.mktemp("reader")
    shutil.copytree(ROOT / "docs/examples", place / "docs/examples")
    return place


def write_table(path, line):
    """The file that a line speaks of: its columns, gaps, separators."""
    rng = np.random.default_rng(0)
    n = 300
    age = rng.integers(18, 91, n).astype(float)
    income = rng.uniform(0, 1e5, n).round()
    table = pd.DataFrame({"age": age, "income": income})
    table["y"] = (age + rng.normal(0, 5, n)).clip(0, 100).round(2)
    if "positive=yes" in line:
        table["y"] = np.where(age > 50, "yes", "no")
        table["id"] = range(n)
        table["name"] = "somebody"
    if "missing=" in line:
        table.loc[:9, "age"] = np.nan
    if "separator=;" in line:
        table.to_csv(path, index=False, sep=";", decimal=",")
    else:
        table.to_csv(path, index="drop=['']" in line)  # its column has no name


def run(line, folder):
    """A line in a shell, in the folder, with this environment's commands first."""
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euc", line],
        cwd=folder,
        env={**os.environ, "PATH": tools},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("line", RUN)
def test_the_line_runs(line, folder):
    write_table(folder / "mine.csv", line)
    module = folder / "mine.py"
    shutil.copy(ROOT / "docs/examples/mine/noisy_gd.py", module)
    shutil.copy(ROOT / "docs/examples/mine/yields.csv", folder)
    is_audit = line.startswith("dperm audit mine:fit")
    if is_audit:
        module.write_text(audited())
    done = run(shortened(line), folder)
    expected = 1 if is_audit else 0  # the function on the page is refuted
    assert done.returncode == expected, (done.stdout + done.stderr)[-3000:]


def audited():
    """The function that the page on the audit has its reader write."""
    page = (ROOT / "docs/howto/audit.md").read_text()
    return re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]


def test_the_audit_prints_what_its_page_shows(folder):
    page = (ROOT / "docs/howto/audit.md").read_text()
    block = re.search(
        r"```\n\$ (dperm audit mine:fit.*?)```", page, re.DOTALL
    )[1]
    line, *shown = block.splitlines()
    (folder / "mine.py").write_text(audited())
    printed = run(line, folder).stdout.splitlines()
    assert printed[: len(shown) - 1] == shown[:-1]  # the last has seconds


def test_every_reason_is_of_a_line():
    for beginning in NOT_RUN:
        assert any(line.startswith(beginning) for line in ALL), beginning
    assert len(RUN) > 25
