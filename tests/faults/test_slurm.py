"""The profile for SLURM: what it asks of ``sbatch``, and the rows that its jobs leave.

Programs of SLURM's names stand in for a cluster: ``sbatch`` runs a job at once.
"""

import re

import pytest

from faults.tiny import ROOT, same_rows

PROGRAMS = {
    "sbatch": """
for word; do case "$word" in --wrap=*) job=${word#--wrap=};; esac; done
printf '%s\\n' "${*%%--wrap*}" >> {folder}/calls
SLURM_JOB_ID=$$ bash -c "$job" > {folder}/$$.log 2>&1 && state=COMPLETED
echo "$$|${state:-FAILED}" >> {folder}/states
echo $$
""",
    "srun": 'while [[ "$1" == -* ]]; do shift; done\nexec "$@"\n',
    "sacct": 'case "$*" in *Account*) echo none;; *) cat {folder}/states;; esac\n',
    "sinfo": "",
    "scancel": "",
}


@pytest.mark.long
def test_rows_are_those_of_a_local_run(project, undisturbed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    for name, text in PROGRAMS.items():
        (folder / name).write_text(
            "#!/bin/bash\n" + text.replace("{folder}", str(folder))
        )
        (folder / name).chmod(0o755)
    project.environment["PATH"] = f"{folder}:{project.environment['PATH']}"
    options = ["--profile", str(ROOT / "profiles" / "slurm"), "-j", "2",
               "--default-resources", "slurm_partition=short", "disk_mb=1000",
               "--seconds-between-status-checks", "1",
               "--slurm-init-seconds-before-status-checks", "1",
               "--latency-wait", "5", "--set-threads", "solve=2", "timing=2",
               "--", "tiny"]  # fmt: skip
    done = project.run("snakemake", *options, time=1200)
    assert done.returncode == 0, done.stdout[-6000:]
    same_rows(project, undisturbed)
    calls = (folder / "calls").read_text().splitlines()
    counts = dict(re.findall(r"^(\w+) +(\d+)$", done.stdout, re.M))  # "Job stats"
    here = sum(int(counts.get(rule, 0)) for rule in ("complete", "tiny"))
    assert len(calls) == int(counts["total"]) - here, counts
    limits = {int(found) for found in re.findall(r" -t (\d+) ", " ".join(calls))}
    assert 60 in limits and len(limits) > 1  # fetch has the default, solve its own
    solves = [call for call in calls if "solve" in call]
    assert solves and all("--cpus-per-task=2" in call for call in solves)
