"""``make size`` holds the core and the package to the sizes that were agreed."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def package(tmp_path):
    """A package of modules with so many lines in all, as ``make size`` counts them."""

    def make(core, modules, rest):
        folder = tmp_path / "dperm"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "core/lanes").mkdir(parents=True)
        for number in range(modules):
            (folder / f"core/lanes/m{number}.py").touch()
        (folder / "core/lanes/m0.py").write_text("\n" * core)
        (folder / "cli.py").write_text("\n" * rest)
        (folder / "core/notes.md").write_text("\n" * 10**5)  # is no module
        return folder

    return make


def make_size(folder):
    return subprocess.run(
        ["make", "-s", "-f", ROOT / "Makefile", "size", f"SRC={folder}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def agreed():
    text = re.search(r"^size:.*?\n\n", (ROOT / "Makefile").read_text(), re.S | re.M)[0]
    return [int(found) for found in re.findall(r'" (\d+) ', text)]


def test_what_is_as_large_as_agreed_passes(package):
    lines, modules, every = agreed()
    assert (lines, modules) == (8000, 45)
    done = make_size(package(lines, modules, every - lines))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_more_than_agreed_fails_and_is_named(package, place):
    lines, modules, every = agreed()
    rest = every - lines - 1
    sizes = [
        (lines + 1, modules, rest),
        (lines, modules + 1, rest),
        (lines, modules, rest + 2),
    ]
    done = make_size(package(*sizes[place]))
    assert done.returncode != 0
    assert len(done.stdout.splitlines()) == place + 1  # it ends with what is too large


def test_three_hundred_lines_more_in_the_core_are_too_many(tmp_path):
    shutil.copytree(ROOT / "src/dperm/core", tmp_path / "dperm/core")
    core = [len(path.read_text().splitlines()) for path in tmp_path.rglob("*.py")]
    room = agreed()[0] - sum(core)
    extra = tmp_path / "dperm/core/privacy/pld.py"
    extra.write_text(extra.read_text() + "# more\n" * (max(room, 0) + 300))
    done = make_size(tmp_path / "dperm")
    assert done.returncode != 0 and "lines of the core" in done.stdout


def test_a_report_imported_in_the_core_breaks_the_layers(tmp_path):
    left = shutil.ignore_patterns("__pycache__", "*.html", "*.js", "*.css")
    shutil.copytree(ROOT / "src/dperm", tmp_path / "dperm", ignore=left)
    module = tmp_path / "dperm/core/privacy/pld.py"
    module.write_text(module.read_text() + "\nimport dperm.report.page\n")
    done = subprocess.run(
        ["lint-imports", "--no-cache", "--config", ROOT / "pyproject.toml"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "dperm.core.privacy.pld -> dperm.report.page" in done.stdout
