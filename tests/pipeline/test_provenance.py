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
from dperm.pipeline import stages as sweeping
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
        (f"{PRIVACY}.calibration", "LEAST, MOST", "MOST, LEAST", BELOW_TUNING),
        ("dperm.core.privacy.ledger", 'RELATION = "replace_one"', 'RELATION = "add"',
         {"optimum", *BELOW_TUNING}),
        ("dperm.core.privacy.pld", "return ", "return (), ", BELOW_TUNING),
        ("dperm.core.erm.cleaning", "found = np.sqrt(", "found = 2 * np.sqrt(",
         {"optimum", *BELOW_TUNING}),
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


def lanes(algorithm="dp_cd"):
    return lambda: digests.lanes(algorithm, "logistic")


SOLVERS = ("dp_cd", "dp_cd_priv", "dp_gcd", "dp_sgd", "dp_skgd", "dp_svrg")


@pytest.mark.parametrize("algorithm", SOLVERS)
@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("dperm.core.erm.cleaning", "found = np.sqrt(", "found = 2 * np.sqrt("),
        ("dperm.core.erm.problem", "found / n", "found / (n + 0)"),
        ("dperm.core.lanes.engine", "DIVERGED = 10.0", "DIVERGED = 11.0"),
        ("dperm.core.compiled", "1.4426950408889634", "1.4426950408889635"),
    ],
)
def test_lanes_depend_on_the_problem_and_the_engine(
    edited, algorithm, module, old, new
):
    before, after = edited(lanes(algorithm), module, old, new)
    assert before != after


@pytest.mark.parametrize("algorithm", SOLVERS)
@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("dperm.core.privacy.strict", "2 * math.sqrt", "3 * math.sqrt"),
        ("dperm.core.privacy.calibration", "LEAST, MOST", "MOST, LEAST"),
        ("dperm.core.experiment.tune", "about", "nearly"),
        ("dperm.pipeline.inputs", "run again", "run it again"),
        ("dperm.core.erm.optimum", "1e-10  #", "1e-9  #"),
    ],
)
def test_lanes_do_not_depend_on_the_accountant_and_on_plumbing(
    edited, algorithm, module, old, new
):
    before, after = edited(lanes(algorithm), module, old, new)
    assert before == after


def test_what_is_solved_depends_on_the_versions_of_libraries(monkeypatch):
    known, key = jobs.compose(["dpcd"], ["scale=smoke"]), ("dpcd", "diabetes", "dp_cd")
    solved, drawn = known.param("solve", *key), known.param("complete", "dpcd")
    versions = {**closure.versions(), "numba": "0"}
    monkeypatch.setattr(closure, "versions", lambda: versions)
    assert known.param("solve", *key) != solved
    assert known.param("complete", "dpcd") == drawn


def test_a_helper_beside_an_own_solver_counts(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "helper_of_mine.py").write_text("def half(x):\n    return x / 2\n")
    (tmp_path / "solver_of_mine.py").write_text(
        "from dperm.core.lanes import dp_cd\nimport helper_of_mine\n"
        "Options, steps, ledger = dp_cd.Options, dp_cd.steps, dp_cd.ledger\n"
        "class Run(dp_cd.Run):\n"
        "    def advance(self, count):\n"
        "        super().advance(helper_of_mine.half(count))\n"
    )
    closure.forget()
    before = digests.lanes("solver_of_mine")
    (tmp_path / "helper_of_mine.py").write_text("def half(x):\n    return x // 2\n")
    closure.forget()
    assert digests.lanes("solver_of_mine") != before
    closure.forget()


@pytest.mark.parametrize(
    ("part", "module", "old", "new"),
    [
        # half the noise of an epoch's full gradient
        ("solvers/dp_svrg", "dperm.solvers.lanes.dp_svrg", "+ jump[lane]",
         "+ 0.5 * jump[lane]"),
        ("solvers/dp_cd", "dperm.core.lanes.dp_cd", "count=count", "count=1"),
        ("tuning", "dperm.accountants.private_choice", "def tuned_epsilon(",
         "def tuned_epsilon(_, "),
    ],
)  # fmt: skip
def test_an_audit_depends_on_the_solver_it_audits(edited, part, module, old, new):
    before, after = edited(audits, module, old, new)
    assert before[f"audit/{part}"] != after[f"audit/{part}"]


def audits() -> dict[str, str]:
    found = jobs.Jobs("")
    jobs.add_audits(found)
    return {name: job.key for name, job in found.jobs.items()}


def test_an_audit_does_not_depend_on_another_solver_of_lanes(edited):
    given = ("dperm.solvers.lanes.dp_svrg", "+ jump[lane]", "+ 0.5 * jump[lane]")
    before, after = edited(audits, *given)
    assert before["audit/solvers/dp_cd"] == after["audit/solvers/dp_cd"]


def fetch(dataset) -> str:
    problem = schema.Problem(name="own", dataset=dataset, loss="logistic")
    return jobs.Paper(schema.Config()).fetch(problem).key


@pytest.mark.parametrize(("known", "counts"), [("0" * 64, False), (None, True)])
def test_code_that_reads_data_counts_where_no_digest_vouches(edited, known, counts):
    dataset = schema.Dataset("some", digest=known)
    given = ("dperm.data.arrays", "def canonical(X", "def canonical(_X")
    before, after = edited(lambda: fetch(dataset), *given)
    assert (before != after) is counts


def test_data_of_ones_own_count_by_content_name_and_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one.csv", "two.csv"):
        Path(name).write_text("a,y\n1,2\n")

    def made(**keys):
        source = schema.Source(kind="file", files=["one.csv"])
        dataset = schema.Dataset("own", sources=[replace(source, **keys)])
        problem = schema.Problem(name="own", dataset=dataset, loss="logistic")
        paper = jobs.Paper(schema.Config(problem=problem))
        monkeypatch.setattr(jobs.checks, "problem", lambda section: None)
        return (fetch(dataset), paper.prepare("own").key, paper.optimum("own").key)

    before = made()
    changed = [made(files=["two.csv"]), made(members=["x"]), made(options={"n": 1})]
    Path("one.csv").write_text("a,y\n1,3\n")
    changed.append(made())
    for after in changed:
        assert not set(before) & set(after)
    assert len(set(changed)) == 4


def test_where_data_come_from_is_no_matter_where_they_have_a_digest(
    monkeypatch,
):
    monkeypatch.setattr(jobs.checks, "problem", lambda section: None)
    known = schema.Dataset("some", digest="sha256:" + "0" * 64)
    other = replace(known, sources=[schema.Source(kind="openml", id=3)])
    assert fetch(known) != fetch(other)
    problems = [schema.Problem(name="x", dataset=one) for one in (known, other)]
    papers = [jobs.Paper(schema.Config(problem=problem)) for problem in problems]
    assert papers[0].prepare("x").key == papers[1].prepare("x").key


# --- sweeps and products --------------------------------------------------------------


def product(paper, kind, name):
    """Key of a figure, table or sweep of a paper."""
    config = configuration.compose([f"paper={paper}"])

    def made():
        found = jobs.Paper(config)
        if kind == "sweeps":
            return found.sweep(name).key
        return found.draw(kind, name).products[f"{kind}/{name}"]

    return made


def added(edited, made, module):
    """Whether it matters what the functions of a module return."""
    text = Path(importlib.util.find_spec(module).origin).read_text()
    before, after = edited(made, module, text, text.replace("return ", "return (), "))
    return before != after


@pytest.mark.parametrize(
    ("paper", "kind", "name", "module"),
    [
        ("dpsco", "sweeps", "rates", "dperm.solvers.streams.sources"),
        ("dpsco", "sweeps", "rates", "dperm.core.erm.sets"),
        ("dpsco", "sweeps", "rates", "dperm.solvers.streams.sco_dp_fw"),
        ("dpsco", "sweeps", "rates", "dperm.accountants.generalised_gaussian"),
        ("dpsco", "sweeps", "rates", "dperm.core.privacy.pld"),
        ("dpskgd", "sweeps", "regimes", "dperm.solvers.lanes.dp_sgd"),
        ("dpskgd", "sweeps", "regimes", "dperm.core.privacy.pld"),
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
    what = config.paper.sweeps["rates"]

    def keys():
        return {
            (point["solver"], point["n"], point["d"], replicate): key
            for point, replicate, key in sweeping.tasks(config, "rates", what)
        }

    def digest():
        return product("dpsco", "sweeps", "rates")()

    before, whole = keys(), digest()
    known = digests.section

    def changed(group, name):
        found = known(group, name)
        if name != "noisy_sfw":
            return found
        return replace(found, options={**found.options, "batch": "all"})

    monkeypatch.setattr(digests, "section", changed)
    after = keys()
    changed_of = {at[0] for at in before if before[at] != after[at]}
    assert changed_of == {"noisy_sfw"}
    assert digest() != whole


def test_a_wider_grid_is_no_other_lane(configured):
    """What triggers a stage is more than what determines a lane."""

    def keys():
        units = tuning_units(job, plan.design(config))
        return [part_key(job, unit) for unit in units]

    config = configured()
    job = inputs.load_job(config)
    (job.folder).mkdir(parents=True)
    before = keys()
    one = jobs.Paper(config).solve("diabetes", "dp_cd").key
    config.paper.runs["dp_cd"].grid["clip"] = [1.0]
    assert jobs.Paper(config).solve("diabetes", "dp_cd").key != one
    assert keys() == before
