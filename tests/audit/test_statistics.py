"""No module that sees records computes a statistic of them but where it is hidden.

Methods of fits cannot (``tests/solvers/test_secret.py``). What stands above them holds
the arrays themselves: a function there that sums, ranks or counts must be one of those
listed here: its results are secrets, public by declaration, or about released numbers.
"""

import ast
from pathlib import Path

import pytest

import dperm

COMPARE = Path(dperm.__file__).parent / "estimators"
REDUCING = {
    "mean", "sum", "std", "var", "median", "quantile", "percentile", "average", "cov",
    "nanmean", "nansum", "nanmax", "nanmin", "nanstd", "norm", "dot", "einsum", "ptp",
    "histogram", "unique", "bincount", "max", "min", "argmax", "argmin", "trace",
}  # fmt: skip
ALLOWED = {
    "estimators": {
        "_published": "of released weights",
        "_cautious": "of released weights",
        "_scores": "of predictions",
        "predict": "of predictions",
    },
    "ranges": {
        "declared": "of what is declared",
        "sums": "the secret of a Gaussian release",
        "doubts": "of released sums",
        "standard": "of each record alone: a product with a diagonal",
    },
    "search": {"clipped_loss": "gets its noise in ``scored``"},
}
# Of the race on public data, whose numbers are not private.
OPEN = {"command", "methods", "pages", "peers", "race", "reference"}


def statistics(text):
    """Functions that reduce arrays, or multiply matrices, by their own name."""
    found = set()
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            called = isinstance(node, ast.Call) and isinstance(
                node.func, ast.Attribute
            )
            is_product = isinstance(getattr(node, "op", None), ast.MatMult)
            if is_product or (called and node.func.attr in REDUCING):
                found.add(function.name)
    return found


@pytest.mark.parametrize(
    "path", sorted(COMPARE.glob("*.py")), ids=lambda p: p.stem
)
def test_no_other_function_computes_a_statistic(path):
    """Every module is held to this but those of the contest."""
    if path.stem not in OPEN:
        found = statistics(path.read_text())
        assert found - {*ALLOWED.get(path.stem, ())} == set()


@pytest.mark.parametrize("text", ["X.mean(axis=0)", "np.sum(y)", "X.T @ y"])
def test_an_exact_sum_is_seen(text):
    assert statistics(f"def centred(X, y):\n    return {text}") == {"centred"}
