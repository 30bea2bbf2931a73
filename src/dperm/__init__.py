"""dperm: reproduction of papers on differentially private convex optimisation.

Importing the package imports no large library, sets no environment variable and starts
nothing. Its names are imported at their first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dperm.estimators.estimators import DPClassifier as DPClassifier
    from dperm.estimators.estimators import DPRegressor as DPRegressor
    from dperm.estimators.estimators import fit as fit
    from dperm.estimators.guarantee import Budget as Budget
    from dperm.estimators.guarantee import BudgetError as BudgetError
    from dperm.estimators.search import PrivateSearch as PrivateSearch

IN_KEYS = "nothing"  # it imports what it offers at its first use
__version__ = "3.0.0"

# Public names, and the modules that define them.
PLACES = {
    "Budget": "dperm.estimators.guarantee",
    "BudgetError": "dperm.estimators.guarantee",
    "DPClassifier": "dperm.estimators.estimators",
    "DPRegressor": "dperm.estimators.estimators",
    "PrivateSearch": "dperm.estimators.search",
    "fit": "dperm.estimators.estimators",
}

__all__ = [
    "Budget",
    "BudgetError",
    "DPClassifier",
    "DPRegressor",
    "PrivateSearch",
    "__version__",
    "fit",
]


def __getattr__(name: str) -> Any:
    if name in PLACES:
        return getattr(importlib.import_module(PLACES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
