"""Sums over blocks of records, from arrays and from files, are those over all."""

import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dperm
from dperm.compare import estimators
from dperm.compare.units import units
from dperm.data import blocks as data
from dperm.data.blocks import Held, Part, parquet
from dperm.solvers import blocks
from dperm.solvers.blocks import Blocked, Blocks, added

N, P = 900, 4
PLAIN = (
    units("bounds", None, P, False),
    units("label_bounds", None, 1, False),
)
LOGISTIC = ("objective_perturbation", "dp_gd", "dp_gram")
SQUARES = ("moments", "dp_gd", "dp_gram")


@pytest.fixture
def small(monkeypatch):
    """Blocks of 30 records, parts of 90 and samples of 300, also of small arrays."""
    monkeypatch.setattr(data, "CELLS", 30 * P)
    monkeypatch.setattr(data, "PART", 90 * P)
    monkeypatch.setattr(blocks, "SAMPLE", 300 * P)
    monkeypatch.setattr(estimators, "LARGE", 0)


def records(unclean=True):
    """X (n, p) in units of all sizes, and labels; some are no numbers or no class."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N, P)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 5.0, 0.0, 0.0]
    y = np.where(X[:, 0] - X[:, 3] + rng.standard_normal(N) > 0, 1.0, 0.0)
    if unclean:
        X[5, 2], X[50, 0], X[500, 1], y[70] = np.nan, np.inf, 1e200, 7.0
    return X, y


def folder(tmp_path, X, y, rows=70):
    """The same in two Parquet files of several row groups."""
    table = pd.DataFrame(X, columns=[*"abcd"]).assign(label=y)
    for k, part in enumerate((table[:400], table[400:])):
        part.to_parquet(tmp_path / f"{k}.parquet", index=False, row_group_size=rows)
    return tmp_path


def fitted(X, y, solver, **more):
    how = {"epsilon": 3.0, "random_state": 1, **more}
    return dperm.fit(X, y, solver, **how)


BOUNDS = ([-3, -20, -0.3, -3], [3, 30, 0.3, 3])
HOW = (
    {"bounds": BOUNDS},
    {"feature_scale": [1.0, 11.0, 0.1, 1.0], "fit_intercept": False},
    {},  # scales that are released
)


@pytest.mark.parametrize("how", HOW, ids=("bounds", "scales", "private"))
@pytest.mark.parametrize(
    ("solver", "loss"),
    [(one, "logistic") for one in LOGISTIC]
    + [(one, "least_squares") for one in SQUARES],
)
def test_a_fit_in_blocks_is_the_fit_in_memory(solver, loss, how, small, monkeypatch):
    X, y = records()
    signed = {"classes": (0.0, 1.0)} if loss == "logistic" else {"label_bounds": (0, 1)}
    if loss != "logistic" and not how:
        signed = {"loss": loss}
    found = fitted(X, y, solver, **how, **signed)
    monkeypatch.setattr(estimators, "LARGE", 1 << 30)
    wanted = fitted(X, y, solver, **how, **signed)
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.intercept_, wanted.intercept_, rtol=1e-6)
    assert found.epsilon_.ledger == wanted.epsilon_.ledger


def test_a_folder_of_parquet_is_fitted_as_its_records(small, tmp_path):
    X, y = records()
    made = parquet(folder(tmp_path, X, y), "label")
    assert made.shape == (N, P) and made.names == (*"abcd",)
    assert [part.n for part in made.parts] == [140, 140, 120, 140, 140, 140, 80]
    how = {"bounds": BOUNDS, "classes": (0.0, 1.0)}
    found = fitted(str(tmp_path), "label", "dp_gd", **how)
    wanted = fitted(X, y, "dp_gd", **how)
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-9)
    assert found.epsilon_.given == wanted.epsilon_.given == ("n",)
    assert [*found.feature_names_in_] == [*"abcd"]


def test_what_files_cannot_be_is_said_before_anything_runs(small, tmp_path):
    X, y = records()
    folder(tmp_path, X, y)
    how = {"bounds": BOUNDS, "classes": (0.0, 1.0)}
    with pytest.raises(ValueError, match=r"dp_cd: .* needs all records in memory"):
        fitted(tmp_path, "label", "dp_cd", **how)
    with pytest.raises(ValueError, match=r"dp_fw: .* needs all records in memory"):
        fitted(tmp_path, "label", "dp_fw", **how)
    with pytest.raises(ValueError, match="expected classes"):
        dperm.DPClassifier().fit(tmp_path, "label")
    with pytest.raises(ValueError, match=r"expected a column of .* a, b, c, d, label"):
        fitted(tmp_path, "lable", "dp_gd", **how)
    with pytest.raises(ValueError, match="expected a Parquet file or a folder"):
        fitted(tmp_path / "none", "label", "dp_gd", **how)
    (tmp_path / "table.csv").write_text("a,label\n1,0\n")
    with pytest.raises(ValueError, match=r"table.csv: expected a Parquet file"):
        fitted(tmp_path / "table.csv", "label", "dp_gd", **how)
    pd.DataFrame({"a": [1.0], "label": [0.0]}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"not the columns of .*: b, c, d"):
        parquet(tmp_path, "label")
    text = pd.DataFrame(X[:9], columns=[*"abcd"]).assign(label=0.0, b="x")
    text.to_parquet(tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet: no numbers in columns b"):
        parquet(tmp_path, "label")


def test_a_label_that_is_no_number_does_not_end_a_regression(small, tmp_path):
    """One record would decide whether there is a fit, and stand in the error."""
    X, _ = records(unclean=False)
    how = {"bounds": BOUNDS, "label_bounds": (0, 1), "loss": "least_squares"}
    y = (X[:, 0] > 0).astype(float)
    y[4] = np.nan
    wanted = fitted(X, y, "dp_gd", **how).coef_
    odd = y.astype(object)
    odd[4] = "absent"
    assert np.array_equal(fitted(X, odd, "dp_gd", **how).coef_, wanted)
    folder(tmp_path, X, odd.astype(str))
    with pytest.raises(ValueError, match="y: expected numbers in 'label', found text"):
        fitted(tmp_path, "label", "dp_gd", **how)


def test_a_file_that_is_linked_does_not_count_twice(tmp_path):
    folder(tmp_path, *records())
    os.link(tmp_path / "0.parquet", tmp_path / "7.parquet")
    with pytest.raises(ValueError, match=r"same file .* would count twice"):
        parquet(tmp_path, "label")


# --- each part once -------------------------------------------------------------------

PARTS = tuple(Part(n, f"file{n}") for n in (3, 5, 2))
FOUND = [(1, 5, np.array([0.2, 7.0])), (2, 2, np.array([0.3, 7.0])),
         (0, 3, np.array([0.1, 7.0]))]  # fmt: skip


def once_each(combine):
    """Whether a part that comes twice changes the sum, or its bits."""
    again = [FOUND[2], *FOUND, FOUND[0]]
    wanted = np.array([0.1 + 0.2 + 0.3, 21.0])
    return (combine(PARTS, FOUND) == wanted).all() and (
        combine(PARTS, again) == wanted
    ).all()


def test_a_part_that_comes_twice_counts_once_and_sums_have_one_order():
    assert once_each(added)
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1  # so that the order is seen


def test_a_sum_that_counts_a_part_twice_is_caught():
    def all_that_come(parts, found):
        return sum(value for _, _, value in found)

    assert not once_each(all_that_come)


def test_a_part_that_is_missing_or_changed_ends_the_fit():
    with pytest.raises(OSError, match="1 parts of 3 are missing"):
        added(PARTS, FOUND[:2])
    with pytest.raises(OSError, match=r"file5: expected 5 records .* found 4"):
        added(PARTS, [(1, 4, 0.0), *FOUND])


@pytest.mark.parametrize("once", [True, False])
def test_replacing_a_record_moves_a_sum_by_what_the_ledger_states(
    once, small, tmp_path
):
    """2 C, attained; a part that counts twice moves it by 4 C, and is seen."""
    X, y = records(unclean=False)
    other, labels, C = X.copy(), y.copy(), 0.5
    X[130] = other[130] = [2.0, 0.0, 0.0, 2.0]
    y[130], labels[130] = 0.0, 1.0
    ends = (*PLAIN, np.ones(P))
    sums = []
    for k, (A, b) in enumerate(((X, y), (other, labels))):
        (tmp_path / str(k)).mkdir()
        source = parquet(folder(tmp_path / str(k), A, b), "label")
        parts = source.parts if once else source.parts * 2
        source = replace(source, parts=parts)
        how = {"classes": np.array([0.0, 1.0]), "positive": 1.0}
        made = Blocked(Blocks(source, "logistic", *ends, **how))
        sums.append(made.gradient(np.zeros(P), C))
    moved = np.linalg.norm(sums[0] - sums[1])
    assert (moved == pytest.approx(2 * C, rel=1e-9)) == once


def test_a_sample_is_of_records_that_lie_evenly(small):
    X, y = records(unclean=False)
    X[:, 0] = np.arange(N)
    ends = (*PLAIN, np.ones(P))
    made = Blocked(Blocks(Held(X, y), "least_squares", *ends))
    rows = made.sample().rows
    assert len(rows) == 300 and made.n == N
    assert rows[:, 0].mean() == pytest.approx(N / 2, rel=0.1)
    with pytest.raises(ValueError, match="have no batches"):
        made.gradient(np.zeros(P), 0.5, [0, 1])
