"""``dperm audit module:function``: audit a function, print and save the verdict."""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import re
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from dperm.audit.blackbox import AuditVerdict, PrivacyClaim, audit
from dperm.audit.canaries import audit_once
from dperm.audit.functions import (
    NORMS,
    PATIENCE,
    RELATIONS,
    CannotAuditError,
    Domain,
    load,
)
from dperm.privacy.accountants.tight import gaussian_epsilon

# module:function or path.py:function
PLACE = re.compile(r"[\w./-]+:[A-Za-z_][\w.]*")
NOT_REFUTED = 0  # exit codes
REFUTED = 1
REFUSED = 2
MAX_SIZE = 10**4  # records, features
MOST_CANARIES = 10**5
GRACE = 4.0  # seconds in which a process may start, and a run may end
COUNTED_ONLY = "no draw was replayed: counted only"

DESCRIPTION = "Try to refute that fit(X, y, seed) is (epsilon, delta)-private."
EPILOG = """
exit code: 0 not refuted, 1 refuted, 2 cannot be audited
not refuted is not private: docs/howto/audit.md says how to read a verdict
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``dperm audit`` to its parser."""
    parser.description = DESCRIPTION
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    above = _between(float, 0, math.inf)
    size = _between(int, 0, MAX_SIZE)
    ends = "B or LOW:HIGH"
    below = _between(float, -1e-300, 1)
    level = _between(float, 0.5, 1)
    add("function", type=_place, help="module:function or path.py:function")
    add("--epsilon", type=above, required=True, help="what it claims, above 0")
    add(
        "--delta",
        type=below,
        default=0.0,
        help="what it claims, from 0; default 0",
    )
    add(
        "--n",
        type=_between(int, 1, MAX_SIZE),
        default=8,
        help="records; default 8",
    )
    add("--p", type=size, default=2, help="features; default 2")
    text = "features that it assumes: -B to B; none given: any number"
    add("--x-bound", type=_range, metavar=ends, help=text)
    add("--y-bound", type=_range, metavar=ends, help="labels that it assumes")
    which = (
        "norm of a record's features that B bounds; default linf, each feature"
    )
    add("--norm", choices=sorted(NORMS), default="linf", help=which)
    few = "draw M records by coins and tell the coins from few runs, for slow training"
    add(
        "--canaries",
        type=_between(int, 1, MOST_CANARIES),
        metavar="M",
        help=few,
    )
    add("--relation", choices=RELATIONS, default="replace", help="neighbours")
    add("--seconds", type=above, default=45.0, help="of CPU; default 45")
    gaussian = "the claim is that of Gaussian noise, which bounds what counts may show"
    add("--gaussian", action="store_true", help=gaussian)
    add(
        "--confidence",
        type=level,
        default=0.999,
        help="of a refutation; 0.999",
    )
    seeds = _between(int, -1, 2**62)
    add("--seed", type=seeds, default=0, help="of the audit; default 0")
    add("--json", action="store_true", help="print the verdict as JSON")
    add("--out", help="folder; default results/audit/functions/<function>")


def _between(parse: Callable[[str], Any], low: float, high: float) -> Any:
    """A type of numbers between two, of which neither is one."""

    def read(text: str) -> Any:
        """A number within the limits, or argparse's error."""
        with suppress(ValueError):
            if low < parse(text) < high:
                return parse(text)
        expected = f"more than {low:.3g} and less than {high:.3g}"
        raise argparse.ArgumentTypeError(f"{text}: expected {expected}")

    return read


def _place(text: str) -> str:
    if not PLACE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r}: expected module:function")
    return text


def _range(text: str) -> tuple[float, float]:
    """Two ends, or one and its opposite."""
    with suppress(ValueError):
        *below, high = map(float, text.split(":"))
        low = below[0] if below else -high
        if len(below) < 2 and -math.inf < low < high < math.inf:
            return low, high
    raise argparse.ArgumentTypeError(f"{text!r}: expected B > 0 or LOW:HIGH")


def main(options: argparse.Namespace) -> None:
    """Audit the function that the command line names."""
    try:
        claim = PrivacyClaim(
            options.epsilon,
            options.delta,
            options.confidence,
            options.seconds,
            gaussian=options.gaussian,
        )
        n = options.n
        p = options.p
        if options.canaries:
            claim = replace(claim, is_of_canaries=True)
            n = options.canaries
            p = max(options.canaries, options.p)
        if options.gaussian and not options.delta:
            raise CannotAuditError(
                "--gaussian: expected --delta with it, above 0"
            )
        if options.norm != "linf" and options.x_bound is None:
            raise CannotAuditError(
                f"--norm {options.norm}: expected --x-bound with it"
            )
        bounds = (
            options.x_bound,
            options.norm,
            options.y_bound,
            options.relation,
        )
        domain = Domain(n, p, *bounds)
        verdict = in_time(options.function, claim, domain, options.seed)
        name = re.sub(r"[^\w.]+", "-", options.function).strip("-.")
        folder = Path(options.out or f"results/audit/functions/{name}")
        text = verdict_text(options.function, claim, domain, verdict, folder)
        save(folder, verdict, text)
    except (CannotAuditError, OSError) as error:
        print(f"dperm audit: {error}", file=sys.stderr, flush=True)
        raise SystemExit(REFUSED) from error
    if options.json:
        text = as_json(options.function, claim, verdict, folder)
    print(text)
    status = REFUTED if verdict.refuted else NOT_REFUTED
    raise SystemExit(status)


def in_time(
    function: str, claim: PrivacyClaim, domain: Domain, seed: int
) -> AuditVerdict:
    """The verdict on a function; the one so far if a run does not end in time.

    The function runs in a process of its own, which is ended with the time, whatever it
    does. It reports every few seconds.

    Raises
    ------
    CannotAuditError
        If the function cannot be audited, or ends its process.
    """
    ours, theirs = multiprocessing.Pipe(duplex=False)
    arguments = (theirs, function, claim, domain, seed)
    # may fork too
    process = multiprocessing.Process(target=_audited, args=arguments)
    limit = PATIENCE * claim.seconds
    end = time.monotonic() + limit + GRACE
    so_far = None
    process.start()
    theirs.close()
    try:
        while ours.poll(max(end - time.monotonic(), 0.0)):
            so_far, is_last = ours.recv()
            if isinstance(so_far, CannotAuditError):
                raise so_far
            if is_last:
                return so_far
            proved = f"epsilon >= {so_far.epsilon:.4g} so far"
            spent = f"{so_far.seconds:.0f} of {claim.seconds:g} seconds of CPU"
            line = f"  {spent}, {so_far.runs} runs: {proved}"
            print(line, file=sys.stderr, flush=True)
    except EOFError:
        raise CannotAuditError(
            f"{function}: it ended its own process"
        ) from None
    finally:
        process.kill()
        process.join()
    if so_far is None:
        text = f"its first runs took more than {limit:g} seconds by the clock"
        raise CannotAuditError(f"{function}: {text}")
    note = f"a run was broken off after {limit:g} seconds by the clock"
    return replace(so_far, notes=[*so_far.notes, note])


def _audited(
    pipe: Connection,
    function: str,
    claim: PrivacyClaim,
    domain: Domain,
    seed: int,
) -> None:
    """Send verdicts so far and the last one, or why there is none."""

    def report(verdict: AuditVerdict) -> None:
        """Send a verdict that is not the last one."""
        pipe.send((verdict, False))

    try:
        judge = audit_once if claim.is_of_canaries else audit
        with redirect_stdout(sys.stderr):  # what a module prints is no verdict
            fit = load(function)
        pipe.send((judge(fit, claim, domain, seed, report), True))
    except CannotAuditError as error:
        pipe.send((error, True))


def verdict_text(
    function: str,
    claim: PrivacyClaim,
    domain: Domain,
    verdict: AuditVerdict,
    folder: Path,
) -> str:
    """The verdict in a few lines."""
    sign = "=" if math.isinf(verdict.epsilon) else ">="
    method = f"by counting, with confidence {claim.confidence:g}"
    if claim.is_of_canaries:
        method = f"by canaries, with confidence {claim.confidence:g}"
    if verdict.frozen:
        method = "by frozen noise: the output is affine in it, checked on fresh draws"
    outcome = "REFUTED" if verdict.refuted else "not refuted"
    delta = f"at delta {claim.delta:g}"
    headline = (
        f"{outcome}: {function}, claimed epsilon {claim.epsilon:g} {delta}"
    )
    if not verdict.replayed:
        headline += f"; {COUNTED_ONLY}"
    lines = [
        headline,
        f"  proved: epsilon {sign} {verdict.epsilon:.4g} {delta}, {method}",
        f"  proof: {verdict.proof}",
    ]
    if verdict.pair is not None:
        size = f"n = {domain.n}, p = {domain.p}"
        lines.append(
            f"  neighbours: {verdict.pair.text} ({size}), in {folder}"
        )
    if verdict.mu > 0 and not verdict.frozen:
        lines.append(f"  trade-off: {trade_off_text(claim, verdict)}")
    lines += [f"  note: {note}" for note in verdict.notes]
    lines.append(
        f"  {verdict.runs} runs in {verdict.seconds:.1f} seconds of CPU"
    )
    return "\n".join(lines)


def as_json(
    function: str, claim: PrivacyClaim, verdict: AuditVerdict, folder: Path
) -> str:
    """The verdict for a script; an infinite epsilon is null."""
    record = {
        "function": function,
        "refuted": verdict.refuted,
        "claimed_epsilon": claim.epsilon,
        "delta": claim.delta,
        "confidence": claim.confidence,
        "proved_epsilon": verdict.epsilon
        if math.isfinite(verdict.epsilon)
        else None,
        "is_infinite": math.isinf(verdict.epsilon),
        "is_frozen": verdict.frozen,
        "proof": verdict.proof,
        "neighbours": verdict.pair.text if verdict.pair else None,
        "runs": verdict.runs,
        "cpu_seconds": round(verdict.seconds, 3),
        "notes": verdict.notes,
        "folder": str(folder),
    }
    return json.dumps(record, indent=1)


def trade_off_text(claim: PrivacyClaim, verdict: AuditVerdict) -> str:
    """What the counts say of a Gaussian trade-off, and what that would cost."""
    text = f"that of no Gaussian noise of mu below {verdict.mu:.4g}"
    if claim.delta:
        cost = gaussian_epsilon(verdict.mu, claim.delta)
        text += (
            f"; if its noise is Gaussian (--gaussian), epsilon >= {cost:.4g}"
        )
    return text


def save(folder: Path, verdict: AuditVerdict, text: str) -> None:
    """Write the verdict, and the neighbours as D.csv and D_prime.csv.

    The folder is created if need be; a command that is run again gives the same.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["dperm", *sys.argv[1:]])
    verdict_file = folder / "verdict.txt"
    verdict_file.write_text(f"{command}\n{text}\n", encoding="utf-8")
    if verdict.pair is None:
        return
    for name, records in (
        ("D", verdict.pair.first),
        ("D_prime", verdict.pair.second),
    ):
        names = [f"x{j + 1}" for j in range(records.X.shape[1])]
        header = ",".join([*names, "y"])
        # of which 17 digits tell all
        rows = np.column_stack([records.X, records.y])
        path = folder / f"{name}.csv"
        np.savetxt(path, rows, "%.17g", ",", header=header, comments="")
