"""``dperm audit module:function``: audit a function, print and save the verdict."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from dperm.audit.blackbox import Claim, Verdict, audit
from dperm.audit.functions import (
    NORMS,
    RELATIONS,
    Domain,
    RefusedError,
    load,
)

PLACE = re.compile(r"[\w./-]+:[A-Za-z_][\w.]*")  # module:function or path.py:function
NOT_REFUTED, REFUTED, REFUSED = 0, 1, 2  # exit codes
LARGEST = 10**4  # records, features
leave = os._exit  # which a function that is audited cannot reach
GRACE = 3.0  # seconds in which a function that is broken off may end

DESCRIPTION = "Try to refute that fit(X, y, seed) is (epsilon, delta)-private."
EPILOG = """
exit code: 0 not refuted, 1 refuted, 2 cannot be audited
not refuted is not private: docs/howto/audit.md says how to read a verdict
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``dperm audit`` to its parser."""
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add, above = parser.add_argument, _between(float, 0, math.inf)
    add("function", type=_place, help="module:function or path.py:function")
    add("--epsilon", type=above, required=True, help="what it claims, above 0")
    add(
        "--delta",
        type=_between(float, -1e-300, 1),
        default=0.0,
        help="what it claims, from 0; default 0",
    )
    add("--n", type=_between(int, 1, LARGEST), default=8, help="records; default 8")
    add("--p", type=_between(int, 0, LARGEST), default=2, help="features; default 2")
    bounds: dict[str, Any] = {"type": _range, "metavar": "B or LOW:HIGH"}
    add(
        "--x-bound",
        help="features that it assumes: -B to B; none given: any number",
        **bounds,
    )
    add("--y-bound", help="labels that it assumes", **bounds)
    add("--labels", type=_labels, metavar="A,B,...", help="all labels that exist")
    add(
        "--norm",
        choices=sorted(NORMS),
        default="linf",
        help="norm of a record's features that B bounds; default linf, each feature",
    )
    add("--relation", choices=RELATIONS, default="replace", help="neighbours")
    add("--seconds", type=above, default=45.0, help="by the clock; default 45")
    add(
        "--confidence",
        type=_between(float, 0.5, 1),
        default=0.999,
        help="of a refutation; 0.999",
    )
    seeds = _between(int, -1, 2**62)
    add("--seed", type=seeds, default=0, help="of the audit; default 0")
    add("--out", help="folder; default results/audit/functions/<function>")


def _between(kind: Callable[[str], Any], low: float, high: float) -> Any:
    """A type of numbers between two, of which neither is one."""

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not low < value < high:
            named = f"more than {low:.3g} and less than {high:.3g}"
            raise argparse.ArgumentTypeError(f"{text}: expected {named}")
        return value

    return read


def _place(text: str) -> str:
    if not PLACE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r}: expected module:function")
    return text


def _numbers(text: str, mark: str) -> list[float]:
    """Finite numbers between marks; none if there is anything else."""
    try:
        found = [float(part) for part in text.split(mark)]
    except ValueError:
        return []
    return found if np.isfinite(found).all() else []


def _range(text: str) -> tuple[float, float]:
    ends = _numbers(text, ":")
    ends = [-ends[0], ends[0]] if len(ends) == 1 else ends
    if len(ends) != 2 or ends[0] >= ends[1]:
        raise argparse.ArgumentTypeError(f"{text!r}: expected B > 0 or LOW:HIGH")
    return ends[0], ends[1]


def _labels(text: str) -> tuple[float, ...]:
    found = tuple(sorted(set(_numbers(text, ","))))
    if len(found) < 2:
        raise argparse.ArgumentTypeError(f"{text!r}: expected numbers, as in -1,1")
    return found


def domain_of(given: argparse.Namespace) -> Domain:
    """The domain that the options declare.

    Raises RefusedError if two of them exclude each other.
    """
    if given.labels and given.y_bound:
        raise RefusedError("--labels and --y-bound: expected one of them")
    if given.norm != "linf" and given.x_bound is None:
        raise RefusedError(f"--norm {given.norm}: expected --x-bound with it")
    y, listed = given.labels or given.y_bound, bool(given.labels)
    sizes = (given.n, given.p)
    return Domain(*sizes, given.x_bound, given.norm, y, listed, given.relation)


def main(given: argparse.Namespace) -> None:
    """Audit the function that the command line names."""
    try:
        claim = Claim(given.epsilon, given.delta, given.confidence, given.seconds)
        domain = domain_of(given)
        with watched(given.seconds + GRACE):
            verdict = audit(load(given.function), claim, domain, given.seed, _show)
        name = re.sub(r"[^\w.]+", "-", given.function).strip("-.")
        folder = Path(given.out or f"results/audit/functions/{name}")
        text = verdict_text(given.function, claim, domain, verdict, folder)
        save(folder, verdict, vars(given), text)
    except (RefusedError, OSError) as error:
        _complain(str(error))
        raise SystemExit(REFUSED) from error
    print(text)
    raise SystemExit(REFUTED if verdict.refuted else NOT_REFUTED)


def _show(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def _complain(text: str) -> None:
    print(f"dperm audit: {text}", file=sys.stderr, flush=True)


@contextmanager
def watched(seconds: float) -> Iterator[None]:
    """End the process where a function cannot be broken off in time."""

    def end() -> None:
        _complain(f"the function does not stop: ended after {seconds:g} seconds")
        leave(REFUSED)

    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def verdict_text(
    function: str, claim: Claim, domain: Domain, verdict: Verdict, folder: Path
) -> str:
    """The verdict in a few lines."""
    sign = "=" if math.isinf(verdict.epsilon) else ">="
    how = "by counting"
    if verdict.frozen:
        how = "by frozen noise: the output is affine in it, checked on fresh draws"
    how += "" if verdict.certain else f", with confidence {claim.confidence:g}"
    claimed = f"epsilon {claim.epsilon:g} at delta {claim.delta:g}"
    proved = f"epsilon {sign} {verdict.epsilon:.4g} at delta {claim.delta:g}"
    lines = [
        f"{'REFUTED' if verdict.refuted else 'not refuted'}: {function}, claimed"
        f" {claimed}",
        f"  proved: {proved}, {how}",
        f"  proof: {verdict.proof}",
    ]
    if verdict.pair is not None:
        size = f"n = {domain.n}, p = {domain.p}"
        lines.append(f"  neighbours: {verdict.pair.text} ({size}), in {folder}")
    lines += [f"  note: {note}" for note in verdict.notes]
    lines.append(f"  {verdict.runs} runs in {verdict.seconds:.1f} seconds")
    return "\n".join(lines)


def save(folder: Path, verdict: Verdict, given: dict[str, Any], text: str) -> None:
    """Write the verdict, and the neighbours as D.csv and D_prime.csv.

    Parameters
    ----------
    folder : Path
        Created if need be.
    given : dict
        The arguments, saved with the verdict.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "verdict.txt").write_text(text + "\n", encoding="utf-8")
    known = {**asdict(replace(verdict, pair=None)), "arguments": given}
    if math.isinf(verdict.epsilon):
        known["epsilon"] = "inf"
    spelt = json.dumps(known, indent=1) + "\n"
    (folder / "verdict.json").write_text(spelt, encoding="utf-8")
    if verdict.pair is None:
        return
    for name, data in (("D", verdict.pair.first), ("D_prime", verdict.pair.second)):
        names = ",".join([*(f"x{j + 1}" for j in range(data.X.shape[1])), "y"])
        rows = np.column_stack([data.X, data.y]).tolist()  # repr loses no digit
        lines = [names, *(",".join(map(repr, row)) for row in rows)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
