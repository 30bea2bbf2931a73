"""``dperm audit module:function``: the audit of a function of the reader's own."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from dperm.audit.blackbox.domain import NORMS, RELATIONS, Domain
from dperm.audit.blackbox.recording import Fit, RefusedError, load
from dperm.audit.blackbox.search import Claim, Verdict, audit

PLACE = re.compile(r"[\w./-]+:[A-Za-z_][\w.]*")  # module:function or path.py:function
NOT_REFUTED, REFUTED, REFUSED = 0, 1, 2  # exit codes
MOST = 10**4  # records, features
FEATURES = (1, 2, 4)  # the last for extreme records: few sums of two overflow

DESCRIPTION = "Try to refute that fit(X, y, seed) is (epsilon, delta)-private."
EPILOG = """
exit code: 0 not refuted, 1 refuted, 2 cannot be audited
not refuted is not private: docs/howto/audit.md says how to read a verdict
"""


def main(given: argparse.Namespace) -> None:
    """Audit the function that the command line names."""
    try:
        _within("--epsilon", given.epsilon, 0, math.inf)
        if given.delta:
            _within("--delta", given.delta, 0, 1)
        _within("--confidence", given.confidence, 0.5, 1)
        _within("--seconds", given.seconds, 0, math.inf)
        claim = Claim(given.epsilon, given.delta, given.confidence, given.seconds)
        domains = _domains(given)
        verdict, domain = _best(load(given.function), claim, domains, given.seed)
    except RefusedError as error:
        print(f"dperm audit: {error}", file=sys.stderr)
        raise SystemExit(REFUSED) from error
    folder = Path(given.out or f"results/audit/functions/{_slug(given.function)}")
    text = verdict_text(given.function, claim, domain, verdict, folder)
    save(folder, verdict, {**vars(given), "relation": domain.relation}, text)
    print(text)
    raise SystemExit(REFUTED if verdict.refuted else NOT_REFUTED)


def _best(
    fit: Fit, claim: Claim, domains: list[Domain], seed: int
) -> tuple[Verdict, Domain]:
    """The verdict on the first domain that refutes, or the largest bound.

    Raises RefusedError if the function runs on none of them.
    """
    each = replace(claim, seconds=claim.seconds / len(domains))
    found: list[tuple[Verdict, Domain]] = []
    for domain in domains:
        try:
            found.append((audit(fit, each, domain, seed), domain))
        except RefusedError:
            if domain is domains[-1] and not found:
                raise
        if found and found[-1][0].refuted:
            break
    best = max(found, key=lambda one: (one[0].refuted, one[0].epsilon))
    best[0].seconds = sum(verdict.seconds for verdict, _ in found)
    best[0].runs = sum(verdict.runs for verdict, _ in found)
    return best


def _slug(place: str) -> str:
    return re.sub(r"[^\w.]+", "-", place).strip("-.")


def arguments(parser: argparse.ArgumentParser) -> None:
    """What follows ``dperm audit``."""
    parser.description = DESCRIPTION
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("function", type=_place, help="module:function or path.py:function")
    add("--epsilon", type=float, required=True, help="what it claims, above 0")
    add("--delta", type=float, default=0.0, help="what it claims, from 0; default 0")
    add("--n", type=int, default=8, help="records; default 8")
    add("--p", type=int, help="features; default 1, 2, and 4 without bounds")
    add(
        "--x-bound",
        type=_range,
        metavar="B or LOW:HIGH",
        help="features that it assumes: -B to B; none given: any number",
    )
    add(
        "--y-bound", type=_range, metavar="B or LOW:HIGH", help="labels that it assumes"
    )
    add("--labels", type=_labels, metavar="A,B,...", help="labels, if just so many")
    add(
        "--norm",
        choices=sorted(NORMS),
        default="linf",
        help="norm of a record's features that B bounds; default linf, each feature",
    )
    add("--relation", choices=RELATIONS, default="replace", help="neighbours")
    add("--seconds", type=float, default=45.0, help="of computing; default 45")
    add("--confidence", type=float, default=0.999, help="of a refutation; 0.999")
    add("--seed", type=int, default=0, help="of the audit; default 0")
    add("--out", help="folder; default results/audit/functions/<function>")


def _place(text: str) -> str:
    if not PLACE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r}: expected module:function")
    return text


def _range(text: str) -> tuple[float, float]:
    try:
        ends = [float(part) for part in text.split(":")]
    except ValueError:
        ends = []
    low, high = (-ends[0], ends[0]) if len(ends) == 1 else (ends or [0, 0])[:2]
    if len(ends) > 2 or not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise argparse.ArgumentTypeError(f"{text!r}: expected B > 0 or LOW:HIGH")
    return low, high


def _labels(text: str) -> tuple[float, ...]:
    try:
        found = tuple(sorted({float(part) for part in text.split(",")}))
    except ValueError:
        found = ()
    if len(found) < 2 or not np.isfinite(found).all():
        raise argparse.ArgumentTypeError(f"{text!r}: expected numbers, as in -1,1")
    return found


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low < value < high:
        raise RefusedError(
            f"{name} {value:g}: expected more than {low:g}, less than {high:g}"
        )


def _domains(given: argparse.Namespace) -> list[Domain]:
    for name, least, most in (("n", 2, MOST), ("p", 1, MOST), ("seed", 0, 2**62)):
        value = getattr(given, name)
        if value is not None and not least <= value <= most:
            raise RefusedError(f"--{name} {value}: expected {least} to {most}")
    if given.labels and given.y_bound:
        raise RefusedError("--labels and --y-bound: expected one of them")
    if given.norm != "linf" and given.x_bound is None:
        raise RefusedError(f"--norm {given.norm}: expected --x-bound with it")
    y, listed = given.labels or given.y_bound, bool(given.labels)
    rest = (given.x_bound, given.norm, y, listed, given.relation)
    features = FEATURES if given.p is None else (given.p,)
    domains = [Domain(given.n, p, *rest) for p in features]
    return [d for d in domains if given.p or not d.bounded or d.p < FEATURES[-1]]


# --- the verdict ----------------------------------------------------------------------


def verdict_text(
    function: str, claim: Claim, domain: Domain, verdict: Verdict, folder: Path
) -> str:
    """The verdict in a few lines."""
    sign = "=" if math.isinf(verdict.epsilon) else ">="
    lines = [
        f"{'REFUTED' if verdict.refuted else 'not refuted'}: {function},"
        f" claimed epsilon {claim.epsilon:g} at delta {claim.delta:g}",
        f"  proved: epsilon {sign} {verdict.epsilon:.4g} at delta"
        f" {claim.delta:g}, {_how(claim, verdict)}",
        f"  proof: {verdict.proof}",
    ]
    if verdict.pair is not None:
        lines.append(
            f"  neighbours: {verdict.pair.text} (n = {domain.n}, p = {domain.p}),"
            f" {folder}/neighbours.npz"
        )
    lines += [f"  note: {note}" for note in verdict.notes]
    lines.append(f"  {verdict.runs} runs in {verdict.seconds:.1f} seconds of computing")
    return "\n".join(lines)


def _how(claim: Claim, verdict: Verdict) -> str:
    if verdict.frozen:
        return "by frozen noise: the output is affine in it, checked on fresh draws"
    return f"by counting, with confidence {claim.confidence:g}"


def save(folder: Path, verdict: Verdict, given: dict[str, Any], text: str) -> None:
    """Write the verdict, and the neighbours as CSV and as arrays.

    Parameters
    ----------
    folder : Path
        Is made.
    given : dict
        The arguments, kept beside the verdict.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "verdict.txt").write_text(text + "\n", encoding="utf-8")
    bare = replace(verdict, pair=None, outputs=None)
    plain = {**asdict(bare), "arguments": given}
    plain["epsilon"] = (
        str(verdict.epsilon) if math.isinf(verdict.epsilon) else verdict.epsilon
    )
    spelt = json.dumps(plain, indent=1) + "\n"
    (folder / "verdict.json").write_text(spelt, encoding="utf-8")
    if verdict.pair is None:
        return
    first, second = verdict.pair.first, verdict.pair.second
    whole = folder / "neighbours.npz"
    np.savez(whole, X=first.X, y=first.y, X_prime=second.X, y_prime=second.y)
    if verdict.outputs is not None:
        counted, other = verdict.outputs
        np.savez(folder / "outputs.npz", D=counted, D_prime=other)
    for name, data in (("D", first), ("D_prime", second)):
        names = ",".join([*(f"x{j + 1}" for j in range(data.X.shape[1])), "y"])
        rows = np.column_stack([data.X, data.y]).tolist()
        (folder / f"{name}.csv").write_text(
            "\n".join([names, *(",".join(map(repr, row)) for row in rows)]) + "\n",
            encoding="utf-8",
        )
