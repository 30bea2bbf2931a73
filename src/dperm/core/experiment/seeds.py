"""Seeds by name: each run has its own, recorded in its row."""

import hashlib


def seed(
    master: int, stage: str, problem: str, solver: str, passes: float, replicate: int
) -> int:
    """The seed of one run, in [0, 2^63).

    The lanes of a grid share it: they differ in step and clip, not in their draws. The
    calibration is left out too, so that both are compared on common random numbers.

    Parameters
    ----------
    master : int
        The master seed of the configuration.
    stage : str
        ``tune`` or ``evaluate``: tuning and evaluation never share a seed.
    problem, solver : str
        Names of their YAMLs.
    passes : float
    replicate : int
        Counted from 0.
    """
    name = f"{master}/{stage}/{problem}/{solver}/{float(passes)!r}/{replicate}"
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1
