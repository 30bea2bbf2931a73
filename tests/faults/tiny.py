"""A paper of its own, small enough to be run, killed and run again many times."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import yaml

from dperm.core.experiment.unit import PROVENANCE

ROOT = Path(__file__).parents[2]
PAPER = {
    "name": "tiny",
    "problems": ["diabetes"],
    "offline": ["diabetes"],
    "calibrations": ["paper"],
    "replicates": 10,
    "fresh": 3,
    "runs": {
        solver: {
            "grid": {
                "passes": [2, 5],
                "step": {"logspace": [1e-4, 1.0, 5]},
                "clip": {"logspace": [0.1, 1e4, 20]},
            }
        }
        for solver in ("dp_cd", "dp_sgd")
    },
    "published": {"table2": "published/table2.csv"},
    "figures": {"curves": {"kind": "trajectories"}},
    "tables": {
        "errors": {"kind": "relative_error", "options": {"published": "table2"}}
    },
}
SWEPT = {
    **PAPER,
    "figures": {},
    "tables": {},
    "sweeps": {
        "walks": {
            "kind": "walks",
            "grid": {"steps": [10, 100, 1000, 10000], "scale": [0.5, 1.0, 2.0, 4.0]},
            "replicates": 1,
        }
    },
}
SWEEPS = '''"""A sweep whose points take a while."""

import time

import numpy as np


def walks(config, point, seed):
    time.sleep(0.3)
    steps = np.random.default_rng(seed).standard_normal(int(point["steps"]))
    return [{"end": point["scale"] * float(steps.sum())}]
'''


class Project:
    """A folder to run in, with a configuration of its own."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.groups: list[int] = []  # process groups whose leader was killed
        self.conf = folder / "configuration"
        shutil.copytree(ROOT / "conf", self.conf)
        for path in (self.conf / "paper").iterdir():
            shutil.rmtree(path)
        tiny = self.conf / "paper" / "tiny"
        (tiny / "published").mkdir(parents=True)
        shutil.copy(ROOT / "conf/paper/dpcd/published/table2.csv", tiny / "published")
        self.add("paper/tiny/paper", PAPER)
        root = (self.conf / "config.yaml").read_text()
        (self.conf / "config.yaml").write_text(
            root.replace("paper: dpcd", "paper: tiny")
        )
        self.environment = {**os.environ, "DPERM_CONF": str(self.conf)}
        self.environment.pop("DPERM_MIRROR", None)

    def add(self, name: str, content: dict) -> None:
        (self.conf / f"{name}.yaml").write_text(yaml.safe_dump(content))

    def command(self, stage: str, *arguments: str) -> list[str]:
        """The command line of a stage, or of Snakemake for stage ``snakemake``."""
        if stage == "snakemake":
            command = [sys.executable, "-m", "dperm"]
            return [*command, *(arguments or ("-j", "2", "--", "tiny"))]
        return [sys.executable, "-m", "dperm", stage, "problem=diabetes", *arguments]

    def start(self, stage: str, *arguments: str, **options) -> subprocess.Popen:
        """Start it in a process group of its own, its messages in ``messages``."""
        with open(self.folder / "messages", "w") as messages:
            return subprocess.Popen(
                self.command(stage, *arguments), cwd=self.folder, env=self.environment,
                stdout=messages, stderr=messages, start_new_session=True, **options,
            )  # fmt: skip

    def run(self, stage: str, *arguments: str, prefix=(), time=900, **options):
        """Run it to its end; the messages of both streams are ``stdout``."""
        return subprocess.run(
            [*prefix, *self.command(stage, *arguments)], cwd=self.folder,
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False, timeout=time, **options,
        )  # fmt: skip

    def with_sweep(self) -> "Project":
        """The same with a sweep of its own, spread over processes."""
        self.add("paper/tiny/paper", SWEPT)
        (self.conf / "paper/tiny/sweeps.py").write_text(SWEEPS)
        return self

    def rows(self, path: str = "results") -> dict[str, pd.DataFrame]:
        """All tables by name, without timings and provenance."""
        return {
            str(file.relative_to(self.folder)): pd.read_parquet(file).drop(
                columns=PROVENANCE, errors="ignore"
            )
            for file in sorted((self.folder / path).rglob("*.parquet"))
            if "lanes" not in file.parts
        }

    def leftovers(self) -> list[str]:
        """Half-written files that lie about."""
        places = [self.folder / top for top in ("results", "figures", "data")]
        return [
            str(path.relative_to(self.folder))
            for place in places
            for path in place.rglob(".*")
            if not path.name.endswith("lock")
        ]


def same_rows(one: Project, other: Project, path: str = "results", some=False) -> None:
    """Every table of one, or all that it has, equals the other's bit for bit."""
    ours, theirs = one.rows(path), other.rows(path)
    assert ours and (ours.keys() == theirs.keys() or some)
    for name, table in ours.items():
        pd.testing.assert_frame_equal(table, theirs[name], check_exact=True)


def counted(messages: str) -> dict[str, int]:
    """How many lanes a tuning says it reused, computed and did not run."""
    said = [line for line in messages.splitlines() if "lanes reused" in line]
    last = [line for line in said if not line.startswith("evaluate ")][-1]
    kinds = {"reused": "lanes reused", "computed": "computed", "left": "left out after"}
    found = {kind: re.search(rf"(\d+) {words}", last) for kind, words in kinds.items()}
    return {kind: int(match[1]) if match else 0 for kind, match in found.items()}
