"""The profile for SLURM: what it asks of ``sbatch``, and the rows that its jobs leave.

Programs of SLURM's names stand in for a cluster: ``sbatch`` runs a job at once.
"""

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
        script = "#!/bin/bash\n" + text.replace("{folder}", str(folder))
        (folder / name).write_text(script)
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
    # fetch, prepare and optimum share a job, and so do drawings
    for name in ("group_data", "rule_solve", "group_draw"):
        assert any(name in call for call in calls), calls
    solves = [call for call in calls if "rule_solve" in call]
    assert len(solves) == 2
    for asked in ("--cpus-per-task=2", " -t 120 ", " --mem 3000 "):
        assert all(asked in call for call in solves), solves
