"""The environment of ``environment.yml``, built; a checkout and the wheel in it."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHECKOUT = ("src", "conf", "profiles", "Snakefile", "environment.yml", "pyproject.toml")
MADE = "data/prepared/breast_tumours/meta.json"  # in scikit-learn: no download


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The pins in an environment of their own, made where nothing else lies.

    ``DPERM_ENVIRONMENT`` names one that was built before.
    """
    if "DPERM_ENVIRONMENT" in os.environ:
        return Path(os.environ["DPERM_ENVIRONMENT"])
    folder = tmp_path_factory.mktemp("environment")
    text = (ROOT / "environment.yml").read_text()
    (folder / "pins.txt").write_text(
        "\n".join(yaml.safe_load(text)["dependencies"][-1]["pip"])
    )
    venv.create(folder / "made", with_pip=True)
    command = [folder / "made/bin/pip", "install", "-q", "-r", "pins.txt"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if "No matching distribution" in done.stderr or "ConnectionError" in done.stderr:
        pytest.skip("no package index that has the pins can be reached")
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / "made"


@pytest.mark.long
def test_snakemake_runs_in_the_environment_alone(environment, tmp_path):
    """``environment.yml`` holds all that a checkout and the wheel need."""
    folder, site = tmp_path / "a checkout", tmp_path / "site"
    folder.mkdir()
    for name in CHECKOUT:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o",
             str(tmp_path), str(ROOT)]  # fmt: skip
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("dperm-*.whl")
    pip = [environment / "bin/pip", "install", "-q", "--no-deps", "--target", site]
    subprocess.run([*pip, wheel], check=True)

    def alone(*command, cwd=tmp_path, **given):
        path = f"{environment / 'bin'}:/usr/bin:/bin"
        given |= {"PATH": path, "HOME": str(tmp_path)}
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, env=given
        )
        return done.returncode, done.stdout + done.stderr[-2000:]

    assert alone("python", "-c", "import dperm")[0] == 1
    code, said = alone("snakemake", "-j", "1", "-q", "rules", "--", MADE, cwd=folder)
    assert code == 0 and (folder / MADE).is_file(), said
    for words in (["--version"], ["--help"], ["-n", "dpcd", "-q", "rules"]):
        code, said = alone("python", "-m", "dperm", *words, PYTHONPATH=str(site))
        assert code == 0, said
