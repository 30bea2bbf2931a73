"""Whether the audit of the smoke run held every solver to its ledger: ``make smoke``.

It reads ``results/smoke/audit/epsilon.csv`` and ends with 1 if a check caught a solver,
if no neighbour moved a release, or if little of a bound is reached without a reason.
"""

import sys

import pandas as pd

KEPT = ("kept", "states no bound", "not tested")
MOVED, REACHED = 0.1, 0.5  # least shares of a declared shift and of a bound


def findings(table: pd.DataFrame) -> list[str]:
    """One line per row of the table that is not as it should be."""
    strict = table[table.calibration == "strict"]
    wrong = {
        "its ledger is": table[~table.ledger.isin(KEPT)].ledger,
        "claim:": strict[strict.claim.isin(["refuted", "too low"])].claim,
        "a neighbour moves of the declared shift": strict[
            strict.tightness < MOVED
        ].tightness,
        "reached without a reason": strict[
            (strict.reached < REACHED) & (strict.reason == "")
        ].reached,
    }
    return [
        f"{table.algorithm[row]}, {table.calibration[row]}: {text} {value}"
        for text, values in wrong.items()
        for row, value in values.items()
    ]


if __name__ == "__main__":
    rows = pd.read_csv("results/smoke/audit/epsilon.csv", keep_default_na=False)
    found = findings(rows)
    print(*found, sep="\n" if found else "")
    print(f"audited: {len(rows)} subjects, {len(found)} findings")
    sys.exit(bool(found))
