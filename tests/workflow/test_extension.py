"""Examples in folders outside, used without touching src/.

``mine`` has an algorithm and a data set; ``sixth`` a paper of its own, with its sweep,
figure, table and claims.
"""

import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

from changing import edit
from commands import dperm, in_turn, python
from dperm.config import locate
from dperm.config.config import compose
from dperm.config.locate import ConfigError
from dperm.experiments import checks as configured
from dperm.experiments import digests, inputs
from dperm.storage import closure
from dperm.workflow.jobs import compose as run_table

EXAMPLES = Path(__file__).parents[2] / "docs/examples"


@pytest.fixture
def example(tmp_path, monkeypatch):
    """Copies an example and makes it the current folder; forgets its module again."""

    def copied(name):
        folder = tmp_path / name
        shutil.copytree(EXAMPLES / name, folder, ignore=lambda *_: ["__pycache__"])
        monkeypatch.chdir(folder)
        return folder

    monkeypatch.delenv("DPERM_CONF", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield copied
    sys.modules.pop("noisy_gd", None)


@pytest.fixture
def mine(example):
    return example("mine")


@pytest.mark.long
def test_the_pipeline_runs_it(mine):
    words = ("mine", "-j", "2", "-q", "all", "--config", "scale=smoke")
    done = python("-m", "dperm", *words)
    assert done.returncode == 0, done.stderr[-3000:]
    curves = pd.read_csv("figures/smoke/mine/errors.csv")
    assert set(curves["algorithm"]) == {"Noisy GD", "DP-CD"}
    for stage in ("tune", "evaluate"):
        table = pd.read_parquet(f"results/smoke/mine/yields/noisy_gd/{stage}.parquet")
        assert (table["status"] == "ok").any() and table["relative_error"].min() < 0.2
    noise = pd.read_csv("results/smoke/mine/noise.csv")
    own = noise[noise["algorithm"] == "Noisy GD"]
    assert own["true_epsilon"].between(0.5, 1.0).all()


def audited(*overrides):
    """Whether each check of the smoke audit caught the algorithm, by the command."""
    done = dperm("audit", "scale=smoke", *overrides)
    table = pd.read_csv("results/smoke/audit/solvers/noisy_gd.csv")
    assert done.returncode == int(table["caught"].any()), done.stderr[-3000:]
    return table.groupby("check")["caught"].any()


def test_the_audit_runs_it_and_refutes_it_with_half_its_noise(mine):
    assert not audited("solver=noisy_gd").any()
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
        configured.check(compose(["solver=noisy_gd", "solver.algorithm=half"]))
    sys.modules.pop("half")
    monkeypatch.setenv("DPERM_CONF", str(mine / "conf"))
    monkeypatch.chdir(tmp_path)
    assert compose(["solver=noisy_gd"]).solver.label == "Noisy GD"


def test_a_change_of_its_code_is_seen(mine):
    def tuning():
        closure.forget()
        job = run_table(["mine"], []).job("solve", "mine", "yields", "noisy_gd")
        return job.key, digests.solver("noisy_gd")

    before = tuning()
    path = mine / "noisy_gd.py"
    path.write_text(path.read_text() + "\n# a comment\n")
    assert tuning() == before
    edit(path, "2.0 * settings.clip", "4.0 * settings.clip")
    assert all(new != old for new, old in zip(tuning(), before, strict=True))


def test_an_error_in_it_says_where(mine):
    path = mine / "noisy_gd.py"
    lines = path.read_text().splitlines()
    at = next(k for k, line in enumerate(lines) if "def advance" in line) + 2
    lines.insert(at, '        raise RuntimeError("boom")')
    path.write_text("\n".join(lines))
    for stage in ("fetch", "prepare", "optimum"):
        assert dperm(stage, "problem=yields").returncode == 0
    done = dperm("tune", "problem=yields", "solver=noisy_gd", "paper=mine")
    assert done.returncode == 1
    said = done.stderr.strip().splitlines()[-1]
    assert said == f"RuntimeError: boom ({path}:{at + 1}, in advance)"


def test_data_that_are_not_there_are_named_by_every_stage(mine):
    (mine / "yields.csv").rename(mine / "other.csv")
    done = dperm("fetch", "problem=yields")
    assert done.returncode == 1 and "correct yields.csv" in done.stderr
    last = "NothingFetchedError: data set yields: no source serves it: correct "
    assert done.stderr.splitlines()[-1].startswith(last)
    assert dperm("fetch", "problem=yields", "data.required=false").returncode == 0
    for stage in ("prepare", "optimum", "tune"):
        said = dperm(stage, "problem=yields", "solver=noisy_gd", "paper=mine").stderr
        assert "yields: left out, its data are unavailable" in said
        assert "missing" in said and "dperm fetch problem=yields" in said


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("solver/noisy_gd", "name: noisy_gd", "name: gd", "name: expected noisy_gd"),
        ("paper/mine/paper", "name: mine", "name: yours",
         "name: expected mine, found 'your"),
        ("paper/mine/paper", "function: trajectories", "function: trajectory",
         "figures.errors.function: expected one of"),
    ],
)  # fmt: skip
def test_a_slip_is_named_before_anything_runs(mine, file, old, new, said):
    edit(mine / f"conf/{file}.yaml", old, new, 1)
    with pytest.raises(ConfigError, match=rf"conf/{file}\.yaml: .*{said}"):
        run_table(["mine"], ["scale=smoke"])


@pytest.mark.parametrize(
    ("rows", "loss", "message"),
    [
        ("1,0\n2,1\n3,1\n", "logistic", r"labels must be -1 or \+1.*reader.positive"),
        ("1,1\n2,2\n3,1\n", "smoothed_hinge", "reader.positive names the class"),
        ("1,4\n2,4\n3,4\n", "least_squares", "found 4 in all 3 records"),
        ("1,4\n", "least_squares", "expected 2 records or more, found 1"),
    ],
)
def test_labels_of_no_use_are_refused_when_they_are_prepared(mine, rows, loss, message):
    (mine / "yields.csv").write_text("a,yield\n" + rows)
    config = compose(["problem=yields", f"problem.loss={loss}"])
    inputs.fetch(config)
    with pytest.raises(ConfigError, match=rf"conf/problem/yields\.yaml: .*{message}"):
        inputs.prepare(config)
    assert not Path("data/prepared/yields").exists()


# --- what its solver cannot do --------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("  dp_cd:", "  dp_fw:", r"runs\.dp_fw: problem yields: .*family frank_wolfe"),
        ("small_problems: [yields]", "small_problems: [sparse_small]", None),
    ],
)
def test_a_run_that_its_solver_cannot_do_is_refused_before_a_job(mine, old, new, said):
    path = mine / "conf/paper/mine/paper.yaml"
    edit(path, old, new)
    if said is None:  # sparse data, which DP-CD takes and nothing may fill in
        assert run_table(["mine"], ["scale=smoke"]).of_paper("mine", "solve")
        edit(path, "  dp_cd:", "  dp_svrg:")
        said = r"runs\.dp_svrg: .*kept sparse"
        filled = ["scale=smoke", "problem.preparation.standardize=true"]
        with pytest.raises(ConfigError, match=r"standardize: expected false"):
            run_table(["mine"], filled)
    with pytest.raises(ConfigError, match=rf"conf/paper/mine/paper\.yaml: {said}"):
        run_table(["mine"], ["scale=smoke"])


def test_the_stage_command_refuses_it_too(configured):
    with pytest.raises(ConfigError, match=r"diabetes\.yaml: .*family frank_wolfe"):
        inputs.load_job(configured("solver=dp_fw", "paper=dpcd"))


# --- a paper --------------------------------------------------------------------------


def test_a_paper_of_five_files_runs_and_is_judged(example):
    files = [path for path in example("sixth").rglob("*") if path.is_file()]
    assert len(files) == 5 and {path.parent.name for path in files} == {"tiny"}
    of_data = [[stage, "problem=diabetes"] for stage in ("fetch", "prepare", "optimum")]
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
    assert drawn["mean"].to_numpy() == pytest.approx(means[drawn.index].to_numpy())
    assert (figures / "rounds.png").stat().st_size > 1000
    assert set(pd.read_csv(figures / "errors.csv")["algorithm"]) == {"DP-CD"}
    table = pd.read_csv(results / "rounds.csv").set_index("rule")["exponent"]
    assert table["composed"] == pytest.approx(0.5, abs=0.05)

    judged = pd.read_csv("results/smoke/claims.csv").query("paper == 'tiny'")
    assert judged["verdict"].tolist() == ["reproduced"] * 2
    assert judged["reproduced"].tolist() == pytest.approx(table.tolist())
