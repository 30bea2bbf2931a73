"""Privacy: the ledger of releases, its cost, calibration, and the noise drawn.

Names are imported at their first use: an accountant is found by its name without them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dperm.core.privacy.accounting import epsilon as epsilon
    from dperm.core.privacy.accounting import true_epsilon as true_epsilon
    from dperm.core.privacy.calibration import calibrate as calibrate
    from dperm.core.privacy.ledger import Event as Event
    from dperm.core.privacy.ledger import Gaussian as Gaussian
    from dperm.core.privacy.ledger import Laplace as Laplace
    from dperm.core.privacy.ledger import Ledger as Ledger
    from dperm.core.privacy.ledger import NonPrivate as NonPrivate
    from dperm.core.privacy.ledger import SampledGaussian as SampledGaussian
    from dperm.core.privacy.mechanisms import gaussian as gaussian
    from dperm.core.privacy.mechanisms import streams as streams

PLACES = {
    "Event": "dperm.core.privacy.ledger",
    "Gaussian": "dperm.core.privacy.ledger",
    "Laplace": "dperm.core.privacy.ledger",
    "Ledger": "dperm.core.privacy.ledger",
    "NonPrivate": "dperm.core.privacy.ledger",
    "SampledGaussian": "dperm.core.privacy.ledger",
    "calibrate": "dperm.core.privacy.calibration",
    "epsilon": "dperm.core.privacy.accounting",
    "gaussian": "dperm.core.privacy.mechanisms",
    "streams": "dperm.core.privacy.mechanisms",
    "true_epsilon": "dperm.core.privacy.accounting",
}
__all__ = [*PLACES]


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(PLACES[name]), name)
