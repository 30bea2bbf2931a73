"""Data frames: columns of numbers are used, all others are refused by their types."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import dperm
from dperm.estimators.estimators import DPClassifier, DPRegressor


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 400
    age, city = rng.uniform(20, 80, n), rng.choice(["A", "B", "C"], n)
    made = pd.DataFrame(
        {"age": age, "city": city, "size": rng.uniform(-1, 1, n)}
    )
    made.loc[::10, "age"] = np.nan
    return made


def labels(frame):
    """Which text and gaps determine."""
    return (
        2.0 * (frame["city"] == "A") + 4.0 * frame["age"].isna()
    ).to_numpy()


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (["A", "B"] * 200, "(object|str)"),
        (pd.Categorical([1, 2] * 200), "category"),
        (pd.Series(["A"] * 400, dtype="string"), "string"),
        (np.datetime64("2020-01-01"), "datetime64"),
        ([1.0] * 399 + [1j], "complex128"),
        ([1.0] * 399 + ["n/a"], "object"),
        (pd.cut(np.arange(400), 3), "category"),
    ],
)
def test_columns_that_are_not_numbers_are_refused_with_the_recipe(
    frame, column, kind
):
    other = frame.assign(first=column, last=column)
    ends = {"bounds": (0, 1), "label_bounds": (0, 1)}
    with pytest.raises(
        ValueError, match=f"first .{kind}.*, last .{kind}"
    ) as found:
        dperm.fit(other.drop(columns="city"), labels(frame), **ends)
    text = str(found.value)
    assert (
        "OneHotEncoder(categories=[[...]]" in text and "SimpleImputer(" in text
    )
    assert "astype(float)" in text
    assert (
        "['first', 'last']" in text and "n/a" not in text and "age" not in text
    )


def test_the_recipe_makes_a_fit_that_uses_text_and_gaps(frame):
    """No record decides how many columns there are."""
    y = labels(frame)
    text = OneHotEncoder(categories=[["A", "B"]], handle_unknown="ignore")
    fill = {"strategy": "constant", "fill_value": 50.0}
    filled = SimpleImputer(**fill, keep_empty_features=True)
    gap = MissingIndicator(features="all")
    parts = [
        ("text", text, ["city"]),
        ("gaps", filled, ["age"]),
        ("gap", gap, ["age"]),
    ]
    recipe = ColumnTransformer(
        parts, remainder="passthrough", sparse_threshold=0
    )
    ends = {
        "label_bounds": (0, 6),
        "bounds": ([0, 0, 20, 0, -1], [1, 1, 80, 1, 1]),
    }
    model = DPRegressor("dp_gram", epsilon=100.0, random_state=0, **ends)
    pipe = make_pipeline(recipe, model).fit(frame, y)
    assert pipe.score(frame, y) > 0.7  # it is 0 without text and gaps
    odd = frame.assign(city="Z")
    assert pipe.predict(odd).shape == (400,)
    for age in (30.0, np.nan):
        assert (
            clone(pipe).fit(frame.assign(age=age), y)[-1].n_features_in_ == 5
        )


DTYPES = ["Int64", "boolean", "float[pyarrow]", "Float32",
         pd.ArrowDtype(pa.decimal128(10, 3))]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.filterwarnings("error")
def test_pandas_own_numbers_are_numbers_and_their_gaps_a_record_of_zeros(
    frame, dtype
):
    whole = (frame["size"] > 0).astype(int)
    exact = whole.map(Decimal) if "decimal" in str(dtype) else whole
    own = pd.DataFrame({"a": exact.astype(dtype), "b": frame["size"]})
    plain = pd.DataFrame({"a": whole.astype(float), "b": frame["size"]})
    own.loc[3, "a"], plain.loc[3, "a"] = pd.NA, np.nan
    known = {"classes": (0, 1), "bounds": (-1, 1), "random_state": 0}
    fits = [
        DPClassifier("dp_gd", **known).fit(one, whole) for one in (own, plain)
    ]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].epsilon_.given == (
        "n",
        "types of columns",
        "type of labels",
    )
    assert fits[0].feature_names_in_.tolist() == ["a", "b"]
    seen = own.drop(index=3)
    assert np.array_equal(
        fits[0].predict(seen), fits[1].predict(plain.drop(index=3))
    )


def test_frames_of_pipelines_are_fitted_and_columns_of_text_not_predicted(
    frame,
):
    y = labels(frame)
    numbers = frame[["size", "age"]].fillna(50.0)
    ends = {"bounds": (-3, 3), "label_bounds": (0, 6)}
    model = DPRegressor("moments", random_state=0, **ends)
    pipe = make_pipeline(StandardScaler(), model)
    pipe.set_output(transform="pandas").fit(numbers, y)
    assert pipe[-1].feature_names_in_.tolist() == ["size", "age"]
    assert pipe.predict(numbers).shape == (400,)
    with pytest.raises(ValueError, match=r"found age .object"):
        pipe[-1].predict(numbers.astype({"age": object}))
