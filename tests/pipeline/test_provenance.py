"""A key changes with the code behind a result, by modules, and with nothing else."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from dperm.core.experiment import config as configuration
from dperm.core.experiment import plan, schema
from dperm.core.experiment.tune import tuning_units
from dperm.core.experiment.unit import part_key
from dperm.pipeline import digests, inputs, jobs
from dperm.pipeline.stages import Swept
from dperm.store import closure


@pytest.fixture
def edited(monkeypatch):
    """What a function of digests returns, before and with a module edited."""

    def digest(made, module: str, old: str, new: str):
        closure.forget()
        before = made()
        origin, read = Path(importlib.util.find_spec(module).origin), Path.read_text
        assert old in read(origin)

        def changed(path, *given, **named):
            text = read(path, *given, **named)
            return text.replace(old, new) if path == origin else text

        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_text", changed)
            closure.forget()
            after = made()
        closure.forget()
        return before, after

    return digest


def table() -> dict[str, str]:
    found = jobs.compose(["dpcd"], ["scale=smoke"]).jobs
    return {name: job.key for name, job in found.items()}


def moved(before, after) -> set[str]:
    """Stages whose keys changed."""
    assert before.keys() == after.keys()
    return {name.split("/")[0] for name in before if before[name] != after[name]}


PRIVACY = "dperm.core.privacy"
BELOW_TUNING = {"solve", "timing", "sweep", "draw", "complete"}


@pytest.mark.parametrize(
    ("module", "old", "new", "stages"),
    [
        # the published Renyi formula
        (f"{PRIVACY}.strict", "2 * math.sqrt", "3 * math.sqrt", BELOW_TUNING),
        ("dperm.core.privacy.pld", "return ", "return (), ", BELOW_TUNING),
        ("dperm.core.lanes.dp_cd", "count=count", "count=1", BELOW_TUNING),
        ("dperm.core.erm.optimum", "1e-10  #", "1e-9  #", {"optimum", *BELOW_TUNING}),
        ("dperm.data.preparing", "(X != 0.0)", "(X > 0.0)",
         {"prepare", "optimum", *BELOW_TUNING}),
    ],
)  # fmt: skip
def test_an_edit_reaches_every_stage_below_and_none_above(
    edited, module, old, new, stages
):
    before, after = edited(table, module, old, new)
    assert moved(before, after) == stages


@pytest.mark.parametrize("algorithm", ["dp_cd", "dp_svrg"])
@pytest.mark.parametrize(
    ("module", "old", "new", "counts"),
    [
        ("dperm.core.erm.problem", "found / n", "found / (n + 0)", True),
        ("dperm.core.lanes.engine", "DIVERGED = 10.0", "DIVERGED = 11.0", True),
        ("dperm.core.compiled", "1.4426950408889634", "1.4426950408889635", True),
        (f"{PRIVACY}.strict", "2 * math.sqrt", "3 * math.sqrt", False),
        (f"{PRIVACY}.calibration", "LEAST, MOST", "MOST, LEAST", False),
        ("dperm.core.experiment.tune", "LEADERS = 16", "LEADERS = 15", False),
        ("dperm.pipeline.inputs", "run again", "run it again", False),
        ("dperm.core.erm.optimum", "1e-10  #", "1e-9  #", False),
    ],
)
def test_lanes_depend_on_problem_and_engine_not_on_accountant_and_plumbing(
    edited, algorithm, module, old, new, counts
):
    made = edited(lambda: digests.lanes(algorithm, "logistic"), module, old, new)
    assert (made[0] != made[1]) is counts


def test_what_is_solved_depends_on_the_versions_of_libraries(monkeypatch):
    before, versions = table(), {**closure.versions(), "numba": "0"}
    monkeypatch.setattr(closure, "versions", lambda: versions)
    closure.digest.cache_clear()
    assert moved(before, table()) >= BELOW_TUNING
    closure.digest.cache_clear()


JUMP = ("dperm.solvers.lanes.dp_svrg", "+ jump[lane]", "+ 0.5 * jump[lane]")


@pytest.mark.parametrize(
    ("part", "edit", "counts"),
    [
        # half the noise of an epoch's full gradient
        ("solvers/dp_svrg", JUMP, True),
        ("solvers/dp_cd", JUMP, False),
        ("solvers/dp_cd", ("dperm.core.lanes.dp_cd", "count=count", "count=1"), True),
        ("tuning", ("dperm.accountants.private_choice", "def tuned_epsilon(",
         "def tuned_epsilon(_, "), True),
    ],
)  # fmt: skip
def test_an_audit_depends_on_the_solver_it_audits(edited, part, edit, counts):
    before, after = edited(audits, *edit)
    assert (before[f"audit/{part}"] != after[f"audit/{part}"]) is counts


def audits() -> dict[str, str]:
    found = jobs.Jobs("")
    jobs.add_audits(found)
    return {name: job.key for name, job in found.jobs.items()}


def data_keys(dataset, loss="logistic") -> tuple[str, ...]:
    """Keys of the jobs that fetch, prepare and solve a problem on a data set."""
    problem = schema.Problem(name="own", dataset=dataset, loss=loss)
    found = jobs.Jobs("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs.checks, "problem", lambda section: None)
        jobs.add_problem(found, schema.Config(problem=problem), "own")
    return tuple(job.key for job in found.jobs.values())


@pytest.mark.parametrize(("known", "counts"), [("0" * 64, False), (None, True)])
def test_code_that_reads_data_counts_where_no_digest_vouches(edited, known, counts):
    dataset = schema.Dataset("some", digest=known)
    given = ("dperm.data.arrays", "def canonical(X", "def canonical(_X")
    before, after = edited(lambda: data_keys(dataset)[0], *given)
    assert (before != after) is counts


def test_data_of_ones_own_count_by_content_name_and_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one.csv", "two.csv"):
        Path(name).write_text("a,y\n1,2\n")

    def made(**keys):
        source = schema.Source(kind="file", files=["one.csv"])
        return data_keys(schema.Dataset("own", sources=[replace(source, **keys)]))

    before = made()
    changed = [made(files=["two.csv"]), made(members=["x"]), made(options={"n": 1})]
    Path("one.csv").write_text("a,y\n1,3\n")
    changed.append(made())
    for after in changed:
        assert not set(before) & set(after)
    assert len(set(changed)) == 4


def test_where_data_come_from_is_no_matter_where_they_have_a_digest():
    known = schema.Dataset("some", digest="sha256:" + "0" * 64)
    other = replace(known, sources=[schema.Source(kind="openml", id=3)])
    one, two = data_keys(known), data_keys(other)
    assert one[0] != two[0] and one[1:] == two[1:]


# --- sweeps and products --------------------------------------------------------------


def product(paper, kind, name):
    """Key of the job of a figure, table or sweep of a paper."""

    def made():
        found = jobs.compose([paper], [])
        if kind == "sweeps":
            return found.job("sweep", paper, name).key
        return found.makers[next(iter(found.formats(paper, f"{kind}/{name}")))].key

    return made


def added(edited, made, module):
    """Whether it matters what the functions of a module return."""
    text = Path(importlib.util.find_spec(module).origin).read_text()
    other = text.replace("return ", "return (), ").replace("yield ", "yield (), ")
    before, after = edited(made, module, text, other)
    return before != after


@pytest.mark.parametrize(
    ("paper", "kind", "name", "module"),
    [
        ("dpsco", "sweeps", "rates", "dperm.solvers.streams.sources"),
        ("dpsco", "sweeps", "rates", "dperm.solvers.streams.sco_dp_sgd"),
        ("dpsco", "sweeps", "rates", "dperm.accountants.generalised_gaussian"),
        ("dpskgd", "sweeps", "regimes", "dperm.solvers.lanes.dp_sgd"),
        ("dpcd", "figures", "figure1", "dperm.present.drawing"),
        ("dpcd", "tables", "table2", "dperm.present.tables"),
        ("dpcd", "figures", "figure1", "dperm.core.experiment.results"),
    ],
)
def test_an_edit_behind_a_product_counts(edited, paper, kind, name, module):
    assert added(edited, product(paper, kind, name), module)


@pytest.mark.parametrize(
    "module",
    ["dperm.papers.dpskgd.tables", "dperm.core.experiment.files", "dperm.data.arrays",
     "dperm.core.experiment.config", "dperm.papers.dpskgd.sweeps"],
)  # fmt: skip
def test_other_papers_and_storage_do_not_count(edited, module):
    assert not added(edited, product("dpsco", "sweeps", "rates"), module)


def test_one_sweep_does_not_depend_on_another(edited):
    cited = ("dperm.papers.dpsco.sweeps", "cited = min(", "cited = max(")
    for name, counts in (("rates", False), ("gradients", True)):
        before, after = edited(product("dpsco", "sweeps", name), *cited)
        assert (before != after) is counts


def test_a_product_depends_on_the_printed_numbers(monkeypatch):
    made = product("dpcd", "tables", "table2")
    before, read = made(), Path.read_text

    def printed(path, *given, **named):
        text = read(path, *given, **named)
        return f"{text}\n" if path.suffix == ".csv" and "conf" in path.parts else text

    monkeypatch.setattr(Path, "read_text", printed)
    assert made() != before


def test_an_edit_of_a_solvers_options_computes_its_points_again(monkeypatch):
    config = configuration.compose(["paper=dpsco"])

    def keys():
        return {
            (point["solver"], point["n"], point["d"], replicate): key
            for point, replicate, key in Swept(config, "rates").tasks()
        }

    made = product("dpsco", "sweeps", "rates")
    before, whole, known = keys(), made(), digests.section

    def changed(group, name, *overrides):
        found = known(group, name, *overrides)
        if name != "noisy_sfw":
            return found
        return replace(found, options={**found.options, "batch": "all"})

    monkeypatch.setattr(digests, "section", changed)
    after = keys()
    assert {at[0] for at in before if before[at] != after[at]} == {"noisy_sfw"}
    assert made() != whole


def test_a_wider_grid_is_no_other_lane(configured):
    """What triggers a stage is more than what determines a lane."""

    def keys():
        units = tuning_units(job, plan.design(config))
        return [part_key(job, unit) for unit in units]

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
