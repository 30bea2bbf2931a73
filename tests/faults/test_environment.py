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
