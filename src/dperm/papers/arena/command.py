"""``dperm arena problem=...`` and ``method=...``; keys without effect are refused."""

from __future__ import annotations

from dperm.core.experiment import config
from dperm.core.experiment.locate import ConfigError
from dperm.core.names import hint

KEYS = {
    "problem": "one problem; with method= several, [airfoil, concrete]",
    "method": "a method of yours against the kept results of all others",
    "workers": "processes; 1",
    "seed": "all random numbers follow from it",
    "data": "data.mirror=FOLDER, data.dir=FOLDER",
    "output": "output.results=FOLDER",
    "scale": "smoke, full",
}
USAGE = """usage: dperm arena                     the whole arena, by Snakemake
       dperm arena problem=mine        every method on one problem: which to take
       dperm arena method=mine         a method of yours against every other
       dperm arena --peers             other libraries on the same problems

"""


def main(words: list[str]) -> None:
    """Run the command with the words, or print its usage.

    Raises
    ------
    ConfigError
        For a key without effect.
    """
    if not words:
        lines = [f"  {key + '=':10} {text}" for key, text in KEYS.items()]
        print(USAGE + "\n".join(lines))
        return
    given: dict[str, str] = {}
    passed = ["paper=arena"]
    for word in words:
        key, equals, value = word.partition("=")
        first = key.partition(".")[0]
        if not equals or first not in KEYS:
            near = "; a method of yours is method=" if first.startswith("solv") else ""
            near = near or hint(first, list(KEYS))
            raise ConfigError(f"{word!r}: expected one of {', '.join(KEYS)}{near}")
        given[key] = value
        if key != "method" and not (key == "problem" and "method" in _keys(words)):
            passed.append(word)
    composed = config.compose(passed)
    from dperm.papers.arena import own  # slow to import

    if "method" in given:
        names = [one.strip() for one in given.get("problem", "").strip("[]").split(",")]
        own.score(composed, given["method"], [one for one in names if one])
        return
    from dperm.pipeline import checks

    checks.check(composed)
    own.recommend(composed)


def _keys(words: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in words}
