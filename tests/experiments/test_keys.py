"""Whatever a job reads is in its key, and what is not in its key ends it."""

import dataclasses
import functools
import pickle
from pathlib import Path

import pandas as pd
import pytest

from changing import changed
from dperm.config import config as configuration
from dperm.config import scope
from dperm.config.config import compose
from dperm.config.scope import BeyondKeyError, Scope, view
from dperm.experiments import digests, scopes, stages, trace
from dperm.names import home
from dperm.solvers import registry
from dperm.storage import files as store
from dperm.storage import source_code
from dperm.workflow import jobs

BASE = ("paper=dpcd", "problem=diabetes", "solver=dp_cd", "scale=smoke")


def keys(*overrides):
    table = jobs.compose(["dpcd"], ["scale=smoke", *overrides]).jobs
    return {name: job.key for name, job in table.items()}


@pytest.fixture(scope="module")
def before():
    return keys()


OF_EPSILON = {"ablation", "private_constants", "theorem", "epsilon", "noise"}
EDITS = [
    ("problem.privacy.epsilon=1.5", OF_EPSILON),
    ("problem.privacy.delta=1e-3", OF_EPSILON),
    ("paper.runs.dp_cd.grid.clip.logspace=[1,100,9]", {"epsilon"}),
    ("paper.runs.dp_cd.label=other", {"epsilon"}),
    ("scale.keep.step=1", {"private_constants"}),
]


@pytest.mark.parametrize(("edit", "sweeps"), EDITS)
def test_an_edit_of_the_configuration_makes_the_sweeps_stale(
    before, edit, sweeps
):
    after = keys(edit)
    stale = {name for name in after if before[name] != after[name]}
    assert stale >= {f"sweep/dpcd/{name}" for name in sweeps}
    assert not {
        name for name in stale if name.startswith(("optimum", "prepare"))
    }


@pytest.mark.parametrize("edit", ["paper.title=other", "paper.label=other"])
def test_a_title_that_no_number_reads_makes_nothing_stale(before, edit):
    assert keys(edit) == before


@pytest.mark.parametrize("name", ["private_constants", "ablation"])
def test_stored_points_carry_the_privacy_of_their_problem(configured, name):
    """A part of another epsilon is no part of the sweep."""

    def parts(*overrides):
        narrow = (
            "paper.small_problems=[diabetes,breast_cancer]",
            "scale=smoke",
        )
        swept = stages.SweepRun(
            configured("paper=dpcd", *narrow, *overrides), name
        )
        return {str(task.key) for task in swept.tasks()}

    assert not parts() & parts("problem.privacy.epsilon=1.5")
    assert parts("paper.title=other") == parts()


# --- the view -------------------------------------------------------------------------


@pytest.fixture
def config():
    return compose(BASE)


def test_a_view_shows_what_its_scope_holds_and_refuses_all_else(config):
    held = Scope(
        "a job",
        frozenset(["problem.diabetes.loss", "seed", "paper.runs.dp_cd"]),
    )
    seen = view(config, "", held)
    assert seen.problem.loss == config.problem.loss
    assert seen.paper.runs["dp_cd"].grid == config.paper.runs["dp_cd"].grid
    assert "dp_sgd" in seen.paper.runs and seen.paper.name == "dpcd"
    for read in (
        lambda: seen.problem.privacy.epsilon,
        lambda: seen.paper.runs["dp_sgd"].label,
        lambda: [*seen.paper.runs],
        lambda: seen.scale.keep,
        lambda: dataclasses.asdict(seen.problem),
        lambda: configuration.read("problem", "diabetes").privacy.delta,
        lambda: pickle.loads(pickle.dumps(seen)).paper.fresh,
    ):
        refused = pytest.raises(
            BeyondKeyError, match=r"a job: its code reads [a-z]"
        )
        with refused, scope.within(held):
            read()


def test_a_sweep_that_reads_beyond_its_key_ends(config, monkeypatch):
    swept = stages.SweepRun(config, "theorem")
    monkeypatch.setattr(
        swept, "function", lambda paper, **_: {"a": paper.claims}
    )
    with pytest.raises(
        BeyondKeyError, match=r"sweep dpcd/theorem: .*paper\.claims"
    ):
        swept.measured(swept_task(swept))


def swept_task(swept):
    return scopes.points(swept.sweep)[0], 0, "key"


def test_a_solver_that_is_looked_up_beyond_the_key_ends_the_job():
    held = Scope("a job", frozenset())
    kept = functools.partial(
        trace.kept, held, [], lambda: ["dperm.solvers.batched.dp_cd"]
    )
    refused = pytest.raises(
        BeyondKeyError, match=r"looks up dperm\.solvers\.full_batch\.dp_gd"
    )
    with refused, kept():
        registry.load("dp_gd")
    with kept():
        registry.load("dp_cd")


def test_a_file_that_is_opened_beyond_the_key_ends_the_job(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("beside.json").write_text("1")
    kept = functools.partial(trace.kept, Scope("a job", frozenset()), [], list)
    with pytest.raises(BeyondKeyError, match=r"opens .*beside\.json"), kept():
        Path("beside.json").read_text()
    with kept():
        Path("written.json").write_text("2")
        Path(configuration.__file__).read_text()


def test_rows_that_a_product_does_not_name_end_it(tmp_path, monkeypatch):
    """They could change, and the product would stay."""
    monkeypatch.chdir(tmp_path)
    named, other = Path("rows/a/tune.parquet"), Path("rows/b/tune.parquet")
    for path in (named, other):
        path.parent.mkdir(parents=True)
        store.write_table(path, pd.DataFrame({"error": [0.1]}))
    held = Scope("draw paper/tables/a", frozenset())
    kept = functools.partial(
        trace.kept, held, [named.resolve()], list, Path("rows")
    )
    with kept():
        store.read_table(named)
    refused = pytest.raises(BeyondKeyError, match=r"b/tune.*: add problems")
    with refused, kept():
        store.read_table(other)


def test_published_numbers_are_read_by_their_key_where_the_package_holds_conf(
    monkeypatch,
):
    """As an installed package does."""
    published = home() / "conf/paper/dpcd/published/table2.csv"
    monkeypatch.setattr(source_code, "PACKAGE", home())
    held = Scope("a job", frozenset({"paper.published.*"}))
    with trace.kept(held, [], list):
        published.read_text()
    refused = pytest.raises(BeyondKeyError, match=r"opens .*table2\.csv")
    with refused, trace.kept(Scope("a job", frozenset()), [], list):
        published.read_text()


# --- solvers on any axis --------------------------------------------------------------


@pytest.mark.parametrize("axis", ["solver", "method"])
def test_the_code_of_a_solver_counts_on_any_axis(config, axis):
    sweep = dataclasses.replace(
        config.paper.sweeps["theorem"],
        grid={axis: ["ada_ssp"]},
        problems=[],
        small=None,
    )
    swept = changed(config, "paper.sweeps", {"theorem": sweep})
    assert "dperm.solvers.full_batch.ada_ssp" in scopes.sweeping(
        swept.paper, "theorem", [], [], stages.SWEEPING
    )


def test_a_section_that_is_kept_is_seen_by_each_job_through_its_own_scope():
    digests.SECTIONS.clear()
    first = Scope("one", frozenset(["solver.dp_cd.label"]))
    with scope.within(first):
        assert digests.solver_of("dp_cd").label
        with pytest.raises(BeyondKeyError, match=r"one: .*dp_cd\.options"):
            _ = digests.solver_of("dp_cd").options
    with scope.within(Scope("two", frozenset(["solver.dp_cd.options"]))):
        assert digests.solver_of("dp_cd").options["sampling"] == "cyclic"
    assert digests.solver_of("dp_cd").algorithm == "dp_cd"
