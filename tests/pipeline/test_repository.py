"""What the repository promises of itself."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dperm import __version__
from dperm.core.experiment import config
from dperm.core.experiment.locate import available
from dperm.pipeline import startup

ROOT = Path(__file__).parents[2]


def pins(lines):
    """``name==version`` with its marker, of each line that begins with one."""
    found = (re.match(r"[^ #]+==[^\\]+", line) for line in lines)
    return [match[0].strip() for match in found if match]


def test_environment_is_whole_and_pins_what_the_lock_file_does():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, pip, inside = environment["dependencies"]
    assert python.startswith("python=3.1") and pip == "pip"
    (listed,) = inside.values()
    assert listed == pins(listed), "nothing but pins: other files do not come along"
    assert listed == pins((ROOT / "requirements.lock").read_text().splitlines())


def test_jobs_find_the_package_beside_the_snakefile(tmp_path):
    """In an environment that has none, and with the shell's own safeguards."""
    folder = tmp_path / "it's {here}"
    (folder / "src" / "dperm").mkdir(parents=True)
    (folder / "src" / "dperm" / "__init__.py").write_text("print('found')")
    start = startup.prefix(str(folder)).format()  # as Snakemake reads it

    def run(line, **given):
        environment = {"PATH": os.environ["PATH"], **given}
        command = ["bash", "-c", f"{start}{line}"]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    assert run("python -P -c 'import dperm'").stdout == "found\n"
    kept = run("echo $PYTHONPATH", PYTHONPATH="/own").stdout
    assert kept == f"{folder}/src:/own\n"
    assert run("false | cat").returncode == 1


def test_the_citation_is_of_this_version_and_names_every_paper():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    papers = [config.read("paper", name) for name in available("paper")]
    titles = {paper.title for paper in papers if paper.name != "arena"}
    assert {reference["title"] for reference in cited["references"]} == titles
    assert cited["version"] == __version__ == project()["version"]
    for key in ("abstract", "authors", "keywords", "license", "title"):
        assert cited[key], "archives ask for it"


def project():
    import tomllib

    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_catalogue_says_what_is_there():
    said = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())
    assert said["usage"]["software-stack-deployment"]["conda"] is True
    assert "environment.yml" in (ROOT / "Snakefile").read_text()
    text = (ROOT / "config/README.md").read_text()
    for scale in available("scale"):
        assert f"`{scale}`" in text


def test_the_lock_file_holds_every_dependency_with_hashes_and_no_address():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    wanted = project["project"]["dependencies"] + groups["dev"] + groups["docs"]
    wanted.remove({"include-group": "docs"})
    lock = (ROOT / "requirements.lock").read_text()
    locked = {name.lower() for name in re.findall(r"^([A-Za-z0-9_.-]+)==", lock, re.M)}
    for requirement in wanted:
        assert re.match(r"[A-Za-z0-9_.-]+", requirement)[0].lower() in locked
    assert "://" not in lock and "--index" not in lock
    assert lock.count("--hash=sha256:") >= len(locked)


def test_the_snakefile_is_short():
    assert len((ROOT / "Snakefile").read_text().splitlines()) < 250


def test_published_numbers_are_complete():
    import pandas as pd

    for name in ("table2", "table3"):
        table = pd.read_csv(ROOT / f"conf/paper/dpcd/published/{name}.csv")
        assert (
            len(table) == 50 and not table.duplicated(table.columns[:3].tolist()).any()
        )


def test_published_support_is_complete():
    import pandas as pd

    table = pd.read_csv(ROOT / "conf/paper/dpgcd/published/table3.csv")
    assert len(table) == 12 and not table.duplicated(["problem", "algorithm"]).any()


STAGES = ["fetch", "prepare", "optimum", "tune", "evaluate", "figure", "table"]


COMMANDS = [*STAGES, "complete", "privacy", "audit", "bundle"]


@pytest.mark.parametrize("stage", COMMANDS)
def test_every_stage_is_a_command(stage):
    command = [sys.executable, "-m", "dperm", stage, "problem=nothing"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("ConfigError: command line: problem 'nothing'")
    assert len(done.stderr.splitlines()) == 1


def test_help_and_multirun():
    command = [sys.executable, "-m", "dperm", "privacy"]
    helped = subprocess.run(
        [*command, "--help"], capture_output=True, text=True, check=False
    )
    assert helped.returncode == 0 and "problem=" in helped.stdout
