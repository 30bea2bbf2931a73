"""Examples in folders outside, used without touching src/.

``mine`` has an algorithm and a data set; ``sixth`` a paper of its own, with its sweep,
figure, table and claims; ``adassp`` one that compares methods over data sets;
``figure`` adds a figure to a paper of the package; ``accountant`` has an accountant.
"""

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from changing import edit
from commands import dperm, in_turn, python
from documentation.test_commands import lines, run, shortened
from dperm import cli
from dperm.config import locate, run_spec
from dperm.config.config import compose
from dperm.config.locate import ConfigError
from dperm.experiments import checks as configured
from dperm.experiments import digests, inputs, products, stages
from dperm.privacy import accountants
from dperm.storage import source_code
from dperm.workflow import workflow
from dperm.workflow.jobs import compose as run_table
from weekly import variants

EXAMPLES = Path(__file__).parents[2] / "docs/examples"


@pytest.fixture
def example(tmp_path, monkeypatch):
    """Copies an example and makes it the current folder; forgets its module again."""

    def copied(name):
        folder = tmp_path / name
        shutil.copytree(
            EXAMPLES / name, folder, ignore=lambda *_: ["__pycache__"]
        )
        monkeypatch.chdir(folder)
        return folder

    monkeypatch.delenv("DPERM_CONF", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield copied
    papers = [
        name for name in sys.modules if name.startswith("dperm.papers.tiny")
    ]
    for name in ("noisy_gd", "zcdp", *papers):
        sys.modules.pop(name, None)
    if papers:
        source_code.forget()
    accountants.place.cache_clear()


@pytest.fixture
def mine(example):
    return example("mine")


def test_a_job_that_is_given_its_file_finds_the_module_of_its_solver(mine):
    overrides = ["scale=smoke"]
    jobs = run_table(["mine"], overrides)
    workflow.write_specs(jobs, overrides)
    name = "solve/mine/yields/noisy_gd"
    path = run_spec.path_of(name, jobs.jobs[name].key)
    read = (
        "from pathlib import Path; from dperm.config import run_spec; "
        "from dperm.solvers import registry; "
        f"config = run_spec.read(Path({str(path)!r}), 1); "
        "print(registry.load(config.solver.algorithm).__file__)"
    )
    assert python("-P", "-c", read).stdout.strip() == str(mine / "noisy_gd.py")


@pytest.mark.long
def test_the_pipeline_runs_it(mine):
    words = ("mine", "-j", "2", "-q", "all", "--config", "scale=smoke")
    done = python("-m", "dperm", *words)
    assert done.returncode == 0, done.stderr[-3000:]
    curves = pd.read_csv("figures/smoke/mine/errors.csv")
    assert set(curves["algorithm"]) == {"Noisy GD", "DP-CD"}
    for stage in ("tune", "evaluate"):
        table = pd.read_parquet(
            f"results/smoke/mine/yields/noisy_gd/{stage}.parquet"
        )
        assert (table["status"] == "ok").any() and table[
            "relative_error"
        ].min() < 0.2
    noise = pd.read_csv("results/smoke/mine/noise.csv")
    own = noise[noise["algorithm"] == "Noisy GD"]
    assert own["true_epsilon"].between(0.5, 1.0).all()


def audited(*overrides):
    """Whether each check of the smoke audit caught the algorithm, by the command."""
    done = dperm("audit", "scale=smoke", *overrides)
    table = pd.read_csv("results/smoke/audit/solvers/noisy_gd.csv")
    assert done.returncode == int(table["caught"].any()), done.stderr[-3000:]
    return table.groupby("check")["caught"].any()


@pytest.mark.long
def test_the_audit_runs_it(mine):
    assert not audited("solver=noisy_gd").any()


@pytest.mark.long
def test_the_audit_refutes_it_with_half_its_noise(mine):
    edit(mine / "noisy_gd.py", "2.0 * settings.clip", "settings.clip")
    assert audited("solver=noisy_gd")["sensitivity"]


def test_its_names_join_those_of_the_package(mine, monkeypatch, tmp_path):
    """One of the same name is taken instead; the folder may be named."""
    theirs = locate.home() / "conf/problem/diabetes.yaml"
    ours = shutil.copy(theirs, mine / "conf/problem")
    edit(Path(ours), "epsilon: 4.0", "epsilon: 7.5")
    assert compose(["problem=diabetes"]).problem.privacy.epsilon == 7.5
    assert {"mine", "dpcd"} <= set(locate.available("paper"))
    with pytest.raises(ConfigError, match="did you mean yields"):
        compose(["problem=yelds"])
    (mine / "half.py").write_text("class Run:\n    pass\n")
    with pytest.raises(ConfigError, match=r"'half': .*no attribute 'Options'"):
        configured.solver(
            compose(["solver=noisy_gd", "solver.algorithm=half"]).solver
        )
    sys.modules.pop("half")
    monkeypatch.setenv("DPERM_CONF", str(mine / "conf"))
    monkeypatch.chdir(tmp_path)
    assert compose(["solver=noisy_gd"]).solver.label == "Noisy GD"


def test_a_change_of_its_code_is_seen(mine):
    def tuning():
        source_code.forget()
        job = run_table(["mine"], []).job(
            "solve", "mine", "yields", "noisy_gd"
        )
        return job.key, digests.solver("noisy_gd")

    before = tuning()
    path = mine / "noisy_gd.py"
    path.write_text(path.read_text() + "\n# a comment\n")
    assert tuning() == before
    edit(path, "2.0 * settings.clip", "4.0 * settings.clip")
    assert all(new != old for new, old in zip(tuning(), before, strict=True))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "passes, options",
            "passes",
            r"yaml: .*noisy_gd.py: steps: expected .*passes",
        ),
        (
            "def advance",
            "def move",
            r"noisy_gd.py: Run.advance: expected a method",
        ),
        (
            "def ledger",
            "def ledgers",
            "noisy_gd.yaml: .* no attribute 'ledger'",
        ),
        (
            "    return Ledger",
            "    Ledger",
            "noisy_gd.py fails on small data: 'None",
        ),
        (
            "algorithm: noisy",
            "options: {a: 1}\nalgorithm: noisy",
            "a: expected none",
        ),
    ],
)
def test_a_slip_in_a_solver_is_named(mine, old, new, message):
    is_module = "algorithm" not in old
    edit(
        mine / ("noisy_gd.py" if is_module else "conf/solver/noisy_gd.yaml"),
        old,
        new,
        1,
    )
    solver = compose(["solver=noisy_gd"]).solver
    with pytest.raises(ConfigError, match=message):
        configured.solver(solver)
        configured.check_ledger(solver)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "ledger, delta",
            "ledger",
            r"zcdp.py: epsilon: expected .* ledger, delta, fou",
        ),
        (
            "    return rho",
            "    rho",
            r"zcdp.py: epsilon: expected a number, found None",
        ),
        (
            "return rho",
            "return math.nan * rho",
            "expected a number, found nan",
        ),
        (
            "def epsilon",
            "def eps",
            r"'zcdp': expected epsilon\(ledger, delta\)",
        ),
    ],
)
def test_a_slip_in_an_accountant_is_named(mine, old, new, message):
    edit(Path(shutil.copy(EXAMPLES / "accountant/zcdp.py", mine)), old, new, 1)
    with pytest.raises(ConfigError, match=f"calibrations.0.: .*{message}"):
        compose(["paper=mine", "paper.calibrations=[zcdp]"])


def test_an_error_in_it_says_where(mine):
    path = mine / "noisy_gd.py"
    lines = path.read_text().splitlines()
    at = next(k for k, line in enumerate(lines) if "def advance" in line) + 2
    lines.insert(at, '        raise RuntimeError("boom")')
    path.write_text("\n".join(lines))
    config = compose(["problem=yields"])
    for stage in (inputs.fetch, inputs.prepare, inputs.optimum):
        stage(config)
    done = dperm("tune", "problem=yields", "solver=noisy_gd", "paper=mine")
    assert done.returncode == 1
    said = done.stderr.strip().splitlines()[-1]
    assert said == f"RuntimeError: boom ({path}:{at + 1}, in advance)"


def test_data_that_are_not_there_are_named_by_every_stage(mine):
    (mine / "yields.csv").rename(mine / "other.csv")
    done = dperm("fetch", "problem=yields")
    assert done.returncode == 1 and "correct yields.csv" in done.stderr
    last = (
        "NothingFetchedError: data set yields: no source serves it: correct "
    )
    assert done.stderr.splitlines()[-1].startswith(last)
    assert (
        dperm("fetch", "problem=yields", "data.required=false").returncode == 0
    )
    for stage in ("prepare", "optimum", "tune"):
        said = dperm(
            stage, "problem=yields", "solver=noisy_gd", "paper=mine"
        ).stderr
        assert "yields: left out, its data are unavailable" in said
        assert "missing" in said and "dperm fetch problem=yields" in said


@pytest.mark.parametrize(
    ("rows", "loss", "message"),
    [
        (
            "1,0\n2,1\n3,1\n",
            "logistic",
            r"labels must be -1 or \+1.*reader.positive",
        ),
        (
            "1,1\n2,2\n3,1\n",
            "smoothed_hinge",
            "reader.positive names the class",
        ),
        ("1,4\n2,4\n3,4\n", "least_squares", "found 4 in all 3 records"),
        ("1,4\n", "least_squares", "expected 2 records or more, found 1"),
    ],
)
def test_labels_of_no_use_are_refused_when_they_are_prepared(
    mine, rows, loss, message
):
    (mine / "yields.csv").write_text("a,yield\n" + rows)
    config = compose(["problem=yields", f"problem.loss={loss}"])
    inputs.fetch(config)
    with pytest.raises(
        ConfigError, match=rf"conf/problem/yields\.yaml: .*{message}"
    ):
        inputs.prepare(config)
    assert not Path("data/prepared/yields").exists()


# --- what its solver cannot do --------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "  dp_cd:",
            "  dp_fw:",
            r"runs\.dp_fw: problem yields: .*family frank_wolfe",
        ),
        ("small_problems: [yields]", "small_problems: [sparse_small]", None),
    ],
)
def test_a_run_that_its_solver_cannot_do_is_refused_before_a_job(
    mine, old, new, said
):
    path = mine / "conf/paper/mine/paper.yaml"
    edit(path, old, new)
    if said is None:  # sparse data, which DP-CD takes and nothing may fill in
        assert run_table(["mine"], ["scale=smoke"]).of_paper("mine", "solve")
        edit(path, "  dp_cd:", "  dp_svrg:")
        said = r"runs\.dp_svrg: .*kept sparse"
        filled = ["scale=smoke", "problem.preparation.standardize=true"]
        with pytest.raises(ConfigError, match=r"standardize: expected false"):
            run_table(["mine"], filled)
    with pytest.raises(
        ConfigError, match=rf"conf/paper/mine/paper\.yaml: {said}"
    ):
        run_table(["mine"], ["scale=smoke"])


def test_the_stage_command_refuses_it_too(configured):
    with pytest.raises(
        ConfigError, match=r"diabetes\.yaml: .*family frank_wolfe"
    ):
        inputs.load_job(configured("solver=dp_fw", "paper=dpcd"))


# --- problems, figures and accountants of one's own -----------------------------------


def test_rows_on_a_problem_of_ones_own_are_not_among_those_of_a_paper(mine):
    """A stage takes the default paper's grid; no file of it is written or replaced."""
    stages = [
        [stage, "problem=yields"] for stage in ("fetch", "prepare", "optimum")
    ]
    done = in_turn(
        *stages, ["tune", "problem=yields", "solver=dp_cd", "scale=smoke"]
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert [path.name for path in Path("results/smoke").iterdir()] == ["own"]
    table = pd.read_parquet("results/smoke/own/yields/dp_cd/tune.parquet")
    assert (table["status"] == "ok").any()


def lines_of(folder, *endings):
    files = [path for path in folder.rglob("*") if path.suffix in endings]
    return sum(len(path.read_text().splitlines()) for path in files)


def test_a_data_set_is_nine_lines():
    path = EXAMPLES / "mine/conf/problem/yields.yaml"
    assert len(path.read_text().splitlines()) <= 9


@pytest.mark.long
def test_the_lines_of_the_pages_on_what_one_adds_run(example):
    """Each as it is typed, in a folder with what the pages have a reader write."""
    folder = example("mine")
    for name in ("figure", "accountant"):
        shutil.copytree(EXAMPLES / name, folder, dirs_exist_ok=True)
    pages = EXAMPLES.parent / "howto"
    grid = re.search(r"```yaml\n(name: finer.*?)```", (pages / "paper.md").read_text(),
                     re.DOTALL)[1]  # fmt: skip
    (folder / "conf/paper/finer").mkdir()
    (folder / "conf/paper/finer/paper.yaml").write_text(grid)
    (job,) = run_table(["finer"], []).of_paper("finer", "solve")
    assert len(job.spec.paper.runs) == 1 and job.work == 310 * (5 + 20) * 2 * 5
    typed = [
        line
        for page in ("data-set", "algorithm", "paper")
        for line in lines(f"docs/howto/{page}")
        if not line.startswith("cp ")  # of this folder
    ]
    assert len(typed) >= 6
    for line in typed:
        done = run(shortened(line), folder)
        assert done.returncode == 0, (
            line,
            (done.stdout + done.stderr)[-3000:],
        )


def test_a_figure_is_added_to_a_paper_of_the_package(example):
    """By two files; its rows are the paper's, and an edit of it redraws it alone."""
    folder = example("figure")
    assert lines_of(folder, ".py") <= 15 and lines_of(folder, ".yaml") <= 5
    chosen = ("paper=dpgcd", "scale=smoke")
    done = in_turn(
        ["sweep", *chosen, "product=selection_law"],
        ["figure", *chosen, "product=selected"],
    )
    assert done.returncode == 0, done.stderr[-3000:]
    drawn = pd.read_csv("figures/smoke/dpgcd/selected.csv")
    swept = pd.read_parquet("results/smoke/dpgcd/sweeps/selection_law.parquet")
    means = swept.groupby("p")["share"].mean()
    assert drawn["mean"].to_numpy() == pytest.approx(
        means[drawn["x"]].to_numpy()
    )

    def keys():
        source_code.forget()
        jobs = run_table(["dpgcd"], ["scale=smoke"])
        drawings = jobs.of_paper("dpgcd", "draw")
        return {job.products[0]: job.key for job in drawings}

    before = keys()
    assert "figures/selected" in before
    edit(folder / "selected.py", '"share"', '"excess"')
    changed = {name for name, key in keys().items() if key != before[name]}
    assert changed == {"figures/selected"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "selected:selected",
            "selected:other",
            "dpgcd/.*function: .*'selected:other'",
        ),
        (
            "caption",
            "capton",
            r"figures/selected.yaml: capton: .*did you mean caption",
        ),
        ("selection_law", "law", r"figures.selected.sweeps: .*found 'law'"),
    ],
)
def test_a_slip_in_an_added_figure_is_named(example, old, new, message):
    folder = example("figure")
    edit(folder / "conf/paper/dpgcd/figures/selected.yaml", old, new, 1)
    with pytest.raises(ConfigError, match=message):
        run_table(["dpgcd"], ["scale=smoke"])


def test_an_added_figure_replaces_none_of_the_paper(example):
    folder = example("figure") / "conf/paper/dpgcd/figures"
    (folder / "selected.yaml").rename(folder / "growth.yaml")
    with pytest.raises(
        ConfigError, match=r"growth\.yaml: expected another name"
    ):
        compose(["paper=dpgcd"])


PRICED = ("privacy", "problem=yields", "setting.calibration=zcdp")


@pytest.mark.parametrize(
    "solver", variants(("dp_cd", "dp_gd", "moments"), ["dp_gd"])
)
def test_an_accountant_of_ones_own_finds_the_noise(mine, solver):
    """Of batched solvers and of those of a few releases."""
    source = EXAMPLES / "accountant/zcdp.py"
    assert lines_of(source.parent, ".py") <= 12
    shutil.copy(source, mine)
    stages = [[stage, "problem=yields"] for stage in ("fetch", "prepare")]
    done = in_turn(*stages, [*PRICED, f"solver={solver}"])
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.split() for line in done.stdout.splitlines()]
    true = {
        row[0]: float(row[3])
        for row in rows
        if row[:1] in (["tight"], ["zcdp"])
    }
    # Its bound is looser than the tight one.
    assert true.get("tight", 1.0) == pytest.approx(1.0, abs=1e-4)
    assert 0.5 < true["zcdp"] < 0.9


def test_an_error_in_an_accountant_names_its_line(mine):
    """Also one that says a programme is wrong, as a TypeError does."""
    path = Path(shutil.copy(EXAMPLES / "accountant/zcdp.py", mine))
    edit(path, "1 / delta", '"1" / delta', 1)
    lines = path.read_text().splitlines()
    number = 1 + next(
        k for k, line in enumerate(lines) if '"1" / delta' in line
    )
    stages = [[stage, "problem=yields"] for stage in ("fetch", "prepare")]
    done = in_turn(*stages, [*PRICED, "solver=dp_gd"])
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert (
        last.startswith("TypeError: ")
        and f"({path}:{number}, in epsilon)" in last
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("privacy", "solver=dp_gd", "setting.passes=3"),
            "passes=3: dp_gd costs the",
        ),
        (
            ("privacy", "solver=dp_cd", "setting.clip=3"),
            "clip=3: dp_cd costs the same",
        ),
        (
            ("privacy", "solver=dp_gd", "setting.calibration=published"),
            "no paper prints",
        ),
        (("tune", "setting.passes=3"), "setting; it is read by dperm privacy"),
        (
            ("fetch", "formats=[svg]"),
            "read by dperm figure, dperm draw, dperm readme",
        ),
        (
            ("solve", "product=figure1"),
            "read product; it is read by dperm audit, ",
        ),
    ],
)
def test_an_option_that_does_not_apply_is_refused(mine, words, message):
    config = compose(["problem=yields"])
    inputs.fetch(config)
    inputs.prepare(config)
    done = dperm(words[0], "problem=yields", *words[1:])
    assert done.returncode == 2 and message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("draws: 1000", "draw: 1000", "rounds.options: expected one of .*mean draws"),
        (", draws: 1000", "", "rounds.options.draws: expected a value, found none"),
        ("rounds         # of s", "round  # of s", "rounds.function: .*mean rounds"),
        ("grid: {releases: [1, 4, 16, 64], rule: [split, composed]}", "smoke: true",
         "sweeps.rounds.grid: expected axes of any names"),
    ],
)  # fmt: skip
def test_a_stage_refuses_what_its_function_does_not_take(
    example, old, new, message
):
    edit(example("sixth") / "conf/paper/tiny/paper.yaml", old, new, 1)
    with pytest.raises(SystemExit, match=message):
        cli.run_stage(cli.COMMANDS["sweep"], ["paper=tiny", "scale=smoke"])


@pytest.mark.parametrize("name", ["audit", "own", "smoke", "shared"])
def test_a_reserved_name_of_a_paper_is_refused(example, name):
    folder = example("sixth") / "conf/paper"
    (folder / "tiny").rename(folder / name)
    edit(folder / name / "paper.yaml", "name: tiny", f"name: {name}", 1)
    with pytest.raises(ConfigError, match="name: expected another, found"):
        compose([f"paper={name}"])


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (
            "releases: [1], seed: [1]",
            "seed: expected another name, as all rows have",
        ),
        (
            "solver: [dp_cd, mean]",
            "found 'mean'.*one of another name has any values",
        ),
    ],
)
def test_a_reserved_name_of_an_axis_is_refused(example, axes, message):
    path = example("sixth") / "conf/paper/tiny/paper.yaml"
    edit(path, "releases: [1, 4, 16, 64]", axes, 1)
    with pytest.raises(
        ConfigError, match=rf"sweeps\.rounds\.grid\..*{message}"
    ):
        run_table(["tiny"], ["scale=smoke"])


# --- a paper --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (
            "sweeps",
            "return {",
            "row = {",
            "rounds: expected a row, .*found nothing",
        ),
        (
            "sweeps",
            "return {",
            "return 1.0, {",
            "expected a row, .* found a tuple",
        ),
        (
            "sweeps",
            '"noise": noise',
            '"noise": seen',
            "number or a text in noise",
        ),
        (
            "figures",
            "return drawing",
            "drawing",
            "rounds: expected a .*found nothing",
        ),
        (
            "figures",
            "xscale",
            "xscal",
            r"figures.py: rounds: its picture .* 'xscal'",
        ),
        (
            "tables",
            "return pd.DataFrame(rows)",
            "return rows",
            "Frame, found a list",
        ),
    ],
)
def test_what_a_papers_function_returns_is_checked(
    example, file, old, new, message
):
    edit(example("sixth") / f"conf/paper/tiny/{file}.py", old, new, 1)
    config = replace(compose(["paper=tiny", "scale=smoke"]), product="rounds")
    with pytest.raises(ValueError, match=message):
        for stage in (stages.sweep, products.figure, products.table):
            stage(config)


def test_a_paper_of_five_files_runs_and_is_judged(example):
    files = [path for path in example("sixth").rglob("*") if path.is_file()]
    assert len(files) == 5 and {path.parent.name for path in files} == {"tiny"}
    of_data = [
        [stage, "problem=diabetes"]
        for stage in ("fetch", "prepare", "optimum")
    ]
    stages = ("solve", "sweep", "figure", "table", "complete", "claims")
    chosen = ("paper=tiny", "problem=diabetes", "solver=dp_cd", "scale=smoke")
    of_paper = [[stage, *chosen] for stage in stages]
    done = in_turn(*of_data, *of_paper)
    assert done.returncode == 0, done.stderr[-3000:]
    results, figures = Path("results/smoke/tiny"), Path("figures/smoke/tiny")

    swept = pd.read_parquet(results / "sweeps/rounds.parquet")
    assert len(swept) == 4 * 2 * swept["replicate"].nunique()
    drawn = pd.read_csv(figures / "rounds.csv").set_index(["algorithm", "x"])
    means = swept.groupby(["rule", "releases"])["error"].mean()
    assert drawn["mean"].to_numpy() == pytest.approx(
        means[drawn.index].to_numpy()
    )
    assert (figures / "rounds.png").stat().st_size > 1000
    assert set(pd.read_csv(figures / "errors.csv")["algorithm"]) == {"DP-CD"}
    table = pd.read_csv(results / "rounds.csv").set_index("rule")["exponent"]
    assert table["composed"] == pytest.approx(0.5, abs=0.05)

    judged = pd.read_csv("results/smoke/claims.csv").query("paper == 'tiny'")
    assert judged["verdict"].tolist() == ["reproduced"] * 2
    assert judged["reproduced"].tolist() == pytest.approx(table.tolist())


@pytest.mark.long
def test_a_paper_that_compares_methods_needs_one_solver_and_no_other_code(
    example,
):
    """The trial of a sixth paper: all else is told in YAML."""
    folder = example("adassp")
    assert lines_of(folder, ".yaml") <= 150 and lines_of(folder, ".py") <= 100
    of_data = [
        [stage, "problem=diabetes_centred"] for stage in ("fetch", "prepare")
    ]
    stages = ("sweep", "table", "figure", "claims")
    done = in_turn(
        *of_data, *([s, "paper=adassp", "scale=smoke"] for s in stages)
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results, figures = (
        Path("results/smoke/adassp"),
        Path("figures/smoke/adassp"),
    )

    race = pd.read_parquet(results / "sweeps/race.parquet")
    assert {*race["solver"]} == {"ada_ssp", "ssp", "dp_gd", "moments"}
    assert (race["status"] == "ok").all() and {*race["tuning"]} == {"default"}
    priced = race.dropna(subset="true_epsilon")
    assert (priced["true_epsilon"] <= priced["epsilon"] * (1 + 1e-9)).all()
    wins = pd.read_csv(results / "wins.csv")
    assert {*wins["other"]} == {
        "SSP",
        "DP-GD",
        "Noisy moments",
        "the best constant",
    }
    means = race.groupby(["solver", "epsilon"])["excess"].mean()
    ratio = wins.set_index(["other", "epsilon"])["ratio"]["SSP", 1.0]
    assert ratio == pytest.approx(means["ada_ssp", 1.0] / means["ssp", 1.0])
    drawn = pd.read_csv(figures / "estimate.csv").set_index("algorithm")
    levels = drawn.loc[["the best constant", "without privacy"], "mean"]
    assert levels.tolist() == [1.0, 0.0]
    sizes = pd.read_csv(figures / "sizes.csv")
    assert sizes["x"].nunique() == 3 and sizes["panel"].nunique() == 2
    judged = pd.read_csv("results/smoke/claims.csv")
    # no other is here
    assert len(judged) == 4 and {*judged["paper"]} == {"adassp"}

    said = dperm("readme", "scale=smoke")
    assert (
        said.returncode == 2
        and "README.md: expected one of README.md" in said.stderr
    )
    mark = "<!-- scorecard: written by `dperm readme` -->"
    Path("README.md").write_text(f"Mine\n{mark}\n<!-- end of scorecard -->\n")
    assert dperm("readme", "scale=smoke").returncode == 0
    text = Path("README.md").read_text()
    assert "AdaSSP" in text and "DP-CD" not in text


def test_an_edit_of_a_solver_is_seen_by_the_comparisons_that_run_it(example):
    folder = example("adassp")

    def keys():
        source_code.forget()
        jobs = run_table(["adassp"], ["scale=smoke"])
        names = ("race", "baselines", "sizes")
        return {name: jobs.job("sweep", "adassp", name).key for name in names}

    before = keys()
    edit(folder / "ssp.py", "Q + np.eye", "2 * Q + np.eye")
    changed = {name for name, key in keys().items() if key != before[name]}
    assert changed == {"race", "sizes"}


def test_the_report_of_a_paper_runs_no_other(example):
    """Neither another paper's jobs nor audits are behind its claims and its page."""
    example("adassp")
    jobs = run_table(["adassp"], [], is_reported=True)
    assert {name.split("/")[0] for name in jobs.jobs} >= {
        "claims",
        "report",
        "sweep",
    }
    assert not any(
        name.startswith(("audit", "sweep/dp")) for name in jobs.jobs
    )
    assert jobs.jobs["report"].inputs == ["results/claims.csv"]
