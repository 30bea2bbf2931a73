"""Privacy: the ledger of releases, its cost, calibration, and the noise drawn.

Names are imported at their first use: an accountant is found by its name without them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dperm.privacy.accounting import epsilon as epsilon
    from dperm.privacy.accounting import true_epsilon as true_epsilon
    from dperm.privacy.calibration import calibrate as calibrate
    from dperm.privacy.events import Event as Event
    from dperm.privacy.events import Gaussian as Gaussian
    from dperm.privacy.events import Laplace as Laplace
    from dperm.privacy.events import Ledger as Ledger
    from dperm.privacy.events import NonPrivate as NonPrivate
    from dperm.privacy.events import SampledGaussian as SampledGaussian
    from dperm.privacy.noise import gaussian as gaussian
    from dperm.privacy.noise import streams as streams

PLACES = {
    "Event": "dperm.privacy.events",
    "Gaussian": "dperm.privacy.events",
    "Laplace": "dperm.privacy.events",
    "Ledger": "dperm.privacy.events",
    "NonPrivate": "dperm.privacy.events",
    "SampledGaussian": "dperm.privacy.events",
    "calibrate": "dperm.privacy.calibration",
    "epsilon": "dperm.privacy.accounting",
    "gaussian": "dperm.privacy.noise",
    "streams": "dperm.privacy.noise",
    "true_epsilon": "dperm.privacy.accounting",
}
__all__ = [*PLACES]


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(PLACES[name]), name)
