"""The jobs have what stages read and write, all of it and nothing else."""

import graphlib

import pytest

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan
from dperm.core.experiment.locate import ConfigError, available
from dperm.pipeline import jobs, products, stages
from dperm.pipeline.jobs import Jobs

ONLY = (  # of the sweeps and tables that are of no problem, none
    *("paper.offline=[diabetes]", "~paper.sweeps.lower_bound"),
    "~paper.tables.lower_bound",
)
SMALL = ("paper=dpcd", *ONLY, "scale.keep.clip=2")


@pytest.fixture(scope="module", params=available("scale"))
def whole(request):
    """The jobs of all papers at a scale; the README begins with quickstart."""
    return jobs.compose(available("paper"), [f"scale={request.param}"])


def ancestors(whole, files):
    """Files with all files that they are made of, directly or not."""
    maker = {file: job for job in whole.jobs.values() for file in job.outputs}
    found, left = set(), [*files]
    while left:
        file = left.pop()
        if file not in found:
            found.add(file)
            left += maker[file].inputs
    return found


# --- all papers -----------------------------------------------------------------------


def test_every_input_has_one_job_that_makes_it_before(whole):
    makers = [(file, job) for job in whole.jobs for file in whole.jobs[job].outputs]
    maker = dict(makers)
    assert len(maker) == len(makers), "no file is made twice"
    after = {
        name: {maker[file] for file in job.inputs} for name, job in whole.jobs.items()
    }
    assert set(graphlib.TopologicalSorter(after).static_order()) == set(whole.jobs)
    assert all(job.key for job in whole.jobs.values())


def test_what_everything_ends_in_is_made_of_all(whole):
    everything = ancestors(whole, whole.job("report").outputs)
    for paper in whole.papers:
        assert everything >= set(whole.rows(paper))
        complete = set(whole.job("complete", paper).inputs)
        assert complete == set(whole.products(paper)) <= everything
        drawn = {file for job in whole.of_paper(paper, "draw") for file in job.inputs}
        assert drawn <= set(whole.rows(paper))
    audited = whole.job("audit", "epsilon").inputs
    assert len(audited) == len(available("solver"))
    assert (set(audited) <= everything) == (not whole.folder)
    tuned = {
        file
        for job in whole.jobs.values()
        for file in job.outputs
        if file.endswith("tune.parquet")
    }
    assert set(whole.job("audit", "tuning").inputs) == tuned


def test_sweeps_start_from_tunings_that_their_paper_has(whole):
    for paper in whole.papers:
        known = {job.outputs[0] for job in whole.of_paper(paper, "solve")}
        for job in whole.of_paper(paper, "sweep"):
            tuned = {path for path in job.inputs if path.endswith("tune.parquet")}
            assert tuned <= known


def test_stages_called_by_themselves_have_the_keys_of_the_whole(whole):
    """A solver on a problem of every paper, its sweeps and timings."""
    if whole.folder != "smoke":
        pytest.skip("the same functions at the other scales")
    for name in whole.papers:
        config = configuration.compose([f"paper={name}", "scale=smoke"])
        paper = jobs.Paper(config)
        made = [paper.solve(*run) for run in plan.runs(config)[:1]]
        made += [*map(paper.sweep, config.paper.sweeps)]
        if whole.of_paper(name, "timing"):
            made.append(paper.timing())
        for job in made:
            assert whole.makers[job.outputs[0]] == job


# --- one paper ------------------------------------------------------------------------


def test_the_jobs_of_a_paper_and_what_they_read():
    table = jobs.compose(["dpcd"], ["scale=smoke", *ONLY])
    made, results = table.jobs, "results/smoke/dpcd"
    solvers = ("dp_cd", "dp_sgd")
    assert made["fetch/diabetes"].inputs == []
    assert made["prepare/diabetes"].inputs == ["data/fetched/diabetes/fetch.json"]
    assert made["optimum/diabetes"].inputs == ["data/prepared/diabetes/meta.json"]
    rows = []
    for solver in solvers:
        job = made[f"solve/dpcd/diabetes/{solver}"]
        assert job.inputs == ["data/optimum/diabetes/optimum.json"]
        assert job.outputs == [
            f"{results}/diabetes/{solver}/{name}.parquet"
            for name in ("tune", "evaluate")
        ]
        rows += job.outputs
    timed = made["timing/dpcd"]
    assert timed.alone and timed.outputs == [f"{results}/timing.parquet"]
    assert timed.inputs == [
        f"{results}/diabetes/{solver}/evaluate.parquet"
        for solver in ("dp_cd", "dp_sgd")
    ]
    drawn = {tuple(job.products): job.inputs for job in table.of_paper("dpcd", "draw")}
    assert drawn["figures/figure3", "tables/table3"] == rows + timed.outputs
    assert all(set(rows) <= set(inputs) for inputs in drawn.values())
    assert not {"claims", "report", "audit/epsilon"} & set(made), "of all papers"


@pytest.fixture
def solved(configured):
    """A configuration whose rows are all there."""
    config = configured(*SMALL)
    for problem, solver in plan.runs(config):
        stages.solve(configured(*SMALL, f"problem={problem}", f"solver={solver}"))
    stages.timing(config)
    return configured


def test_products_read_their_inputs_and_nothing_else(solved, monkeypatch):
    """Whatever is read and is no input would not be there, or be of an older run."""
    config, read = solved(*SMALL), set()
    plain = store.read_table

    def noted(path, *made):
        read.add(path)
        return plain(path, *made)

    monkeypatch.setattr(store, "read_table", noted)
    seen = set()
    made_by = {"figures": products.figure, "tables": products.table}
    for kind, make in made_by.items():
        for name in getattr(config.paper, kind):
            read.clear()
            make(solved(*SMALL, f"product={name}"))
            assert read <= set(products.inputs_of(config, kind, name)), name
            seen |= read
    assert len(seen) == 2 * 2 + 1, "tunings, evaluations and the timings"


def test_products_of_the_same_files_share_a_job():
    table = jobs.compose(["dpcd", "dpsco"], ["scale=smoke"])
    for paper in table.papers:
        drawn = table.of_paper(paper, "draw")
        assert len({tuple(job.inputs) for job in drawn}) == len(drawn)
        every = [each for job in drawn for each in job.products]
        assert len(set(every)) == len(every) and len(drawn) < len(every) / 2 + 4
        for job in drawn:
            formats = [products.FORMATS[each.split("/")[0]] for each in job.products]
            assert len(job.outputs) == sum(map(len, formats))
            assert len(job.shown) == len(job.products)
            assert set(job.shown) <= set(job.outputs)


def test_what_no_job_makes_is_refused():
    made = Jobs("")
    made.add("fetch", "a", of=1)
    with pytest.raises(ConfigError, match="job: expected one of fetch/a"):
        made.job("fetch", "b")
    with pytest.raises(ConfigError, match=r"file: .*else\.json.*"):
        made.add("prepare", "a", of=1, reads=["data/else.json"])
