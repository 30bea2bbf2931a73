"""No module that sees records computes a statistic of them but where it is hidden.

Methods of fits cannot (``tests/solvers/test_secret.py``). Estimators hold the arrays
themselves: a function that sums, ranks or counts over them must be one of those listed
here, whose results are secrets, public by declaration, or about released numbers.
"""

import ast
from pathlib import Path

import pytest

import dperm

COMPARE = Path(dperm.__file__).parent / "compare"
SEEING = ("estimators.py", "ranges.py", "search.py", "guarantee.py")
REDUCING = {
    "mean", "sum", "std", "var", "median", "quantile", "percentile", "average", "cov",
    "nanmean", "nansum", "nanmax", "nanmin", "nanstd", "norm", "dot", "einsum", "ptp",
    "histogram", "unique", "bincount", "max", "min", "argmax", "argmin", "trace",
}  # fmt: skip
ALLOWED = {
    "_published": "of released weights",
    "_scores": "of predictions",
    "sums": "the secret of a Gaussian release",
    "_cautious": "of released weights",
    "standard": "of each record alone: a product with a diagonal",
    "predict": "of predictions",
}


def statistics(text):
    """Functions that reduce arrays, or multiply matrices, by their own name."""
    found = set()
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            multiplied = isinstance(node, ast.BinOp) and isinstance(
                node.op, ast.MatMult
            )
            if multiplied or (called and node.func.attr in REDUCING):
                found.add(function.name)
    return found


@pytest.mark.parametrize("name", SEEING)
def test_no_other_function_computes_a_statistic(name):
    path = COMPARE / name
    if path.is_file():
        assert statistics(path.read_text()) - {*ALLOWED} == set()


@pytest.mark.parametrize("text", ["X.mean(axis=0)", "np.sum(y)", "X.T @ y"])
def test_an_exact_sum_is_seen(text):
    assert statistics(f"def centred(X, y):\n    return {text}") == {"centred"}
