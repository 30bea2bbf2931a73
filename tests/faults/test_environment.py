"""The environment of ``environment.yml``, built; the wheel in it."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PARTS = ("src", "conf", "docs/examples", "tests", "profiles", "Snakefile")
FILES = (*PARTS, "pyproject.toml", "environment.yml", "requirements.lock", "README.md")
MADE = "data/prepared/diabetes/meta.json"  # three jobs need no download


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The pins in an environment of their own, made where nothing else lies.

    ``DPERM_ENVIRONMENT`` names one that was built before.
    """
    if "DPERM_ENVIRONMENT" in os.environ:
        return Path(os.environ["DPERM_ENVIRONMENT"])
    folder = tmp_path_factory.mktemp("environment")
    shutil.copy(ROOT / "environment.yml", folder)
    listed = yaml.safe_load((folder / "environment.yml").read_text())["dependencies"]
    (folder / "pins.txt").write_text("\n".join(listed[-1]["pip"]))
    venv.create(folder / "made", with_pip=True)
    command = [folder / "made/bin/pip", "install", "-q", "-r", "pins.txt"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if "No matching distribution" in done.stderr or "ConnectionError" in done.stderr:
        pytest.skip("no package index that has the pins can be reached")
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / "made"


def alone(environment, folder, *command):
    """Run a command with this environment and nothing else."""
    path = f"{environment / 'bin'}:/usr/bin:/bin"
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True,
        env={"PATH": path, "HOME": str(folder)},
    )  # fmt: skip


def tracked():
    """Files of the repository, those not yet added too."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", *FILES]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return [
        name
        for name in listed.stdout.decode().splitlines()
        if Path(ROOT / name).is_file()
    ]


@pytest.fixture
def checkout(tmp_path):
    """The files that Git has, elsewhere."""
    folder = tmp_path / "a checkout"
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.mark.long
def test_snakemake_runs_in_the_environment_alone(built, checkout):
    """``environment.yml`` holds all that ``snakemake`` needs in a checkout."""
    assert alone(built, checkout, "python", "-c", "import dperm").returncode == 1
    done = alone(built, checkout, "snakemake", "-j", "1", "-q", "rules", "--", MADE)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (checkout / MADE).is_file()
    planned = alone(built, checkout, "snakemake", "-n", "all", "-q", "rules")
    assert planned.returncode == 0, planned.stderr[-2000:]


@pytest.mark.long
def test_the_wheel_runs_in_an_empty_environment(built, tmp_path):
    """The wheel, with the pins for dependencies and no checkout, plans a paper."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o",
             str(tmp_path), str(ROOT)]  # fmt: skip
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("dperm-*.whl")
    made, work = tmp_path / "made", tmp_path / "work"
    venv.create(made, with_pip=True)
    (site,), (pinned,) = (
        list(home.glob("lib/python*/site-packages")) for home in (made, built)
    )
    (site / "pins.pth").write_text(f"{pinned}\n")
    pip = [made / "bin/pip", "install", "-q", "--no-deps", wheel]
    subprocess.run(pip, check=True)
    work.mkdir()
    version = alone(made, work, "dperm", "--version").stdout
    assert version.startswith("dperm ") and version.split()[1] in wheel.name
    assert "dpcd" in alone(made, work, "dperm", "--help").stdout
    planned = alone(made, work, "dperm", "-n", "dpcd", "-q", "rules")
    assert planned.returncode == 0, planned.stderr[-2000:]


CONDA = """#!/bin/bash
# What Snakemake asks of conda; an environment is the one that was built from the pins.
case "$1" in
  info) echo '{{"conda_prefix": "{home}", "platform": "linux-64"}}' ;;
  --version) echo "conda 25.1.0" ;;
  config) echo '{{"get": {{"channel_priority": "strict"}}}}' ;;
  env)
    while [ $# -gt 0 ]; do
      case "$1" in
        --file=*) file="${{1#*=}}" ;; --file) file="$2" ;;
        --prefix=*) made="${{1#*=}}" ;; --prefix) made="$2" ;;
      esac
      shift
    done
    cp "$file" "{home}/copied.yml"
    rm -rf "$made" && ln -s "{built}" "$made" ;;
esac
"""
ACTIVATE = """echo "$1" >> "{home}/activated"
export PATH="$1/bin:$PATH"
"""


@pytest.mark.long
def test_jobs_run_where_snakemake_makes_their_environment(built, checkout, tmp_path):
    """``--sdm conda``, by a stand-in for conda: of the YAML alone, without dperm."""
    home = tmp_path / "conda"
    (home / "bin").mkdir(parents=True)
    for name, text in (("conda", CONDA), ("activate", ACTIVATE)):
        (home / "bin" / name).write_text(text.format(home=home, built=built))
        (home / "bin" / name).chmod(0o755)
    path = f"PATH={home / 'bin'}:{built / 'bin'}:/usr/bin:/bin"
    done = alone(built, checkout, "env", path, "snakemake", "-j", "1", "--sdm", "conda",
                 "-q", "rules", "--", MADE)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert (checkout / MADE).is_file()
    assert len((home / "activated").read_text().splitlines()) == 2, "fetch, prepare"
    copied = (home / "copied.yml").read_text()
    assert copied == (ROOT / "environment.yml").read_text()
