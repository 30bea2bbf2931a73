"""Two trees of results, compared row by row; the record of a run."""

import itertools
import json
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest

from commands import dperm
from dperm.core.experiment import files as store
from dperm.core.experiment import plan
from dperm.core.experiment.files import write_csv
from dperm.core.experiment.unit import IDENTITY
from dperm.pipeline import compare, completion, stages
from dperm.pipeline.compare import Level
from dperm.pipeline.completion import digest_rows

ONLY = [
    "paper.offline=[diabetes]",
    "~paper.runs.dp_cd_priv",
    "~paper.sweeps.lower_bound",  # of no problem
    "~paper.tables.lower_bound",
]


@pytest.fixture
def tree(configured):
    """Results of a small run."""
    for solver in ("dp_cd", "dp_sgd"):
        config = configured(f"solver={solver}", *ONLY)
        stages.tune(config)
        stages.evaluate(config)
    return plan.results_folder(config, "dpcd")


@pytest.fixture
def two(tmp_path):
    """Two equal trees of one table."""
    table = pd.DataFrame({
        "calibration": "paper", "passes": 2.0, "step": [0.1, 1.0, 1.0],
        "clip": [1.0, 1.0, 5.0], "replicate": 0, "checkpoint": 2.0,
        "objective": [1.0, np.nan, 4.0], "status": "ok",
        "seconds": 0.1, "commit": "a", "versions": "b", "config_digest": "c",
    })  # fmt: skip
    for name in "AB":
        store.write_table(tmp_path / name / "tune.parquet", table)
    return tmp_path / "A", tmp_path / "B", table


def compared(one, other, shared=False):
    """The lines of all tables, each with its table's name."""
    found = compare.agreements(one, other, shared)
    return [f"{each.name}: {line}" for each in found for line in each.lines]


def test_seconds_and_provenance_do_not_count(two):
    A, B, table = two
    store.write_table(B / "tune.parquet", table.assign(seconds=9.0, commit="z"))
    assert compared(A, B) == []


def test_tables_without_a_column_are_equal(two):
    """As what the small scales leave where nothing is judged."""
    A, B, _ = two
    for folder in (A, B):
        (folder / "noticed.csv").write_text("\n")
    assert compared(A, B) == []


def test_where_and_by_how_much(two):
    A, B, table = two
    changed = table.copy()
    changed.loc[2, "objective"] = 4.0 + 1e-9
    store.write_table(B / "tune.parquet", changed.iloc[::-1])
    (line,) = compared(A, B)
    assert line.startswith(
        "tune.parquet: objective: 1 of 3 rows differ, by at most 1e-09"
    )
    assert (
        "(relative 2.5e-10), first calibration=paper passes=2.0 step=1.0 clip=5.0"
        in line
    )


def test_lost_rows_columns_values_and_tables(two):
    A, B, table = two
    changed = table.iloc[:2].assign(status=["ok", "diverged"], extra=1)
    changed.loc[1, "objective"] = 3.0
    store.write_table(B / "tune.parquet", changed)
    store.write_text(B / "more.csv", "a\n1\n")
    found = "\n".join(compared(A, B))
    assert f"more.csv: only in {B}" in found
    assert "column extra: only in B" in found
    assert "1 rows only in A, first calibration=paper" in found
    assert "objective: 1 of 2 rows differ, first" in found
    assert "status: 1 of 2 rows differ" in found and "'diverged'" in found


def test_the_command(two):
    A, B, table = two
    run = partial(dperm, "compare")
    done = run(A, B)
    assert (done.returncode, done.stdout) == (0, "no difference\n")
    store.write_table(B / "tune.parquet", table.assign(status="diverged"))
    done = run(A, B)
    assert done.returncode == 40 and "status: 3 of 3 rows differ" in done.stdout
    store.write_text(B / "more.csv", "a\n1\n")
    assert "more.csv: only in" in run(A, B).stdout
    assert "more.csv" not in run("--shared", A, B).stdout
    store.write_text(A / "lone" / "a.csv", "a\n1\n")
    done = run("--shared", A / "lone", B)
    assert done.returncode == 1 and "no table in common" in done.stderr
    done = run(A, A / "nothing")
    assert done.returncode == 1 and "expected Parquet or CSV" in done.stderr


def levels(one, other, **given):
    return {each.name: each.level for each in compare.agreements(one, other, **given)}


def test_rounding_is_told_from_another_number(two):
    A, B, table = two
    store.write_table(B / "tune.parquet", table.assign(objective=[1 + 1e-12, None, 4]))
    assert levels(A, B) == {"tune.parquet": Level.ROUNDING}
    assert levels(A, B, rtol=1e-13) == {"tune.parquet": Level.NOTHING}
    store.write_table(B / "tune.parquet", table.assign(status=["ok", "ok", "no"]))
    assert levels(A, B) == {"tune.parquet": Level.NOTHING}


@pytest.mark.parametrize("shift, expected", [(0.0, 20), (0.5, 40)])
def test_other_seeds_agree_in_statistics_and_other_errors_do_not(
    tmp_path, shift, expected
):
    rng = np.random.default_rng(0)
    for name, more in (("A", 0.0), ("B", shift)):
        settings = itertools.product((0.1, 1.0), range(20))
        rows = [("paper", 2.0, step, 1.0, k, 2.0) for step, k in settings]
        table = pd.DataFrame(rows, columns=IDENTITY)
        table["relative_error"] = 1 + more + 0.1 * rng.standard_normal(len(table))
        store.write_table(tmp_path / name / "evaluate.parquet", table)
    found = levels(tmp_path / "A", tmp_path / "B")
    assert found == {"evaluate.parquet": expected}


@pytest.mark.parametrize("ends, expected", [((0.9, 1.2), 20), ((1.15, 1.2), 40)])
def test_intervals_that_overlap_agree_in_statistics(tmp_path, ends, expected):
    for name, (low, high) in (("A", (0.9, 1.1)), ("B", ends)):
        text = f"panel,mean,ci_low,ci_high\na,{(low + high) / 2},{low},{high}\n"
        store.write_text(tmp_path / name / "figure1.csv", text)
    assert levels(tmp_path / "A", tmp_path / "B") == {"figure1.csv": expected}


@pytest.mark.parametrize(("last", "expected"), [("a,2", 20), ("a,3", 40), ("b,2", 40)])
def test_rows_of_other_names_do_not_agree_in_statistics(tmp_path, last, expected):
    """Intervals overlap, but those of another epsilon or another method."""
    for name, row in (("A", "a,2,1.1"), ("B", f"{last},1.2")):
        text = f"method,epsilon,mean,ci_low,ci_high\na,1,1,0.9,1.1\n{row},0.9,1.3\n"
        store.write_text(tmp_path / name / "rates.csv", text)
    assert levels(tmp_path / "A", tmp_path / "B") == {"rates.csv": expected}


@pytest.mark.parametrize(("other", "expected"), [(3e-10, 10), (1e-8, 40)])
def test_numbers_cut_to_two_neighbours_agree_in_rounding(tmp_path, other, expected):
    for name, mean in (("A", 1.0000000004), ("B", 1.0000000004 + other)):
        write_csv(tmp_path / name / "table2.csv", pd.DataFrame({"mean": [mean]}))
    A, B = tmp_path / "A", tmp_path / "B"
    assert (A / "table2.csv").read_text() != (B / "table2.csv").read_text()
    assert levels(A, B) == {"table2.csv": expected}


def test_the_same_verdicts_are_the_last_thing_to_agree_in(tmp_path):
    text = "paper,place,claim,verdict,reproduced\na,b,c,reproduced,{}\n"
    for name, number in (("A", 1.0), ("B", 2.0)):
        store.write_text(tmp_path / name / "claims.csv", text.format(number))
    A, B = tmp_path / "A", tmp_path / "B"
    assert compare.overall(compare.agreements(A, B), A, B) == Level.VERDICTS
    store.write_text(B / "claims.csv", text.replace("reproduced,{}", "undecided,1"))
    assert compare.overall(compare.agreements(A, B), A, B) == Level.NOTHING


def test_rows_are_found_by_what_stands_first_and_not_by_their_place(tmp_path):
    old = pd.DataFrame({"panel": ["a", "a"], "x": [1, 2], "mean": [0.5, 0.6]})
    new = pd.DataFrame({"panel": ["b", "a", "a"], "x": [1, 1, 2],
                        "mean": [9.0, 0.5, 0.7], "more": 1})  # fmt: skip
    A, B = tmp_path / "A", tmp_path / "B"
    for folder, table in ((A, old), (B, new)):
        write_csv(folder / "figure1.csv", table)
    more, lost, changed = compared(A, B, shared=True)
    assert more == "figure1.csv: column more: only in B"
    assert lost == "figure1.csv: 1 rows only in B, first panel=b x=1"
    assert changed.startswith("figure1.csv: mean: 1 of 2 rows differ, by at most 0.1")
    write_csv(B / "figure1.csv", old.assign(more=1))
    (found,) = compare.agreements(A, B, shared=True)
    assert (found.level, found.lines) == (Level.BITS, ("column more: only in B",))
    assert levels(A, B) == {"figure1.csv": Level.NOTHING}
    write_csv(B / "figure1.csv", old.assign(x=[1, 3]))  # the same rows, moved
    assert compared(A, B)[0].startswith("figure1.csv: x: 1 of 2 rows")
    write_csv(B / "figure1.csv", old.iloc[::-1])  # in another order
    assert len(compared(A, B)) == 2


def test_a_papers_own_table_of_claims_has_no_verdicts_to_agree_in(tmp_path):
    for name, number in (("A", 1), ("B", 2)):
        store.write_text(tmp_path / name / "claims.csv", f"claim,epsilon\nc,{number}\n")
    A, B = tmp_path / "A", tmp_path / "B"
    assert compare.overall(compare.agreements(A, B), A, B) == Level.NOTHING


def test_the_exit_code_says_the_level_and_a_level_asked_for_is_enough(two):
    A, B, table = two
    store.write_table(B / "tune.parquet", table.assign(objective=[1 + 1e-12, None, 4]))

    def run(*given):
        return dperm("compare", *given, A, B)

    done = run()
    assert done.returncode == 10
    assert "agree in rounding: of 1 tables 1 in rounding" in done.stdout
    done = run("--level", "rounding")
    assert done.returncode == 0 and "rows differ" not in done.stdout
    done = run("--level", "bits")
    assert done.returncode == 10 and "rows differ" in done.stdout
    assert run("--level", "statistics", "--rtol", "1e-14").returncode == 40


def test_a_run_equals_itself_made_again(tree, configured, tmp_path):
    for solver in ("dp_cd", "dp_sgd"):
        config = configured(f"solver={solver}", "workers=2", *ONLY, results="again")
        stages.tune(config)
        stages.evaluate(config)
    again = plan.results_folder(config, "dpcd")
    assert compared(tree, again) == []
    other = configured("solver=dp_sgd", "seed=5", *ONLY, results="again")
    stages.tune(other)
    found = "\n".join(compared(tree, again))
    assert "dp_sgd/tune.parquet: seed: " in found and "objective: " in found
    assert "dp_cd/" not in found


def test_the_record_says_all_that_determined_the_run(tree, configured):
    completion.complete(configured(*ONLY))
    text = (tree / "record.json").read_text()
    record = json.loads(text)
    tuned = pd.read_parquet(tree / "diabetes/dp_cd/tune.parquet")
    assert record["seeds"]["diabetes/dp_cd/tune.parquet"] == sorted(set(tuned["seed"]))
    rows = record["digests"]["rows"]
    assert len(rows) == 4
    assert rows["diabetes/dp_cd/tune.parquet"] == digest_rows(tuned)
    assert digest_rows(tuned.assign(seconds=0.0)) == digest_rows(tuned)
    assert digest_rows(tuned.assign(seed=0)) != digest_rows(tuned)
    assert record["digests"]["data"]["diabetes"]["dataset_digest"].startswith("sha256:")
    assert len(record["digests"]["optima"]["diabetes"]["w_digest"]) == 20
    assert set(record["digests"]["solvers"]) == {"dp_cd", "dp_sgd"}
    assert record["configuration"]["paper"]["runs"]["dp_cd"]["grid"]
    assert record["configuration"]["problems"]["diabetes"]["loss"] == "least_squares"
    assert set(ONLY) <= set(record["configuration"]["overrides"])
    assert record["packages"]["numpy"] == np.__version__
    assert set(record["platform"]) == {
        "machine", "processor", "system", "libc", "python", "compiler"
    }  # fmt: skip
    assert not re.search(r'"/|tmp', text), "no folder of this machine"
