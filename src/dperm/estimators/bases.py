"""scikit-learn's base classes, with the types that it does not declare.

A class of unknown type below an estimator makes a type checker accept every argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:

    class BaseEstimator:
        """Parameters by name, copies and reprs, also as HTML."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Parameters by name."""

        def set_params(self, **params: Any) -> Self:
            """Change parameters."""

        def __sklearn_clone__(self) -> Self:
            """A copy without a fit."""

        def __sklearn_tags__(self) -> Any:
            """What an estimator can do."""

        def __getstate__(self) -> Any:
            """What is pickled."""

    class ClassifierMixin:
        """Of classifiers."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """Accuracy."""

    class RegressorMixin:
        """Of regressions."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """R squared."""

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "RegressorMixin"]
