"""What follows ``dperm try``: ``key=value``, refused in one line."""

from __future__ import annotations

import difflib
import logging
import math
import os
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, get_type_hints

import yaml

from dperm.locate import ConfigError

TUNINGS = ("default", "ten", "grid", "paid")  # those of the arena
DEBUG = "DPERM_DEBUG"  # set to anything: what fails shows its traceback
KEYS = {
    "problem": "a file (.csv, .tsv, .arff, .npz, .svm), or a problem of conf/problem",
    "target": "column that holds y; the last one",
    "positive": "class that is +1, all others -1; the larger of two numbers",
    "drop": "columns left out, [a, b]",
    "separator": "of a CSV's fields",
    "header": "whether a CSV's first line has names",
    "missing": "mean, median or drop, for values that are missing; refused",
    "categories": "categories.colour=[red, green]: a column of 0 and 1 for each",
    "loss": "logistic for two classes, least_squares for more values; huber, ...",
    "l1": "strength of the L1 norm; 0",
    "l2": "strength of the squared norm; 1/n",
    "standardize": "columns to mean 0 and deviation 1",
    "intercept": "whether there is one, a column of ones",
    "solvers": "names of conf/solver, or of a Python file here",
    "epsilon": "for neighbours that differ by replacing one record",
    "delta": "a number, 1/n or 1/n^2",
    "tunings": "some of default, ten, grid, paid",
    "defaults": "defaults.mine.step=0.3: the setting of no tuning",
    "grids": "grids.mine.step=[0.1, 1]: the settings that are tried",
    "feature_scale": "a number: scales are declared; data: read off the columns",
    "label_scale": "the same for real labels",
    "fresh": "runs of each chosen setting, on seeds that did not choose it",
    "held": "runs on four fifths of the records, for the metric on the other fifth",
    "seed": "all others are made of it",
    "workers": "processes",
    "name": "of the folder results/try/NAME; that of the problem",
}
OF_FILES = (
    *("target", "positive", "drop", "separator", "header", "missing", "categories"),
    *("standardize", "intercept"),
)
CONFIG = ("problem", "data", "output")  # problem.privacy.delta=..., data.mirror=...
YES, NO = ("true", "yes", "1"), ("false", "no", "0")


@dataclass
class Asked:
    """The keys of ``dperm try`` and what they are without being given."""

    problem: str = ""
    target: str | None = None
    positive: str | None = None
    drop: list[str] = field(default_factory=list)
    separator: str | None = None
    header: bool = True
    missing: str | None = None
    categories: dict[str, Any] = field(default_factory=dict)
    loss: str | None = None
    l1: float | None = None
    l2: float | None = None
    standardize: bool = True
    intercept: bool = True
    solvers: list[str] = field(default_factory=list)
    epsilon: float | None = None
    delta: str | None = None
    tunings: list[str] = field(default_factory=lambda: ["default", "grid"])
    defaults: dict[str, Any] = field(default_factory=dict)
    grids: dict[str, Any] = field(default_factory=dict)
    feature_scale: float | None = None  # data
    label_scale: float | None = None
    fresh: int = 20
    held: int = 5
    seed: int = 20220202
    workers: int = 1
    name: str | None = None
    given: list[str] = field(default_factory=list)  # the keys that were given
    overrides: list[str] = field(default_factory=list)  # of the configuration


def main() -> None:
    """Run what the command line asks for; whatever is wrong ends in one line."""
    words = sys.argv[1:]
    if {"-h", "--help"} & {*words}:
        print(helped())
        return
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("dperm").setLevel(logging.INFO)
    try:
        asked = parsed(words)
        from threadpoolctl import threadpool_limits

        from dperm.direct import command  # brings the solvers and what they need

        with threadpool_limits(1):  # of what is loaded by now
            print(command.tried(asked))
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        more = "" if isinstance(error, ConfigError) else f"; {DEBUG}=1 shows where"
        raise SystemExit(text + more) from error


def helped() -> str:
    """What the command does, and what may follow it."""
    keys = [
        textwrap.fill(f"{key + '=':15} {text}", 86, initial_indent="  ",
                      subsequent_indent=" " * 18)
        for key, text in KEYS.items()
    ]  # fmt: skip
    return (
        "usage: dperm try problem=mine.csv target=y solvers=[dp_cd,dp_gd,mine] "
        "epsilon=1\n\ncompare private methods on data of your own, at one true "
        "epsilon\n\n" + "\n".join(keys)
    )


def parsed(words: Iterable[str]) -> Asked:
    """The keys of a command line.

    Raises
    ------
    ConfigError
        For a word that is no ``key=value``, an unknown key or a wrong value.
    """
    made, kinds = Asked(), get_type_hints(Asked)
    for word in words:
        key, equals, text = word.partition("=")
        first, dot, below = key.partition(".")
        if dot and equals and first in CONFIG:
            made.overrides.append(word)
            continue
        if not equals or first not in KEYS:
            raise ConfigError(_unknown(word, first))
        if dot:
            _put(getattr(made, first), first, below, text)
        else:
            setattr(made, key, _value(key, text.strip(), kinds[key]))
        made.given.append(first)
    _check(made)
    return made


def _unknown(word: str, key: str) -> str:
    near = difflib.get_close_matches(key, KEYS, n=1)
    hint = f" (did you mean {near[0]}=?)" if near else ""
    return f"{word!r}: expected key=value, one of {', '.join(KEYS)}{hint}"


def _put(tree: Any, first: str, below: str, text: str) -> None:
    """Put a value below ``defaults.mine.step`` and the like."""
    *folders, last = below.split(".")
    depth = 0 if first == "categories" else 1
    if not isinstance(tree, dict) or len(folders) != depth or not last:
        raise ConfigError(f"{first}.{below}: expected {KEYS[first]}")
    for name in folders:
        tree = tree.setdefault(name, {})
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = None
    if value is None:
        raise ConfigError(f"{first}.{below}={text}: expected a number or a list")
    listed = first != "defaults" and not isinstance(value, list | dict)
    tree[last] = [value] if listed else value


def _value(key: str, text: str, kind: Any) -> Any:
    """A value of the key's kind, said by its annotation."""
    if kind == list[str]:
        return [word.strip() for word in text.strip("[]").split(",") if word.strip()]
    if kind is bool:
        if text.lower() not in (*YES, *NO):
            raise ConfigError(f"{key}={text}: expected true or false")
        return text.lower() in YES
    if kind is int:
        return int(_number(key, text, 0, whole=True))
    if kind == float | None:
        if text == "data" and key.endswith("_scale"):
            return None
        return _number(key, text, 0)
    if kind == dict[str, Any]:
        raise ConfigError(f"{key}={text}: expected {KEYS[key]}")
    return text


def _number(key: str, text: str, least: float, whole: bool = False) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value < math.inf or (whole and value != int(value)):
        kind = "a whole number" if whole else "a finite number"
        raise ConfigError(f"{key}={text}: expected {kind}, {least:g} or more")
    return value


def _check(made: Asked) -> None:
    """Refuse what no type tells."""
    if not made.problem:
        raise ConfigError(f"problem=: expected {KEYS['problem']}")
    for key in ("epsilon", "feature_scale", "label_scale", "fresh", "workers"):
        if getattr(made, key) == 0:
            raise ConfigError(f"{key}=0: expected more than 0")
    for key in ("fresh", "held"):
        if getattr(made, key) == 1:
            raise ConfigError(f"{key}=1: expected 2 or more, for an interval")
    for name in made.tunings:
        if name not in TUNINGS:
            raise ConfigError(f"tunings={name}: expected some of {', '.join(TUNINGS)}")
    for key in ("solvers", "tunings"):
        if key in made.given and not getattr(made, key):
            raise ConfigError(f"{key}=: expected one or more")
