"""The problem that ``dperm try`` was asked for: of a file, or of conf/problem."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dperm import data, schema
from dperm.config import compose
from dperm.data.arrays import standardize
from dperm.data.errors import RefusedError
from dperm.data.readers import read_files
from dperm.data.records import Arrays
from dperm.direct.arrays import (
    CLASSES,
    SIGNED,
    TWO,
    labels_for,
    loss_for,
    problem_of,
    with_ones,
)
from dperm.direct.asked import OF_FILES, Asked
from dperm.erm.optimum import Optimum, solve
from dperm.erm.penalties import Penalty
from dperm.erm.problem import Problem
from dperm.locate import ConfigError, available, hint
from dperm.pipeline import checks, inputs, problems
from dperm.privacy.given import STANDARDISATION, N, missing_values, united
from dperm.validation import number

log = logging.getLogger(__name__)

FORMATS = {  # endings of files, and what reads them
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".data": "csv", ".arff": "arff",
    ".npz": "arrays", ".svm": "libsvm", ".libsvm": "libsvm", ".svmlight": "libsvm",
}  # fmt: skip
# What readers call the keys of a YAML, as they are called here.
SAID = {
    "reader.options: {header: false}": "header=false",
    "reader.options.separator": "separator=",
    "reader.drop: ['']": "drop=['']",
    "(reader.drop)": "(drop=)",
    "reader.missing: ": "missing=",
    "reader.categories": "categories.COLUMN=",
    "reader.positive": "positive=",
    "reader.target": "target=",
}


@dataclass(frozen=True)
class Given:
    """A problem with its certified optimum and its labels.

    Attributes
    ----------
    problem : Problem
    optimum : Optimum
    y : ndarray, shape (n,)
    """

    problem: Problem
    optimum: Optimum
    y: np.ndarray


def load(asked: Asked) -> Given:
    """The problem, prepared and solved.

    Raises
    ------
    ConfigError
        For data that cannot be read or used, naming the key.
    """
    path = Path(asked.problem)
    if path.is_file():
        return _of_file(asked, path)
    names = available("problem")
    if asked.problem in names:
        return _of_configuration(asked)
    raise ConfigError(
        f"problem={asked.problem}: no such file, nor a problem of conf/problem: "
        f"{', '.join(names)}{hint(asked.problem, [*names, *_files()])}"
    )


def has_ones(asked: Asked) -> bool:
    """Whether the last column is one of ones, made here."""
    return asked.intercept and Path(asked.problem).is_file()


def _files() -> Iterator[str]:
    """Files of this folder that could have been meant."""
    return (path.name for path in Path().iterdir() if path.suffix in FORMATS)


# --- of conf/problem ------------------------------------------------------------------


def _of_configuration(asked: Asked) -> Given:
    for key in OF_FILES:
        if key in asked.given:
            raise ConfigError(
                f"{key}: expected with a file; conf/problem/{asked.problem}.yaml says "
                "how its data are read and prepared"
            )
    config = compose([f"problem={asked.problem}", *_overrides(asked)])
    checks.problem(config.problem)
    problems.fetch(config)
    problems.prepare(config)
    problem = inputs.load_problem(config)
    if problem is None:
        reason = inputs.unavailable_reason(config)
        raise ConfigError(f"problem={asked.problem}: {reason}")
    problems.optimum(config)
    y = data.load_prepared(problem.name, config.data).y
    return Given(problem, inputs.load_optimum(config), y)


def _overrides(asked: Asked) -> list[str]:
    """What was asked for, in the words of the configuration."""
    named = {
        "problem.loss": asked.loss,
        "problem.penalty.l1": asked.l1,
        "problem.penalty.l2": asked.l2,
        "problem.privacy.epsilon": 1.0 if asked.epsilon is None else asked.epsilon,
        "problem.privacy.delta": asked.delta,
    }
    made = [f"{key}={value}" for key, value in named.items() if value is not None]
    return made + asked.overrides


# --- of a file ------------------------------------------------------------------------


def _of_file(asked: Asked, path: Path) -> Given:
    for word in asked.overrides:
        if word.startswith("problem."):
            raise ConfigError(f"{word}: expected with a problem of conf/problem")
    X, y = _read(asked, path)
    loss = loss_for(y, asked.loss)
    where = f"target={asked.target}" if asked.target else f"{path.name}: target"
    if len(y) < 2:
        raise ConfigError(f"{path.name}: expected 2 records or more, found {len(y)}")
    labels = labels_for(y, loss, where)
    X, given = _prepared(asked, X)
    given = united(given, _read_off(asked, loss))
    n = len(y)
    penalty = Penalty(asked.l1 or 0.0, 1 / n if asked.l2 is None else asked.l2)
    delta = number(_told(asked.delta or "1/n^2"), n, f"delta={asked.delta}")
    if not 0 < delta < 1:
        raise ConfigError(f"delta={asked.delta}: expected in (0, 1)")
    epsilon = 1.0 if asked.epsilon is None else asked.epsilon
    made = problem_of(slug(path.stem), X, labels, loss, penalty, epsilon, delta, given)
    log.info("%s: n = %d, p = %d%s, %s%s", path.name, n, X.shape[1],
             " with the intercept" if asked.intercept else "", loss,
             f", +1 is {_class(asked, y)}" if labels is not y else "")  # fmt: skip
    return Given(made, _certified(made), labels)


def _read_off(asked: Asked, loss: str) -> Iterator[str]:
    """What the labels decide, where nothing is said of them."""
    if asked.loss is None:
        yield TWO
    if loss in SIGNED and asked.positive is None:
        yield CLASSES


def _class(asked: Asked, y: np.ndarray) -> str:
    return asked.positive or f"{y.max():g}"


def slug(name: str) -> str:
    """A file's name, or any, as that of a folder."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name) or "data"


def _told(text: str) -> str | float:
    """A number where the text is one."""
    try:
        return float(text)
    except ValueError:
        return text


def _read(asked: Asked, path: Path) -> Arrays:
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise ConfigError(
            f"problem={path}: expected a file that ends in {', '.join(FORMATS)}"
        )
    kind = FORMATS[ending]
    options = _options(asked, kind, ending)
    reader = schema.Reader(kind, asked.target, asked.positive, asked.drop,
                           asked.missing, asked.categories, options)  # fmt: skip
    if asked.missing not in (None, "mean", "median", "drop"):
        raise ConfigError(f"missing={asked.missing}: expected mean, median or drop")
    try:
        return read_files([path], reader)
    except RefusedError as error:
        raise ConfigError(_explained(str(error), asked, path)) from error


def _options(asked: Asked, kind: str, ending: str) -> dict[str, object]:
    """Of the format; one that was asked for and is not the format's is refused."""
    able = {"csv": OF_FILES, "arff": OF_FILES, "libsvm": ("positive",)}.get(kind, ())
    for key in asked.given:
        others = key in ("separator", "header") and kind != "csv"
        if key in OF_FILES[:-2] and (key not in able or others):
            raise ConfigError(f"{key}: a {ending} file has no such thing")
    if kind != "csv":
        return {}
    usual = "\t" if ending == ".tsv" else ","
    separator = (asked.separator or usual).replace("\\t", "\t")
    return {"separator": separator, "header": asked.header}


def _explained(text: str, asked: Asked, path: Path) -> str:
    """A reader's refusal in the words of the command line."""
    target = asked.target
    if target and f"column {target!r} is not of numbers" in text:
        found = text.partition("found ")[2].partition(", first")[0]
        return (
            f"target={target}: found classes such as {found}: expected positive=CLASS, "
            "which makes one of them +1"
        )
    if target and f"column {target} is missing" in text:
        found = text.partition("the file has ")[2]
        near = hint(target, found.split(", "))
        return f"target={target}: no such column in {path.name}; it has {found}{near}"
    for theirs, ours in SAID.items():
        text = text.replace(theirs, ours)
    if not target and "is not of numbers" in text:
        text += "; the last column is the target, of whose classes positive= is +1"
    return text if text.startswith(path.name) else f"{path.name}: {text}"


def _prepared(asked: Asked, X: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """X standardised and with an intercept, and what that takes as public."""
    filled = isinstance(X, np.ndarray)
    if asked.standardize and not filled and "standardize" in asked.given:
        raise ConfigError("standardize=true: the file's records are sparse")
    is_moved = asked.standardize and filled
    if is_moved:
        try:
            X = standardize(X)
        except ValueError as error:
            raise ConfigError(
                f"standardize: {error}: drop=[NAME] leaves it out, standardize=false "
                "takes columns as they are"
            ) from error
    scaled = (STANDARDISATION,) if is_moved else ()
    given = united((N, *scaled), missing_values(asked.missing))
    return (with_ones(X) if asked.intercept else X), given


def _certified(problem: Problem) -> Optimum:
    try:
        return solve(problem)
    except ArithmeticError as error:
        raise ConfigError(f"loss, l1, l2: {error}") from error
