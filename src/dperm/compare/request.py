"""Parse the ``key=value`` arguments of ``dperm try``; errors are one line."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

import yaml

from dperm.compare import PRIVATE, TUNINGS
from dperm.core.experiment.locate import ConfigError
from dperm.core.names import hint

CONFIG = ("problem", "data", "output")  # problem.privacy.delta=..., data.mirror=...
YES, NO = ("true", "yes", "1"), ("false", "no", "0")


def _key(help: str, default: Any = None, **limits: Any) -> Any:
    """A key with its help; ``positive`` and ``least`` bound its numbers.

    A callable default makes a new value.
    """
    kind = "default_factory" if callable(default) else "default"
    return field(metadata={"help": help, **limits}, **{kind: default})


@dataclass
class Request:
    """The keys of ``dperm try`` and their defaults."""

    problem: str = _key(
        "a file (.csv, .tsv, .arff, .npz, .svm), or a problem of conf/problem", ""
    )
    target: str | None = _key("column that holds y; the last one")
    positive: str | None = _key(
        "class that is +1, all others -1; the larger of two numbers"
    )
    drop: list[str] = _key("columns left out, [a, b]", list)
    separator: str | None = _key("of a CSV's fields")
    header: bool = _key("whether a CSV's first line has names", True)
    missing: str | None = _key(
        "mean, median or drop, for values that are missing; refused"
    )
    loss: str | None = _key(
        "logistic for two classes, least_squares for more values; huber, ..."
    )
    l1: float | None = _key("strength of the L1 norm; 0")
    l2: float | None = _key("strength of the squared norm; 1/n")
    standardize: bool = _key("columns to mean 0 and deviation 1", True)
    intercept: bool = _key("whether to add one, a column of ones", True)
    solvers: list[str] = _key("names of conf/solver, or of a Python file here", list)
    epsilon: float | None = _key(
        "for neighbours that differ by replacing one record", positive=True
    )
    delta: str | None = _key("a number, 1/n or 1/n^2")
    tunings: list[str] = _key(
        f"some of {', '.join(TUNINGS)}", lambda: ["default", "grid"], known=TUNINGS
    )
    defaults: dict[str, Any] = _key(
        "defaults.mine.step=0.3: the setting without tuning", dict
    )
    grids: dict[str, Any] = _key(
        "grids.mine.step=[0.1, 1]: the settings that are tried", dict
    )
    bounds: dict[str, Any] = _key(
        "bounds=[0, 1], or bounds.age=[18, 90] for each column: ranges in the file's "
        "units",
        dict,
    )
    label_bounds: list[float] = _key("the range of real labels, [0, 100]", list)
    feature_scale: Any = _key(
        "a number or a list: scales are declared; private: released within epsilon, as "
        "by a noisy histogram; data: read off the columns",
        positive=True,
    )
    label_scale: Any = _key("the same for real labels", positive=True)
    fresh: int = _key(
        "fresh runs of each chosen setting",
        20,
        positive=True,
        least=2,
    )
    held: int = _key(
        "runs on four fifths of the records, for the metric on the other fifth",
        5,
        least=2,
    )
    seed: int = _key("all random numbers follow from it", 20220202)
    workers: int = _key("processes", 1, positive=True)
    name: str | None = _key("name of the folder below results/try; the problem's")
    given: list[str] = field(default_factory=list)  # the keys that were passed
    overrides: list[str] = field(default_factory=list)  # of the configuration
    words: list[str] = field(default_factory=list)  # as they were passed


KEYS = {one.name: one.metadata["help"] for one in fields(Request) if one.metadata}
LIMITS = {one.name: one.metadata for one in fields(Request)}


def usage() -> str:
    """The command's purpose and keys."""
    keys = [
        textwrap.fill(
            f"{key + '=':15} {text}",
            86,
            initial_indent="  ",
            subsequent_indent=" " * 18,
        )
        for key, text in KEYS.items()
    ]
    return (
        "usage: dperm try problem=mine.csv target=y solvers=[dp_cd,dp_gd,mine] "
        "epsilon=1\n\ncompare private methods on data of your own, at one true "
        "epsilon\n\n" + "\n".join(keys)
    )


def parse(words: Iterable[str]) -> Request:
    """Parse the arguments of a command line.

    Raises
    ------
    ConfigError
        For a word that is not ``key=value``, an unknown key or a wrong value.
    """
    request, kinds = Request(), get_type_hints(Request)
    for word in words:
        request.words.append(word)
        key, equals, text = word.partition("=")
        first, dot, below = key.partition(".")
        if dot and equals and first in CONFIG:
            request.overrides.append(word)
            continue
        if not equals or first not in KEYS:
            near = hint(f"{first}=", [f"{known}=" for known in KEYS])
            if not equals and Path(word).is_file():
                near = f" (did you mean problem={word}?)"
            raise ConfigError(
                f"{word!r}: expected key=value, one of {', '.join(KEYS)}{near}"
            )
        if dot:
            _put(getattr(request, first), first, below, text)
        else:
            setattr(request, key, _value(key, text.strip(), kinds[key]))
        request.given.append(first)
    if not request.problem:
        raise ConfigError(f"problem=: expected {KEYS['problem']}")
    return request


def _put(tree: Any, first: str, below: str, text: str) -> None:
    """Put a value below ``defaults.mine.step`` or a similar key."""
    *folders, last = below.split(".")
    depth = 0 if first == "bounds" else 1
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
    is_listed = first != "defaults" and not isinstance(value, list | dict)
    tree[last] = [value] if is_listed else value


def _value(key: str, text: str, kind: Any) -> Any:
    """A value of the type in the key's annotation."""
    if kind == list[str]:
        return _words(key, text)
    if kind is bool:
        if text.lower() not in (*YES, *NO):
            raise ConfigError(f"{key}={text}: expected true or false")
        return text.lower() in YES
    if key.endswith("_scale") and text in ("data", PRIVATE):
        return text if text == PRIVATE else None
    if key == "feature_scale" and text.startswith("["):
        return [_number(key, one, float) for one in text.strip("[]").split(",")]
    if key in ("bounds", "label_bounds"):
        ends = [_end(key, one) for one in text.strip("[]").split(",")]
        return {"": ends} if key == "bounds" else ends
    if kind is int or kind == float | None or key.endswith("_scale"):
        return _number(key, text, kind)
    if kind == dict[str, Any]:
        raise ConfigError(f"{key}={text}: expected {KEYS[key]}")
    return text


def _words(key: str, text: str) -> list[str]:
    words = [word.strip() for word in text.strip("[]").split(",") if word.strip()]
    known = LIMITS[key].get("known", words)
    for name in words:
        if name not in known:
            raise ConfigError(f"{key}={name}: expected some of {', '.join(known)}")
    if not words and key != "drop":
        raise ConfigError(f"{key}=: expected one or more")
    return words


def _end(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ConfigError(f"{key}: expected [low, high], found {text!r}") from error


def _number(key: str, text: str, kind: Any) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    whole, positive = kind is int, LIMITS[key].get("positive")
    inside = 0 <= value < math.inf and not (positive and value == 0)
    if not inside or (whole and value != int(value)):
        what = "a whole number" if whole else "a finite number"
        floor = "more than 0" if positive else "0 or more"
        raise ConfigError(f"{key}={text}: expected {what}, {floor}")
    least = LIMITS[key].get("least", 0)
    if 0 < value < least:
        raise ConfigError(f"{key}={text}: expected {least} or more, for an interval")
    return int(value) if whole else value


def main(words: list[str]) -> None:
    """Print the comparison that the arguments of ``dperm try`` request.

    They are checked before any slow import.
    """
    if {"-h", "--help"} & {*words}:
        print(usage())
        return
    request = parse(words)
    from threadpoolctl import threadpool_limits

    from dperm.compare import run

    with threadpool_limits(1):  # of the libraries loaded so far
        print(run.compare(request))
