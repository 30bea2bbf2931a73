"""A paper of its own, small enough to be run, killed and run again many times."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import yaml

from dperm.experiments.task import PROVENANCE

ROOT = Path(__file__).parents[2]
PAPER = {
    "name": "tiny",
    "problems": ["diabetes"],
    "small_problems": ["diabetes"],
    "calibrations": ["published"],
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
    "figures": {"curves": {"function": "trajectories"}},
    "tables": {"errors": {"function": "relative_error"}},
}


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
        shutil.copy(
            ROOT / "conf/paper/dpcd/published/table2.csv", tiny / "published"
        )
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
        return [
            sys.executable,
            "-m",
            "dperm",
            stage,
            "problem=diabetes",
            *arguments,
        ]

    def start(
        self, stage: str, *arguments: str, **options
    ) -> subprocess.Popen:
        """Start it in a process group of its own, its messages in ``messages``."""
        with open(self.folder / "messages", "w") as messages:
            return subprocess.Popen(
                self.command(stage, *arguments), cwd=self.folder, env=self.environment,
                stdout=messages, stderr=messages, start_new_session=True, **options,
            )  # fmt: skip

    def run(self, stage: str, *arguments: str, time=900, **options):
        """Run it to its end; the messages of both streams are ``stdout``."""
        return subprocess.run(
            self.command(stage, *arguments), cwd=self.folder, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False, timeout=time, **options,
        )  # fmt: skip

    def rows(self, path: str = "results") -> dict[str, pd.DataFrame]:
        """All tables by name, without timings and provenance."""
        return {
            str(file.relative_to(self.folder)): pd.read_parquet(file).drop(
                columns=PROVENANCE, errors="ignore"
            )
            for file in sorted((self.folder / path).rglob("*.parquet"))
            if "parts" not in file.parts
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


def same_rows(
    one: Project, other: Project, path: str = "results", some=False
) -> None:
    """Every table of one, or all that it has, equals the other's bit for bit."""
    ours, theirs = one.rows(path), other.rows(path)
    assert ours and (ours.keys() == theirs.keys() or some)
    for name, table in ours.items():
        pd.testing.assert_frame_equal(table, theirs[name], check_exact=True)
