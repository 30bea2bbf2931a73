"""What the repository promises of itself."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pandas as pd
import pytest
import yaml

from commands import python
from dperm import __version__
from dperm.config import config
from dperm.config.locate import available
from dperm.workflow import workflow

ROOT = Path(__file__).parents[2]


def pins(text):
    """Each pin with its marker and its hashes, as pip reads a file of them."""
    return [
        " ".join(line.split())
        for line in text.replace("\\\n", "").splitlines()
    ]


def test_environment_is_whole_and_pins_what_the_lock_file_does():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, pip, inside = environment["dependencies"]
    assert python.startswith("python=3.1") and pip == "pip"
    (listed,) = inside.values()
    assert listed == pins((ROOT / "requirements.lock").read_text())
    pin = re.compile(
        r"[\w.-]+==[^ ]+( ; [^-]+)?( --hash=sha256:[0-9a-f]{64})+"
    )
    assert all(map(pin.fullmatch, listed)), (
        "nothing but pins: files do not come along"
    )


def test_jobs_find_the_package_beside_the_snakefile(tmp_path):
    """In an environment that has none, and with the shell's own safeguards."""
    folder = tmp_path / "it's {here}"
    (folder / "src" / "dperm").mkdir(parents=True)
    (folder / "src" / "dperm" / "__init__.py").write_text("print('found')")
    start = workflow.prefix(str(folder)).format()  # as Snakemake reads it

    def run(line, **given):
        environment = {"PATH": os.environ["PATH"], **given}
        command = ["bash", "-c", f"{start}{line}"]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True
        )

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


@pytest.mark.long
def test_the_wheel_holds_all_that_a_run_needs(tmp_path):
    build = (
        "-m",
        "build",
        "-q",
        "--wheel",
        "--no-isolation",
        "-o",
        tmp_path,
        ROOT,
    )
    assert python(*build).returncode == 0
    (wheel,) = tmp_path.glob("dperm-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site := tmp_path / "site")
    for words in (["--version"], ["--help"], ["-n", "dpcd", "-q", "rules"]):
        done = python(
            "-m", "dperm", *words, cwd=tmp_path, PYTHONPATH=str(site)
        )
        assert done.returncode == 0, done.stderr[-2000:]


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_lock_file_holds_every_dependency_with_hashes_and_no_address():
    extras = project()["optional-dependencies"]
    locked_too = ("pipeline", "report", "cluster", "data", "docs", "dev")
    named = [one for extra in locked_too for one in extras[extra]]
    wanted = [one for one in named if not one.startswith("dperm[")]
    wanted += project()["dependencies"]
    lock = (ROOT / "requirements.lock").read_text()
    locked = {
        name.lower()
        for name in re.findall(r"^([A-Za-z0-9_.-]+)==", lock, re.M)
    }
    for requirement in wanted:
        assert re.match(r"[A-Za-z0-9_.-]+", requirement)[0].lower() in locked
    assert "://" not in lock and "--index" not in lock
    assert lock.count("--hash=sha256:") >= len(locked)


MODULES = {  # of a distribution whose module has another name
    "dp-accounting": "dp_accounting", "hydra-core": "hydra", "liac-arff": "arff",
    "pillow": "PIL", "pyyaml": "yaml", "scikit-learn": "sklearn",
    "vl-convert-python": "vl_convert",
}  # fmt: skip
BROUGHT = {  # by what is declared, as a part of it, or by a user
    "omegaconf": "hydra-core",
    "threadpoolctl": "scikit-learn",
    "urllib3": "requests",
    "llvmlite": "numba",
    "pydantic_core": "pydantic",
    "snakemake_interface_logger_plugins": "snakemake",
    "polars": "whoever passes a frame of it",
    "diffprivlib": "an environment of its own, in which its script runs",
    "interpret": "the same, of its own",
}


def imported():
    """Modules of others that the package imports anywhere."""
    names = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif (
                isinstance(node, ast.ImportFrom)
                and not node.level
                and node.module
            ):
                names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names - {"dperm"}


def declared(requirements):
    """The modules of requirements."""
    names = [re.match(r"[\w.-]+", one)[0].lower() for one in requirements]
    return {MODULES.get(name, name.replace("-", "_")) for name in names}


def test_what_is_imported_is_declared_and_what_is_declared_is_imported():
    extras = project()["optional-dependencies"]
    core = declared(project()["dependencies"])
    both = declared([*extras["pipeline"], *extras["report"]]) - {"dperm"}
    whole = core | both | declared(extras["cluster"] + extras["release"])
    assert imported() - whole == {*BROUGHT}
    assert core | both <= imported()


def test_codemeta_says_what_the_package_does():
    meta = json.loads((ROOT / "codemeta.json").read_text())
    for key in ("name", "version", "description"):
        assert meta[key] == project()[key]
    assert meta["license"].endswith(project()["license"])


def test_the_badges_say_what_the_project_does():
    """They are files of the repository: no service is asked, and nothing goes stale."""
    readme = (ROOT / "README.md").read_text()
    row = re.findall(r"\[!\[([^]]+)\]\(([^)]+)\)\]\(([^)]+)\)", readme)
    assert len(row) == 5
    words = {alt.replace(":", ""): target for alt, _, target in row}
    for alt, picture, target in row:
        drawn = re.findall(r"<text[^>]*>([^<]+)", (ROOT / picture).read_text())
        assert " ".join(drawn) == alt.replace(":", "")
        assert (ROOT / target).is_file()
    tested = (ROOT / ".github/workflows/test.yml").read_text()
    versions = sorted(re.findall(r'"(3\.\d+)"', tested), key=len)
    assert (
        words[f"Python {min(versions)} to {max(versions)}"] == "pyproject.toml"
    )
    assert project()["requires-python"] == f">={min(versions)}"
    assert (
        words[f"licence {project()['license'].replace('-', ' ', 1)}"]
        == "LICENSE"
    )
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    assert {"test", "docs"} <= {*targets}


NO_PROSE = (
    r"(?s)<!-- [\w ]+: written by.*?<!-- end of [\w ]+ -->",
    r"(?s)```.*?```",
    r"(?m)^\s*\|.*$",
    r"(?m)^!?\[!?\[.*$",
    r"\$[^$]*\$",
    r"\]\([^)]*\)",
)


def test_the_prose_of_the_pages_is_short():
    """Without code, tables, pictures, formulas and what ``dperm readme`` writes."""
    docs = ROOT / "docs"
    pages = [ROOT / "README.md", *docs.glob("*.md"), *docs.glob("[!_a]*/*.md")]
    assert len(pages) > 25
    count = 0
    for page in pages:
        text = page.read_text()
        for pattern in NO_PROSE:
            text = re.sub(pattern, " ", text)
        count += len(re.findall(r"[A-Za-z']+", text))
    assert 10_000 < count <= 12_000


def test_published_numbers_are_complete():
    for name in ("table2", "table3"):
        table = pd.read_csv(ROOT / f"conf/paper/dpcd/published/{name}.csv")
        assert (
            len(table) == 50
            and not table.duplicated(table.columns[:3].tolist()).any()
        )
    table = pd.read_csv(ROOT / "conf/paper/dpgcd/published/table3.csv")
    assert (
        len(table) == 12
        and not table.duplicated(["problem", "algorithm"]).any()
    )


def test_the_top_level_is_short():
    """At most 22 entries beside those that begin with a dot."""
    command = ["git", "-C", str(ROOT), "ls-files"]
    listed = subprocess.run(
        command, capture_output=True, text=True, check=True
    )
    tops = {path.partition("/")[0] for path in listed.stdout.splitlines()}
    assert 10 < len({name for name in tops if not name.startswith(".")}) <= 22
