"""The jobs have what stages read and write, all of it and nothing else."""

import functools
import graphlib
import json
import shlex
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from changing import changed
from dperm.config import locate
from dperm.config.config import compose
from dperm.config.locate import ConfigError, available
from dperm.data.fetching import FetchRecord
from dperm.experiments import makers, plan, products, results, stages
from dperm.experiments.auditing import PRODUCTS
from dperm.experiments.inputs import Inputs
from dperm.experiments.task import PROVENANCE
from dperm.papers.dpcd import tables
from dperm.papers.shared import figures
from dperm.storage import files as store
from dperm.workflow import jobs, workflow
from dperm.workflow.jobs import Jobs

ONLY = (  # of the sweeps and tables that are of no problem, none
    "paper.small_problems=[diabetes]",
    "~paper.sweeps.lower_bound",
    "~paper.tables.lower_bound",
    "paper.figures.figure3.problems=[diabetes]",
)
SMALL = ("paper=dpcd", *ONLY, "scale.keep.clip=2")
PAPERS = ["dpbcfw", "dpcd", "dpgcd"]


@pytest.fixture(scope="module", params=available("scale"))
def whole(request, all_jobs):
    """The jobs of all papers at a scale; the README begins with quickstart."""
    return all_jobs(request.param)


# --- all papers -----------------------------------------------------------------------


def test_every_input_has_one_job_that_makes_it_before(whole):
    makers = [
        (file, job) for job in whole.jobs for file in whole.jobs[job].outputs
    ]
    maker = dict(makers)
    assert len(maker) == len(makers), "no file is made twice"
    after = {
        name: {maker[file] for file in job.inputs}
        for name, job in whole.jobs.items()
    }
    assert set(graphlib.TopologicalSorter(after).static_order()) == set(
        whole.jobs
    )
    assert all(job.key for job in whole.jobs.values())
    assert set(PRODUCTS) == set(jobs.AUDITED)


# --- one paper ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def once(data_dir, tmp_path_factory):
    """A folder with all rows of the paper on one problem."""
    folder = tmp_path_factory.mktemp("solved")
    where = [
        *SMALL,
        f"data.dir={data_dir}",
        f"output.results={folder}",
        "scale=smoke",
    ]
    for problem, solver in plan.runs(compose(where).paper):
        stages.solve(
            compose([*where, f"problem={problem}", f"solver={solver}"])
        )
    stages.timing(compose(where))
    return folder


@pytest.fixture
def solved(once, configured, tmp_path):
    """Composes a configuration whose rows are all there, in a folder of one's own."""
    shutil.copytree(once, tmp_path / "results")
    return functools.partial(configured, *SMALL)


def test_products_read_their_inputs_and_nothing_else(
    solved, monkeypatch, tmp_path
):
    """Whatever is read and is no input would not be there, or be of an older run."""
    config, read = solved(), set()
    plain = store.read_table

    def noted(path):
        read.add(f"results/{path.relative_to(tmp_path / 'results')}")
        return plain(path)

    monkeypatch.setattr(store, "read_table", noted)
    drawn, seen = jobs.compose(["dpcd"], ["scale=smoke", *SMALL[1:]]), set()
    for kind in ("figures", "tables"):
        for name in getattr(config.paper, kind):
            read.clear()
            products.write(config, kind, name)
            job = drawn.makers[drawn.formats("dpcd", f"{kind}/{name}")[0]]
            assert read <= set(job.inputs), name
            seen |= read
    assert len(seen) == 2 * 2 + 1, "tunings, evaluations and the timings"


def test_one_process_draws_what_is_asked_for(
    solved, monkeypatch, tmp_path, capsys
):
    monkeypatch.chdir(tmp_path)
    asked = solved("drawn=[tables/table1,tables/table3]")
    assert {path.stem for path in products.draw(asked)} == {"table1", "table3"}
    assert capsys.readouterr().out == ""
    (path,) = products.table(solved("product=table1"))
    assert path.name == "table1.csv", "a table asked for by name is printed"
    assert "\n| problem " in capsys.readouterr().out
    for slip in ("noise", "tables/", "maps/noise"):
        with pytest.raises(ConfigError, match="expected figures/name"):
            products.draw(solved(f"drawn=[{slip}]"))


def test_rows_are_those_of_evaluation_but_for_their_seconds(solved):
    timed = pd.read_parquet(stages.timing(solved()))
    # of the products that show time
    assert set(timed["calibration"]) == {"published"}
    assert set(timed["solver"]) == {"dp_cd", "dp_sgd"}
    assert (timed.loc[timed["checkpoint"] > 0, "seconds"] > 0).all()
    folder = Path(solved().output.results, "dpcd", "diabetes")
    fresh = pd.concat(
        pd.read_parquet(folder / solver / "evaluate.parquet")
        for solver in ("dp_cd", "dp_sgd")
    )
    fresh = fresh[fresh["calibration"] == "published"].drop(columns=PROVENANCE)
    # the first runs of each
    fresh = fresh[fresh["replicate"].isin(timed["replicate"])]
    both = timed.drop(columns=PROVENANCE).merge(fresh, how="inner")
    assert len(both) == len(timed) == len(fresh)
    once = pd.read_parquet(
        stages.timing(changed(solved(), "paper.clocked", 1))
    )
    assert set(timed["replicate"]) == {0, 1, 2} and set(once["replicate"]) == {
        0
    }


def placed(config):
    """A paper, its folder of results, and what finds its problems."""
    folder = Path(config.output.results, config.paper.name)
    return config.paper, folder, Inputs(config.data, config.overrides)


def trajectories(config, product):
    return figures.trajectories(
        *placed(config), product, ["diabetes"], **product.options
    )


def test_a_figure_and_a_table_show_what_was_clocked(solved):
    """Made from rows whose seconds are told apart from those of evaluation."""
    path = Path(solved().output.results, "dpcd", "timing.parquet")
    known = pd.read_parquet(path).assign(
        seconds=lambda t: 100.0 + t["checkpoint"]
    )
    store.write_table(path, known)
    paper = solved().paper
    product = paper.figures["figure3"]
    picture = trajectories(solved(), product)
    clocked = {round(100.0 + at, 9) for at in known["checkpoint"]}
    curves = picture.rows[picture.rows["role"] == "curve"]
    assert {round(x, 9) for x in curves["x"]} <= clocked and len(curves) > 2
    folder = placed(solved())[1]
    table = tables.runtime(paper, folder, paper.tables["table3"], ["diabetes"])
    assert (table["mean"] == 100.0 + table["passes"]).all() and len(table) == 4


def test_seconds_are_shown_only_where_they_are_asked_for(solved):
    product = changed(solved().paper.figures["figure3"], "timed", False)
    with pytest.raises(ConfigError, match="timed: true"):
        trajectories(solved(), product)
    paper, folder, _ = placed(solved())
    (found,) = results.load(paper, folder, ["diabetes"], solvers=["dp_cd"])[
        "diabetes"
    ]
    with pytest.raises(ValueError, match="without seconds"):
        found.clocked("published", 2.0)


def test_a_small_scale_leaves_out_sweeps_of_problems_that_it_does_not_run():
    given = [
        "paper=dpcd",
        "scale=smoke",
        "paper.sweeps.epsilon.small.problem=",
    ]
    narrow = "paper.small_problems=[diabetes]"
    whole, left = compose(given[:2]), compose([*given[:2], narrow])
    assert (
        "ablation" in whole.paper.sweeps and "thresholds" in whole.paper.tables
    )
    assert (
        "ablation" not in left.paper.sweeps
        and "thresholds" not in left.paper.tables
    )
    mixed = compose(
        [*given[:2], narrow, f"{given[2]}[diabetes,breast_cancer]"]
    )
    points = mixed.paper.sweeps["epsilon"].grid
    assert {point["problem"] for point in points} == {"diabetes"}


# --- which papers ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("-n dpcd", ["dpcd"]),
        (
            "dpcd -j 2 --config scale=smoke set='paper.fresh=2 seed=1'",
            ["dpcd"],
        ),
        ("-j 1 figures/dpcd/figure1.png", ["dpcd"]),
        ("-j 1 --target-jobs tune:paper=dpcd,problem=a,solver=b", ["dpcd"]),
        ("-j 1 --target-jobs prepare:problem=a", PAPERS),
        ("-n", PAPERS),
        ("dpcd claims report -j 2", ["dpcd"]),
        ("claims -j 2", PAPERS),
        ("results/audit/solvers/dpcd.csv", PAPERS),
        ("results/dpcd/dpgcd/dp_cd/tune.parquet", PAPERS),
        ("data/prepared/dpcd/meta.json", PAPERS),
    ],
)
def test_papers_asked_for(line, found):
    for program in ("/x/bin/snakemake", "/x/snakemake/__main__.py"):
        assert (
            workflow.papers_of([program, *shlex.split(line)], PAPERS) == found
        )
    assert workflow.papers_of(["pytest", "dpcd"], PAPERS) == PAPERS


def test_overrides_reach_a_shell_as_they_are():
    given = [
        "a=$HOME *",
        "b=x|touch y",
        "c='it''s'",
        'd="x, y"',
        "e=`id`;f",
        "g=\\n",
    ]
    settings = {"scale": "smoke", "set": shlex.join(given)}
    found = workflow.overrides(settings)
    assert found == ["scale=smoke", *given]
    echo = ["bash", "-c", f"printf '%s\\n' {shlex.join(found)}"]
    done = subprocess.run(echo, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == found
    stripped = {
        **settings,
        "set": settings["set"].strip("'"),
    }  # as Snakemake does
    command = ["dperm", f"set={settings['set']}", "-n"]
    assert workflow.overrides(stripped, command) == found
    with pytest.raises(
        ConfigError, match="--config: set: a='b: expected quotes"
    ):
        workflow.overrides({"set": "a='b"})
    with pytest.raises(
        ConfigError, match="--config: expected one of scale, set"
    ):
        workflow.overrides({"scal": "smoke"})


MOVED = ["output.results=/x", "+output.results=x", "output={results: x}", "data.dir=y",
         "hydra.run.dir=/x", "++hydra.run.dir=x", "scale.folder=z", "~seed", "~data",
         "~output"]  # fmt: skip


@pytest.mark.parametrize("word", MOVED)
def test_a_pipeline_takes_no_key_that_moves_its_files(word):
    with pytest.raises(
        ConfigError, match=r"^--config: set: .*: expected a key"
    ) as told:
        workflow.overrides({"set": shlex.join([word])})
    assert word in str(told.value) and "\n" not in str(told.value)


def test_a_small_scale_does_not_write_over_the_full_results(
    tmp_path, monkeypatch
):
    shutil.copytree(locate.home() / "conf", tmp_path / "conf")
    (tmp_path / "conf/scale/smoke.yaml").write_text(
        "name: smoke\nproblems: small\n"
    )
    monkeypatch.setenv("DPERM_CONF", str(tmp_path / "conf"))
    with pytest.raises(
        ConfigError, match=r"scale/smoke\.yaml: folder: expected"
    ):
        jobs.compose(["dpcd"], ["scale=smoke"])


def test_an_executor_without_cores_has_those_of_this_machine():
    settings = SimpleNamespace(resource_settings=SimpleNamespace(cores=None))
    assert workflow.cores(settings) >= 1
    settings.resource_settings.cores = 3
    assert workflow.cores(settings) == 3


@pytest.mark.parametrize(
    ("words", "is_whole"),
    [
        ("", True),
        ("all -j 2", True),
        ("dpcd", False),
        ("figures/dpcd/figure1.png", False),
    ],
)
def test_only_a_run_of_all_papers_is_whole(words, is_whole):
    assert workflow.is_whole(["snakemake", *words.split()]) is is_whole


# --- a paper that is broken -----------------------------------------------------------


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of conf/ in a folder that is worked in."""
    shutil.copytree(locate.home() / "conf", tmp_path / "whole")
    monkeypatch.setenv("DPERM_CONF", str(tmp_path / "whole"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "whole"


def test_what_is_wrong_elsewhere_stops_nobody(copied):
    (copied / "paper/dpgcd/paper.yaml").write_bytes(b"\xff\xfe")
    (copied / "solver/dp_gcd.yaml").write_bytes(b"algorithm: {")
    assert jobs.compose(["dpcd"], ["scale=smoke"]).papers == ["dpcd"]
    with pytest.raises(ConfigError, match=r"conf/paper/dpgcd/paper\.yaml"):
        jobs.compose(["dpcd", "dpgcd"], ["scale=smoke"])
    with pytest.raises(
        ConfigError, match=r"sweeps\.tuning_law\.grid: .*dp_cd on elec"
    ):
        jobs.compose(["dpcd"], ["scale=full", "~paper.runs.dp_cd"])


def test_a_folder_that_stands_alone_has_modules_of_its_papers(copied):
    paper = copied / "paper/alone"
    paper.mkdir()
    (paper / "tables.py").write_text("def errors(*given):\n    return None\n")
    (paper / "paper.yaml").write_text(
        "name: alone\nproblems: [diabetes]\nruns: {}\n"
        "tables: {one: {function: errors}}\n"
    )
    table = jobs.compose(["alone"], ["scale=full"])
    assert table.job("draw", "alone", "tables/one").products == ["tables/one"]
    assert makers.function_of("alone", "tables", "errors")() is None


# --- what Snakemake is told -----------------------------------------------------------


@pytest.fixture
def few(tmp_path, monkeypatch):
    """A paper with a timed sweep and another, and a run, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    few = Jobs("", ["one"], dataset_of={"a": "wines"})
    few.add("fetch", "wines", depends_on=1)
    few.add("prepare", "a", depends_on=1, reads=few.files("fetch", "wines"))
    few.add("optimum", "a", depends_on=1, reads=few.files("prepare", "a"))
    reads = few.files("optimum", "a")
    few.add("solve", "one", "a", "s", depends_on=1, work=5e5, reads=reads)
    few.add("sweep", "one", "long", depends_on=1)
    few.add("sweep", "one", "clock", depends_on=1, alone=True)
    few.add("timing", "one", depends_on=1, alone=True)
    return few


def fetched(few, status="ok", nnz=0):
    path = Path(*few.files("fetch", "wines"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(vars(FetchRecord("wines", status, "", 1, 1, nnz=nnz)))
    )


def test_another_machine_reads_the_jobs_that_were_composed(few):
    """It composes nothing, and a run with other overrides has other jobs."""
    given = ["scale=full", "seed=7"]
    few.job("solve", "one", "a", "s").products.append("tables/x")
    workflow.write_job_list(few, given)
    assert workflow.read_job_list(given) == few
    assert workflow.read_job_list(["scale=full"]) is None


def test_threads_follow_from_passes_and_entries(few):
    asked = []
    for entries in (0, 20000, 3624960, 10**9):
        fetched(few, nnz=entries)
        asked.append(workflow.threads(few, "solve", "one", "a", "s"))
    assert asked == [1, 1, 4, workflow.MAX_THREADS]


def test_what_is_timed_leaves_cores_idle(few):
    for stage, *values, working, threads in (
        ("sweep", "one", "long", 4, workflow.SWEEP_THREADS),
        ("sweep", "one", "clock", 1, workflow.TIMED_CORES),
        ("timing", "one", 1, workflow.TIMED_CORES),
    ):
        assert workflow.threads(few, stage, *values) == threads
        assert (
            workflow.workers(few.job(stage, *values), stage, threads)
            == working
        )
    assert workflow.workers(few.job("sweep", "one", "clock"), "sweep", 2) == 1


def test_threads_follow_from_what_an_earlier_run_measured(few):
    def asked(stage, *values, **cost):
        name = "/".join((stage, *values))
        few.costs = {name: cost} if cost else {}
        return workflow.threads(few, stage, *values)

    enough, few.cores = workflow.SECONDS, 1000
    assert asked("sweep", "one", "long", cpu_seconds=3 * enough) == 3
    whole = {"cpu_seconds": 6 * enough, "longest_seconds": 2 * enough}
    assert asked("sweep", "one", "long", **whole) == 3, "a part is not split"
    assert (
        asked("sweep", "one", "long", cpu_seconds=1e6) == workflow.MAX_THREADS
    )
    assert asked("solve", "one", "a", "s", cpu_seconds=2 * enough) == 2
    threads = asked("sweep", "one", "clock", cpu_seconds=2 * enough)
    assert threads == 2 * workflow.TIMED_CORES
    assert asked("optimum", "a", cpu_seconds=1e6) == 1
    few.cores = 1  # half of a run ends in a piece of it
    half = {"cpu_seconds": 1e6}
    few.costs = {"sweep/one/long": half, "optimum/a": half}
    threads = workflow.threads(few, "sweep", "one", "long")
    assert threads == workflow.PIECES / 2 < workflow.MAX_THREADS


def test_long_jobs_begin_first(few):
    few.costs = {"sweep/one/long": {"cpu_seconds": 500.0}}
    short, long = (workflow.priority(few, f"sweep/one/{name}")
                   for name in ("clock", "long"))  # fmt: skip
    assert short < long < workflow.priority(few, "solve/one/a/s")


def test_a_data_set_that_was_not_to_be_had_is_asked_for_again(few):
    first = workflow.key(few, "fetch", "wines")
    fetched(few)
    assert workflow.key(few, "fetch", "wines") == first
    fetched(few, "unavailable")
    assert workflow.key(few, "fetch", "wines") != first


def test_data_are_old_where_no_row_was_made_of_them(few):
    """A clone has figures and no rows: data of a smoke run leave them as they are."""
    fetched(few)
    data = Path(*few.files("fetch", "wines"))
    rows = Path(few.files("solve", "one", "a", "s")[0])
    made = data.stat().st_mtime
    rows.parent.mkdir(parents=True)
    rows.touch()
    workflow.backdate_data(few)
    assert data.stat().st_mtime == made
    rows.unlink()
    workflow.backdate_data(few)
    assert data.stat().st_mtime == workflow.LONG_AGO
