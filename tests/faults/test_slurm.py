"""A real SLURM of one node, started here: Debian's slurmctld, slurmd and munge.

Skipped where they are not installed:
``apt-get install slurmctld slurmd slurm-client munge``.
"""

import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from faults.tiny import ROOT, same_rows

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo")
MEMORY = 16000  # MB that the node claims to have
CONF = """
ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld}
SlurmdPort={slurmd}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobs.log
MinJobAge=3600
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


def program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return chosen.getsockname()[1]


class Cluster:
    """The daemons, each started here and stopped here."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.running: list[subprocess.Popen] = []
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}
        folder.chmod(0o755)
        (folder / "slurm.conf").write_text(
            CONF.format(
                folder=folder, host=socket.gethostname().split(".")[0], memory=MEMORY,
                user=os.environ.get("USER") or "root", cpus=os.cpu_count(),
                ctld=free_port(), slurmd=free_port(),
            )
        )  # fmt: skip
        # The plugin hides SLURM_CONF from srun, and this one is not in /etc.
        srun = folder / "bin" / "srun"
        srun.parent.mkdir()
        conf = self.environment["SLURM_CONF"]
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={conf} exec {program("srun")} "$@"\n')
        srun.chmod(0o755)
        self.environment["PATH"] = f"{srun.parent}:{os.environ['PATH']}"
        for name in ("state", "spool"):
            (folder / name).mkdir()

    def start(self, name: str, *arguments: str) -> None:
        with open(self.folder / f"{name}.log", "w") as log:
            self.running.append(
                subprocess.Popen(
                    [str(program(name)), *arguments], stdout=log, stderr=log,
                    env={**os.environ, **self.environment},
                )
            )  # fmt: skip

    def start_all(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        options = {"key-file": key.name, "socket": "munge.socket",
                   "pid-file": "munge.pid",
                   "log-file": "munge.log", "seed-file": "munge.seed"}  # fmt: skip
        paths = (f"--{name}={self.folder / file}" for name, file in options.items())
        self.start("munged", "--foreground", "--force", *paths)
        self.wait(lambda: (self.folder / "munge.socket").exists())
        self.start("slurmctld", "-D", "-f", self.environment["SLURM_CONF"])
        self.start("slurmd", "-D", "-f", self.environment["SLURM_CONF"])
        self.wait(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"))

    def ask(self, *command: str) -> str:
        environment = {**os.environ, **self.environment}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        return done.stdout

    def wait(self, ready) -> None:
        deadline = time.monotonic() + 90
        while not ready():
            if time.monotonic() > deadline:
                logs = {path.name: path.read_text()[-800:]
                        for path in self.folder.glob("*.log")}  # fmt: skip
                raise RuntimeError(f"SLURM does not start: {logs}")
            time.sleep(0.3)

    def stop(self) -> None:
        self.ask("scancel", "--state=RUNNING", "--state=PENDING")
        for process in reversed(self.running):
            process.terminate()
            process.wait(30)


@pytest.fixture
def cluster(tmp_path_factory):
    missing = [name for name in PROGRAMS if program(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    made = Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        made.start_all()
        yield made
    finally:
        made.stop()


@pytest.mark.long
def test_rows_are_those_of_a_local_run(cluster, project, undisturbed):
    """SLURM of one node"""
    project.environment |= cluster.environment
    options = ["--profile", str(ROOT / "profiles" / "slurm"), "-j", "4",
               "--slurm-status-command", "squeue", "--seconds-between-status-checks",
               "3", "--slurm-init-seconds-before-status-checks", "2",
               "--slurm-no-account", "--set-threads", "solve=2", "timing=2",
               "--", "tiny"]  # fmt: skip
    done = project.run("snakemake", *options, time=1200)
    assert done.returncode == 0, done.stdout[-6000:]
    same_rows(project, undisturbed)
    log = (cluster.folder / "jobs.log").read_text()
    counts = dict(re.findall(r"^(\w+) +(\d+)$", done.stdout, re.M))  # "Job stats"
    here = sum(int(counts.get(rule, 0)) for rule in ("complete", "tiny"))
    assert log.count("JobState=COMPLETED") == int(counts["total"]) - here, counts
    limits = {int(found) for found in re.findall(r"TimeLimit=(\d+)", log)}
    assert 60 in limits and len(limits) > 1  # fetch has the default, tune its own
