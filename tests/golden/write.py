"""Writes golden values: ``PYTHONPATH=tests python -m golden.write weights``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from dperm.config.locate import available
from dperm.workflow.jobs import compose
from golden import cases

VALUES = Path(__file__).parent / "values"
NAMES = ("weights", "ledgers", "jobs_full", "jobs_smoke", "claims", "papers")


def computed(name: str) -> dict[str, Any]:
    """Golden values of today's code."""
    if name == "weights":
        return {key: cases.summary(make()) for key, make in cases.weights()}
    if name == "ledgers":
        return {key: make() for key, make in cases.ledgers()}
    if name == "claims":
        return cases.claims()
    if name == "papers":
        from papers import small

        return small.recorded()
    scale = name.removeprefix("jobs_")
    return cases.inputs_of(compose(available("paper"), [f"scale={scale}"]))


def stored(name: str) -> dict[str, Any]:
    """Golden values of the file."""
    found: dict[str, Any] = json.loads(
        (VALUES / f"{name}.json").read_text("utf-8")
    )
    return found


def main() -> None:
    """Write values anew, or only leave out those that are gone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=NAMES)
    parser.add_argument("--prune", action="store_true", help="change no value")
    options = parser.parse_args()
    for name in options.names:
        found = computed(name)
        if options.prune:
            found = {
                key: old for key, old in stored(name).items() if key in found
            }
        lines = (
            f"{json.dumps(key)}: {json.dumps(found[key])}" for key in found
        )
        text = "{\n" + ",\n".join(lines) + "\n}\n"
        (VALUES / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
