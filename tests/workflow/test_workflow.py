"""The Snakefile itself, in a folder of its own."""

import json
import os
import resource
import shutil
from pathlib import Path

import pandas as pd
import pytest

from commands import SCRIPT, dperm, python
from dperm.config.config import compose
from dperm.experiments import plan
from dperm.experiments.task import PROVENANCE

ROOT = Path(__file__).parents[2]
SMALL = "paper.small_problems=[diabetes] scale.keep.clip=2"


def without_sweeps() -> list[str]:
    """Overrides that leave out DP-GCD's sweeps, and what shows them."""
    paper = compose(["paper=dpgcd"]).paper
    names = ["printed_numbers", *(f"sweeps.{name}" for name in paper.sweeps)]
    for collection in ("figures", "tables"):
        products = getattr(paper, collection)
        names += [
            f"{collection}.{name}"
            for name, product in products.items()
            if product.sweeps
        ]
    return [f"~paper.{name}" for name in names]


def snakemake(folder: Path, cores: int, *target: str, **config: str):
    """Run Snakemake on the repository's Snakefile in another folder.

    The environment allows BLAS as many threads as there are cores.
    """
    settings = [
        f"{key}={value}" for key, value in {"scale": "smoke", **config}.items()
    ]
    options = ["-j", str(cores), "-q", "all", "--directory", str(folder)]
    options += [word for word in target if word.startswith("-")]
    named = [word for word in target if not word.startswith("-")]
    words = ("-m", "dperm", *options, "--config", *settings, "--", *named)
    return python(*words, cwd=folder, **threads(cores))


def stages(folder: Path, cores: int, settings: list[str], *commands: str):
    """Run stages one after the other in a process with so many workers and threads."""
    shared = ["scale=smoke", f"workers={cores}", *settings]
    words = json.dumps([[*command.split(), *shared] for command in commands])
    return python("-P", "-c", SCRIPT, words, cwd=folder, **threads(cores))


def threads(cores: int) -> dict[str, str]:
    return dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(cores)
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The paper's smoke run on one problem with one core and thread; its rows with two.

    And the rows' paths.
    """
    one, two = (tmp_path_factory.mktemp(f"cores{cores}") for cores in (1, 2))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = snakemake(one, 1, "dpcd", set=SMALL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr[-3000:]
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    tables = sorted(
        path.relative_to(one) for path in one.glob("results/**/*.parquet")
    )
    tables = [path for path in tables if "parts" not in path.parts]
    solvers = {path.parts[-2] for path in tables if path.stem == "tune"}
    solves = [f"solve solver={name}" for name in sorted(solvers)]
    every = ("fetch", "prepare", "optimum", *solves, "sweep", "timing")
    done = stages(two, 2, ["problem=diabetes", *SMALL.split()], *every)
    assert done.returncode == 0, done.stderr[-3000:]
    return one, two, tables, spent


def numbers(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path).drop(columns=PROVENANCE)


def test_cores_do_not_matter(finished):
    one, two, tables, _ = finished
    # and the timings, and a sweep of no problem
    assert len(tables) == 2 * 2 + 2
    for path in tables:
        pd.testing.assert_frame_equal(
            numbers(one / path), numbers(two / path), check_exact=True
        )


def test_the_manifest_holds_what_the_system_counted(finished):
    """The jobs, Snakemake and the server of warm workers are all that the run was."""
    folder, spent = finished[0], finished[-1]
    manifest = json.loads((folder / "results/smoke/manifest.json").read_text())
    jobs, run = manifest["jobs"], manifest["run"]
    assert {
        "fetch/diabetes",
        "solve/dpcd/diabetes/dp_cd",
        "complete/dpcd",
    } <= {*jobs}
    counted = sum(job["cpu_seconds"] for job in jobs.values())
    around = run["snakemake_cpu_seconds"] + run["server_cpu_seconds"]
    assert run["server_cpu_seconds"] > 0, "jobs are forked from warm workers"
    assert counted + around == pytest.approx(run["cpu_seconds"], rel=0.02)
    assert 0.95 * spent <= run["cpu_seconds"] <= spent, (
        "Snakemake's end comes after it"
    )


def test_everything_promised_is_there(finished):
    folder = finished[0]
    results, figures = (
        folder / "results/smoke/dpcd",
        folder / "figures/smoke/dpcd",
    )
    manifest = json.loads((folder / "results/smoke/manifest.json").read_text())
    # Table 2 rests on a sweep of a problem that is left out.
    made = [*(results / f"table{k}.csv" for k in (1, 3))]
    made += [
        figures / f"figure{k}.{end}" for k in (2, 3) for end in ("png", "csv")
    ]
    assert (
        all(path.stat().st_size > 0 for path in made)
        and manifest["cores"] == 1
    )
    assert manifest["wall_seconds"]["dpcd"] > 1
    assert {str(path.relative_to(folder)) for path in made} <= {
        *manifest["files"]
    }
    # Their columns are what others read.
    for path, columns in (
        (results / "table3.csv", "problem,algorithm,passes,mean,std,published_mean,"
         "published_std"),
        (figures / "figure2.csv", "panel,algorithm,x,mean,min,max,ci_low,ci_high,role"),
    ):  # fmt: skip
        assert path.read_text().splitlines()[0] == columns


def test_data_of_another_scale_leave_no_job_out(finished):
    """Data that this scale makes again: all that reads them is to be made."""
    settings = ["scale=quickstart", f"set={SMALL}"]
    words = (
        "-n",
        "-j",
        "1",
        "--directory",
        finished[0],
        "--config",
        *settings,
    )
    done = dperm(*words, "--", "dpcd")
    for rule in ("solve", "sweep", "complete"):
        assert f"rule {rule}:" in done.stdout, rule


def test_what_git_holds_depends_on_nothing_that_another_scale_writes(finished):
    """A clone has figures of the full scale without rows; a smoke run came later."""
    folder = finished[0] / "figures/dpcd"
    folder.mkdir(parents=True)
    for path in (finished[0] / "figures/smoke/dpcd").glob("figure2.*"):
        (folder / path.name).write_bytes(path.read_bytes())
        os.utime(folder / path.name, (10**9, 10**9))
    done = snakemake(
        finished[0], 1, "-n", "figures/dpcd/figure2.png", scale="full"
    )
    shutil.rmtree(folder)
    assert "Nothing to be done" in done.stdout + done.stderr, done.stdout


def test_figures_rebuild_to_the_same_bytes_and_nothing_else_runs(finished):
    folder = finished[0]
    figures = folder / "figures/smoke/dpcd"

    def made():
        times = [
            path.stat().st_mtime
            for path in folder.glob("results/**/*.parquet")
        ]
        return times, {
            path.name: path.read_bytes() for path in figures.iterdir()
        }

    before = made()
    for path in figures.glob("figure[23].*"):
        path.unlink()
    assert snakemake(folder, 1, "dpcd", set=SMALL).returncode == 0
    assert made() == before


def test_a_wrong_configuration_stops_before_anything_runs(tmp_path):
    done = snakemake(tmp_path, 1, "dpcd", set="problem.privacy.epsilon=0")
    assert done.returncode == 1
    assert (
        "epsilon: expected a number greater than 0"
        in done.stdout + done.stderr
    )
    assert not (tmp_path / "results").exists()


def test_what_is_asked_for_together_or_apart_is_no_reason_to_run_again(
    finished,
):
    """The problem that a data set is fetched for may be another paper's."""
    folder = finished[0]
    done = snakemake(folder, 1, "-n", "dpcd", set=SMALL)  # nor is a second run
    assert "Nothing to be done" in done.stdout + done.stderr, done.stdout
    done = snakemake(folder, 1, "-n", "dpcd", "claims", set=SMALL)
    assert (
        "fetch/diabetes" not in done.stdout
        and "params have changed" not in done.stdout
    )


@pytest.mark.long
def test_mtp_without_openml_is_an_empty_panel_beside_the_others(
    tmp_path, monkeypatch
):
    """Snakemake goes on without the data; what comes then runs in one process."""
    monkeypatch.delenv("DPERM_MIRROR", raising=False)
    settings = tmp_path / "home/openml/config"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        "server = http://127.0.0.1:9/api/v1/xml\nconnection_n_retries = 1\n"
        f"cachedir = {tmp_path / 'home/cache'}\n"
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    given = ["paper.small_problems=[sparse_small,mtp]", "data.retries=0"]
    given += [f"scale.keep.{axis}=1" for axis in ("passes", "step", "clip")]
    done = snakemake(
        tmp_path, 2, "--until=optimum", "dpgcd", set=" ".join(given)
    )
    assert done.returncode == 0, done.stderr[-3000:]
    given += ["paper=dpgcd", *without_sweeps()]
    runs = plan.runs(compose([*given, "scale=smoke"]).paper)
    solves = (
        f"solve problem={problem} solver={name}" for problem, name in runs
    )
    figure = "figure formats=[svg]"
    done = stages(
        tmp_path, 2, given, *solves, "timing", figure, "table", "complete"
    )
    assert done.returncode == 1
    last = done.stderr[-3000:]
    assert "IncompleteError: made all but" in last and "mtp: " in last, last
    folder = tmp_path / "figures/smoke/dpgcd"
    results = tmp_path / "results/smoke/dpgcd"
    for name in ("figure1", "figure3"):  # mtp alone; both, for want of its own
        drawn = (folder / f"{name}.svg").read_text()  # on demand
        assert "data not available" in drawn and "openml" not in drawn
    curves = pd.read_csv(folder / "figure3.csv")
    assert set(curves["panel"]) == {"sparse_small"}
    assert set(curves["algorithm"]) == {"DP-CD", "DP-SGD", "DP-GCD, GS-r"}
    status = pd.read_csv(results / "table1.csv").set_index("problem")["status"]
    assert (status["sparse_small"], status["mtp"]) == ("ok", "not available")
    assert all((folder / f"figure{k}.svg").exists() for k in (2, 3, 4))
    assert all((results / f"table{k}.csv").exists() for k in (2, 3, 4))
    assert not (results / "complete.txt").exists()


TIMERS = """
from snakemake import cli
from snakemake.scheduling import job_scheduler

made = []
known = job_scheduler.JobScheduler._schedule_reevalutation
job_scheduler.JobScheduler._schedule_reevalutation = lambda *given: made.append(given)
try:
    cli.main()
finally:
    print("timers:", len(made))
"""


@pytest.mark.long
def test_no_job_leaves_a_timer(tmp_path):
    words = ("-s", ROOT / "Snakefile", "--directory", tmp_path, "-q", "all", "-j", "1",
             "data/prepared/diabetes/meta.json", "--config", "scale=smoke")  # fmt: skip
    done = python("-c", TIMERS, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "timers: 0" in done.stdout
