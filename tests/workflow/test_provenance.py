"""A key changes with the code behind a result, by modules, and with nothing else."""

import functools
import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from dperm.config import config as configuration
from dperm.config import schema
from dperm.config.locate import available
from dperm.experiments import digests, inputs, plan
from dperm.experiments.stages import SweepRun
from dperm.experiments.task import part_key
from dperm.experiments.tune import tuning_tasks
from dperm.problems import losses
from dperm.storage import source_code
from dperm.workflow import jobs
from weekly import spread


@pytest.fixture(scope="module", autouse=True)
def read_once():
    """What a text holds is kept by ``forget``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_code, "READ", functools.cache(source_code.READ))
        source_code.forget()
        yield
    source_code.forget()


@functools.cache
def of_today(made):
    """What a function of digests returns, of the sources as they are."""
    source_code.forget()
    return made()


@pytest.fixture
def edited(monkeypatch):
    """What a function of digests returns, before and with a module edited."""

    def digest(made, module: str, old: str, new: str):
        before = of_today(made)
        origin, read = (
            Path(importlib.util.find_spec(module).origin),
            Path.read_text,
        )
        assert old in read(origin)

        def changed(path, *given, **named):
            text = read(path, *given, **named)
            return text.replace(old, new) if path == origin else text

        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_text", changed)
            source_code.forget()
            after = made()
        source_code.forget()
        return before, after

    return digest


def table(*papers: str) -> dict[str, str]:
    found = jobs.compose(papers or ["dpcd"], ["scale=smoke"]).jobs
    return {name: job.key for name, job in found.items()}


def moved(before, after) -> set[str]:
    """Stages whose keys changed."""
    assert before.keys() == after.keys()
    return {
        name.split("/")[0] for name in before if before[name] != after[name]
    }


PRIVACY = "dperm.privacy"
PRICES = f"{PRIVACY}.accountants"
BELOW_TUNING = {"solve", "timing", "sweep", "draw", "complete"}


@pytest.mark.parametrize(
    ("module", "old", "new", "stages"),
    [
        # the published Renyi formula
        (f"{PRICES}.tight", "2 * math.sqrt", "3 * math.sqrt", BELOW_TUNING),
        (f"{PRICES}.pld", "return ", "return (), ", BELOW_TUNING),
        ("dperm.solvers.batched.dp_cd", "count=count", "count=1", BELOW_TUNING),
        ("dperm.problems.optimum", "1e-10  #", "1e-9  #", {"optimum", *BELOW_TUNING}),
        ("dperm.data.preparing", "(X != 0.0)", "(X > 0.0)",
         {"prepare", "optimum", *BELOW_TUNING}),
    ],
)  # fmt: skip
def test_an_edit_reaches_every_stage_below_and_none_above(
    edited, module, old, new, stages
):
    before, after = edited(table, module, old, new)
    assert moved(before, after) == stages


def test_what_is_solved_depends_on_the_versions_of_libraries(monkeypatch):
    before, versions = table(), {**source_code.versions(), "numba": "0"}
    monkeypatch.setattr(source_code, "versions", lambda: versions)
    source_code.digest.cache_clear()
    assert moved(before, table()) >= BELOW_TUNING
    source_code.digest.cache_clear()


def test_an_edit_of_a_loss_makes_those_stale_whose_problem_has_it(edited):
    edit = (
        "dperm.problems.losses.logistic",
        "softplus(-v)",
        "2.0 * softplus(-v)",
    )
    before, after = edited(table, *edit)
    optima = {name for name in before if name.startswith("optimum/")}
    stale = {name for name in before if before[name] != after[name]}
    assert 0 < len(stale & optima) < len(optima) and "solve" in moved(
        before, after
    )


def test_what_is_added_makes_no_other_stage_stale(
    tmp_path, monkeypatch, all_jobs
):
    """A solver of a user's own, and another file of a loss."""
    before = {name: job.key for name, job in all_jobs("smoke").jobs.items()}
    (tmp_path / "solver").mkdir()
    text = "name: twin\nlabel: DP-CD\nalgorithm: dp_cd\n"
    (tmp_path / "solver/twin.yaml").write_text(text)
    monkeypatch.setenv("DPERM_CONF", str(tmp_path))
    another = {"another": losses.PLACES["logistic"]}
    monkeypatch.setattr(losses, "PLACES", losses.PLACES | another)
    after = table(*available("paper"))
    stale = [name for name, key in before.items() if after[name] != key]
    assert stale == ["audit/epsilon"]  # the table of all solvers
    assert len(before) > 150 and set(after) - set(before) == {
        "audit/solvers/twin"
    }


# --- what is behind a key -------------------------------------------------------------


@functools.cache
def settings(algorithm="dp_cd"):
    """Digest of the code behind a solver's settings."""
    return lambda: digests.solver(algorithm, "logistic")


@functools.cache
def audit(part):
    """Key of the job of an audit."""

    def made():
        found = jobs.Jobs("")
        jobs.add_audits(found, schema.Config(seed=None))
        return found.jobs[f"audit/{part}"].key

    return made


def product(paper, collection, name):
    """Key of the job of a figure, table or sweep of a paper."""

    def made():
        found = jobs.compose([paper], [])
        if collection == "sweeps":
            return found.job("sweep", paper, name).key
        return found.makers[
            found.formats(paper, f"{collection}/{name}")[0]
        ].key

    return made


def job(paper, *name):
    """Key of a job of a paper at the smallest scale."""
    return lambda: jobs.compose([paper], ["scale=smoke"]).job(*name).key


def data_keys(dataset, loss="logistic") -> tuple[str, ...]:
    """Keys of the jobs that fetch, prepare and solve a problem on a data set."""
    problem = schema.ProblemSection(name="own", dataset=dataset, loss=loss)
    found = jobs.Jobs("")
    jobs.add_problem(found, schema.Config(), problem)
    return tuple(job.key for job in found.jobs.values())


def fetched(digest):
    """Key of the job that fetches a data set with a declared digest, or without."""
    return lambda: data_keys(schema.Dataset("some", digest=digest))[0]


RATES = product("dpsco", "sweeps", "rates")
SOLVE = job("dpcd", "solve", "dpcd", "diabetes", "dp_cd")
TIMES = job("dpcd", "timing", "dpcd")
OPTIMUM = job("dpcd", "optimum", "diabetes")
FIGURE, TABLE = (product("dpcd", collection, name) for collection, name in
                 (("figures", "figure1"), ("tables", "table2")))  # fmt: skip
JUMP = (
    "dperm.solvers.batched.dp_svrg",
    "+ jump[setting]",
    "+ 0.5 * jump[setting]",
)
READING = ("dperm.data.arrays", "def canonical(X", "def canonical(_X")
CITED = ("dperm.papers.dpsco.sweeps", "cited = min(", "cited = max(")
COUNTS = [  # key, module with what its functions return or an old and a new text
    (
        settings(),
        ("dperm.problems.problem", "loss_sum / n", "loss_sum / (n + 0)"),
    ),
    (
        settings("dp_svrg"),
        ("dperm.solvers.batched.engine", "DIVERGED = 10", "DIVERGED = 9"),
    ),
    (
        settings(),
        (
            "dperm.numerics.compiled",
            "1.4426950408889634",
            "1.4426950408889635",
        ),
    ),
    (
        audit("solvers/dp_svrg"),
        JUMP,
    ),  # half the noise of an epoch's full gradient
    (
        audit("solvers/dp_cd"),
        ("dperm.solvers.batched.dp_cd", "count=count", "count=1"),
    ),
    (audit("tuning"), ("dperm.privacy.private_selection",)),
    (fetched(None), READING),
    (RATES, ("dperm.solvers.single_pass.sources",)),
    (RATES, ("dperm.solvers.single_pass.sco_dp_sgd",)),
    (RATES, ("dperm.privacy.mechanisms.generalised_gaussian",)),
    (product("dpsco", "sweeps", "gradients"), CITED),
    (
        product("dpskgd", "sweeps", "regimes"),
        ("dperm.solvers.batched.dp_sgd",),
    ),
    (FIGURE, ("dperm.plotting.drawing",)),
    (FIGURE, ("dperm.experiments.results",)),
    (TABLE, ("dperm.plotting.tables",)),
    # how seeds are made, which are evaluated and timed, and the digits of numbers
    (
        settings(),
        ("dperm.experiments.plan", "/{float(passes)!r}/", "/{passes!r}:"),
    ),
    (SOLVE, ("dperm.experiments.tune", "= design.fresh", "= 1")),
    (SOLVE, ("dperm.experiments.plan", '("tune", 0)', '("tune", 1)')),
    (TIMES, ("dperm.experiments.stages", "count = min(", "count = 1 + min(")),
    (
        RATES,
        (
            "dperm.experiments.stages",
            '"sweep", config.paper.name',
            '"swept", ""',
        ),
    ),
    (RATES, ("dperm.storage.files",)),
    (OPTIMUM, ("dperm.experiments.inputs", "gap / solution.value", "gap")),
    (FIGURE, ("dperm.storage.files", "DIGITS = 10", "DIGITS = 9")),
    (TABLE, ("dperm.storage.files", "DIGITS = 10", "DIGITS = 9")),
    # the key by which a price is found is an annotation
    (
        SOLVE,
        (f"{PRICES}.tight", "event: Laplace", "event: SampledGaussian"),
    ),
]
COUNTS_NOT = [
    # of settings no accountant, plumbing or optimum
    (settings(), (f"{PRICES}.tight", "2 * math.sqrt", "3 * math.sqrt")),
    (
        settings("dp_svrg"),
        (f"{PRIVACY}.calibration", "MIN_NOISE = 2.0", "MIN_NOISE = 3.0"),
    ),
    (settings(), ("dperm.experiments.tune", "LEADERS = 16", "LEADERS = 15")),
    (settings(), ("dperm.experiments.inputs", "run again", "run it again")),
    (settings(), ("dperm.problems.optimum", "1e-10  #", "1e-9  #")),
    (audit("solvers/dp_cd"), JUMP),  # another batched solver
    (fetched("sha256:" + "0" * 64), READING),
    (RATES, CITED),  # of another sweep
    (RATES, ("dperm.papers.dpskgd.tables",)),
    (RATES, ("dperm.papers.dpskgd.sweeps",)),
    (RATES, ("dperm.config.config",)),
]


@pytest.mark.parametrize(
    ("made", "edit", "counts"),
    spread(
        [*((*c, True) for c in COUNTS), *((*c, False) for c in COUNTS_NOT)]
    ),
)
def test_an_edit_counts_where_it_is_behind_a_key(edited, made, edit, counts):
    module, *texts = edit
    text = Path(importlib.util.find_spec(module).origin).read_text()
    other = text.replace("return ", "return (), ").replace(
        "yield ", "yield (), "
    )
    before, after = edited(made, module, *(texts or (text, other)))
    assert (before != after) is counts


def test_data_of_ones_own_count_by_content_name_and_options(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("one.csv", "two.csv"):
        Path(name).write_text("a,y\n1,2\n")

    def made(**keys):
        source = schema.Source(origin="file", files=["one.csv"])
        return data_keys(
            schema.Dataset("own", sources=[replace(source, **keys)])
        )

    before = made()
    changed = [
        made(files=["two.csv"]),
        made(members=["x"]),
        made(options={"n": 1}),
    ]
    Path("one.csv").write_text("a,y\n1,3\n")
    changed.append(made())
    for after in changed:
        assert not set(before) & set(after)
    assert len(set(changed)) == 4


def test_where_data_come_from_is_no_matter_where_they_have_a_digest():
    known = schema.Dataset("some", digest="sha256:" + "0" * 64)
    other = replace(known, sources=[schema.Source(origin="openml", id=3)])
    one, two = data_keys(known), data_keys(other)
    assert one[0] != two[0] and one[1:] == two[1:]


def test_a_product_depends_on_the_printed_numbers(monkeypatch):
    before, read = TABLE(), Path.read_text

    def printed(path, *given, **named):
        text = read(path, *given, **named)
        return (
            f"{text}\n"
            if path.suffix == ".csv" and "conf" in path.parts
            else text
        )

    monkeypatch.setattr(Path, "read_text", printed)
    assert TABLE() != before


def test_an_edit_of_a_solvers_options_computes_its_points_again(monkeypatch):
    config = configuration.compose(["paper=dpsco"])

    def keys():
        return {
            (point["solver"], point["n"], point["d"], replicate): key
            for point, replicate, key in SweepRun(config, "rates").tasks()
        }

    before, whole, known = keys(), RATES(), digests.section

    def changed(group, name, *overrides):
        found = known(group, name, *overrides)
        if name != "noisy_sfw":
            return found
        return replace(found, options={**found.options, "batch": "all"})

    monkeypatch.setattr(digests, "section", changed)
    after = keys()
    assert {at[0] for at in before if before[at] != after[at]} == {"noisy_sfw"}
    assert RATES() != whole


def test_a_wider_grid_is_no_other_setting(configured):
    """What triggers a stage is more than what determines a setting."""

    def keys():
        tasks = tuning_tasks(job, plan.design(config))
        return [part_key(job, task) for task in tasks]

    config = configured()
    job = inputs.load_job(config)
    (job.folder).mkdir(parents=True)
    before = keys()
    config.paper.runs["dp_cd"].grid["clip"] = [1.0]
    assert keys() == before
    one, other = (jobs.compose(["dpcd"], ["scale=smoke", *text]) for text in
                  ([], ["scale.keep.clip=5"]))  # fmt: skip
    name = ("solve", "dpcd", "diabetes", "dp_cd")
    assert one.job(*name).key != other.job(*name).key


def test_a_folder_named_like_a_word_of_the_package_is_in_no_key():
    """Such as the folder ``solvers`` of these tests, which is on Python's path."""
    found = importlib.util.find_spec("solvers")
    assert Path(found.origin).is_relative_to(Path(__file__).parents[1])
    assert "solvers" not in digests.looked_up(
        jobs.OPTIMISING, option_words=["least_squares"]
    )
