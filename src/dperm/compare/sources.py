"""The problem that ``dperm try`` solves: from a file, or from conf/problem."""

from __future__ import annotations

import csv
import logging
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dperm import data
from dperm.compare import PRIVATE
from dperm.compare.metrics import CLASSES, SIGNED, TWO, with_constant
from dperm.compare.request import Request
from dperm.compare.units import units
from dperm.core.erm.losses import bounded
from dperm.core.erm.optimum import Optimum, solve
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem, build
from dperm.core.experiment import schema
from dperm.core.experiment.config import compose
from dperm.core.experiment.locate import ConfigError, available
from dperm.core.experiment.validation import number
from dperm.core.names import hint
from dperm.core.privacy.ledger import STANDARDISATION, N, missing_values, united
from dperm.data.arrays import Arrays, RefusedError, check_standardized, standardize
from dperm.data.readers import ABSENT, _is_missing, _number, naming, read_files
from dperm.pipeline import checks, inputs

log = logging.getLogger(__name__)

NAMED = ("target", "positive", "drop", "missing")  # they name columns
READING = (*NAMED, "separator", "header")
ABLE = {"csv": READING, "arff": NAMED, "libsvm": ("positive",), "arrays": ()}
OF_FILES = (*READING, "standardize", "intercept")  # keys that only files take
QUOTED = 5  # most labels in a message
CONSTANT = 2.0**10  # the intercept's column, nearly free of penalty
ENDINGS = {  # of files, by reader
    "csv": (".csv", ".tsv", ".txt", ".data"),
    "arff": (".arff",),
    "arrays": (".npz",),
    "libsvm": (".svm", ".libsvm", ".svmlight"),
}
FORMATS = {ending: kind for kind, some in ENDINGS.items() for ending in some}


@dataclass(frozen=True)
class Solved:
    """A problem with its certified optimum and its labels."""

    problem: Problem
    optimum: Optimum
    y: np.ndarray  #: shape (n,)
    constant: float = 0.0  #: in the last column, if it is the intercept's; otherwise 0
    as_fit: bool = False  #: whether columns and labels are in the units of dperm.fit
    #: scales by bounds: of columns (p,) except the intercept's, and of labels
    scales: tuple[np.ndarray | None, float | None] = (None, None)

    @property
    def zero(self) -> float:
        """Relative error of w = 0."""
        start = float(self.problem.objective(np.zeros(self.problem.p))[0])
        return (start - self.optimum.value) / self.optimum.value


def load(request: Request) -> Solved:
    """Load the problem, prepared and solved.

    Raises
    ------
    ConfigError
        For data that cannot be read or used; the message names the key.
    """
    path = Path(request.problem)
    if path.is_file():
        return _of_file(request, path)
    names = available("problem")
    if request.problem not in names:
        files = [path.name for path in Path().iterdir() if path.suffix in FORMATS]
        raise ConfigError(
            f"problem={request.problem}: no such file, nor a problem of conf/problem: "
            f"{', '.join(names)}{hint(request.problem, [*names, *files])}"
        )
    for key in OF_FILES:
        if key in request.given:
            raise ConfigError(
                f"{key}: expected with a file; conf/problem/{request.problem}.yaml "
                "says how its data are read and prepared"
            )
    overrides = {
        "problem.loss": request.loss,
        "problem.penalty.l1": request.l1,
        "problem.penalty.l2": request.l2,
        "problem.privacy.epsilon": request.epsilon or 1.0,
        "problem.privacy.delta": request.delta,
    }
    words = [f"{key}={value}" for key, value in overrides.items() if value is not None]
    config = compose([f"problem={request.problem}", *words, *request.overrides])
    checks.problem(config.problem)
    return of_configuration(config)


def of_configuration(config: schema.Config) -> Solved:
    """A problem of conf/problem, fetched, prepared and solved.

    Raises ConfigError if its data are not available.
    """
    inputs.fetch(config)
    inputs.prepare(config)
    problem = inputs.load_problem(config)
    if problem is None:
        reason = inputs.unavailable_reason(config)
        raise ConfigError(f"problem={config.problem.name}: {reason}")
    inputs.optimum(config)
    y = data.load_prepared(problem.name, config.data).y
    return Solved(problem, inputs.load_optimum(config), y)


# --- from a file ----------------------------------------------------------------------


def _of_file(request: Request, path: Path) -> Solved:
    for word in request.overrides:
        if word.startswith("problem."):
            raise ConfigError(f"{word}: expected with a problem of conf/problem")
    (X, y), names = _read(request, path)
    loss = _loss(y, request.loss)
    n = len(y)
    if n < 2:
        raise ConfigError(f"{path.name}: expected 2 records or more, found {n}")
    where = f"target={request.target}" if request.target else f"{path.name}: target"
    labels = _labels(y, loss, where)
    as_fit = bool(
        request.bounds
        or request.label_bounds
        or PRIVATE in (request.feature_scale, request.label_scale)
    )
    if as_fit:
        if request.standardize and "standardize" in request.given:
            raise ConfigError("standardize=true: expected without bounds and private")
        for key in ("feature_scale", "label_scale"):
            if key in request.given and getattr(request, key) is None:
                raise ConfigError(f"{key}=data: expected without bounds and private")
        request = replace(request, standardize=False)
    X, labels, scales = _bounded(request, X, labels, names, loss in SIGNED)
    constant = CONSTANT * request.intercept
    X, given = _prepared(request, X)
    if request.loss is None:
        given = united(given, (TWO,))
    if loss in SIGNED and request.positive is None:
        given = united(given, (CLASSES,))
    penalty = Penalty(request.l1 or 0.0, 1 / n if request.l2 is None else request.l2)
    delta = _delta(request.delta, n)
    name = slug(path.stem)
    problem = build(
        name, X, labels, loss, penalty, request.epsilon or 1.0, delta, name, given=given
    )
    intercept = " with the intercept" if request.intercept else ""
    positive = (
        f", +1 is {request.positive or f'{y.max():g}'}" if y is not labels else ""
    )
    about = (path.name, n, X.shape[1], intercept, loss, positive)
    log.info("%s: n = %d, p = %d%s, %s%s", *about)
    try:
        found = solve(problem)
    except ArithmeticError as error:
        raise ConfigError(f"loss, l1, l2: {error}") from error
    return Solved(problem, found, labels, constant, as_fit, scales)


def _bounded(
    request: Request, X: Any, y: np.ndarray, names: list[str], signed: bool
) -> tuple[Any, np.ndarray, tuple[np.ndarray | None, float | None]]:
    """X (n, p) and labels y (n,) within their bounds, as in ``dperm.fit``.

    Also returns their scales by these bounds.
    """
    if signed and request.label_bounds:
        raise ConfigError("label_bounds: labels of two classes are signs")
    bounds, scales = request.bounds, None
    try:
        if bounds:
            columns: Any = names or X.shape[1]
            if "" in bounds:
                columns, bounds = X.shape[1], bounds[""]
            is_sparse = hasattr(X, "tocsc")
            made = units("bounds", bounds, columns, request.intercept, is_sparse)
            X, scales = made.applied(X), made.scale
        if not request.label_bounds:
            return X, y, (scales, None)
        made = units("label_bounds", request.label_bounds, 1, request.intercept)
        return X, made.applied(y), (scales, float(made.scale[0]))
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _delta(text: str | None, n: int) -> float:
    """Delta from a number or a formula in n."""
    value: float | str = text or "1/n^2"
    with suppress(ValueError):
        value = float(value)
    delta = number(value, n, f"delta={text}")
    if not 0 < delta < 1:
        raise ConfigError(f"delta={text}: expected in (0, 1)")
    return delta


def _loss(y: np.ndarray, loss: str | None) -> str:
    """The named loss; otherwise logistic for two values, least squares for more."""
    if loss is None:
        return "logistic" if len(np.unique(y)) == 2 else "least_squares"
    known = bounded()
    if loss not in known:
        raise ConfigError(
            f"loss={loss}: expected one of {', '.join(known)}{hint(loss, known)}"
        )
    return loss


def _labels(y: np.ndarray, loss: str, where: str) -> np.ndarray:
    """Labels y (n,) in the form of the loss: of two values the larger becomes +1."""
    values = np.unique(y)
    if len(values) == 1:
        raise ConfigError(f"{where}: expected labels that differ, found {values[0]:g}")
    if loss not in SIGNED:
        return y
    if len(values) > 2:
        quoted = ", ".join(f"{value:g}" for value in values[:QUOTED])
        raise ConfigError(
            f"{where}: {loss} loss takes two classes, found {len(values)} values "
            f"({quoted}{', ...' if len(values) > QUOTED else ''}): expected positive="
            "VALUE, which makes one of them +1, or loss=least_squares"
        )
    return np.where(y == values[1], 1.0, -1.0)


def slug(name: str) -> str:
    """Turn a name into that of a folder."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name) or "data"


def _read(request: Request, path: Path) -> tuple[Arrays, list[str]]:
    """The arrays, and the column names of a CSV."""
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise ConfigError(
            f"problem={path}: expected a file that ends in {', '.join(FORMATS)}"
        )
    kind = FORMATS[ending]
    for key in request.given:
        if key in READING and key not in ABLE[kind]:
            raise ConfigError(f"{key}: a {ending} file has no such thing")
    options: dict[str, object] = {}
    if kind == "csv":
        usual = "\t" if ending == ".tsv" else ","
        separator = (request.separator or usual).replace("\\t", "\t")
        options = {"separator": separator, "header": request.header}
        if request.header and len(separator) == 1:
            refuse_all(request, path, separator)
    reader = schema.Reader(
        kind,
        request.target,
        request.positive,
        request.drop,
        request.missing,
        {},
        options,
    )
    if request.missing not in (None, "mean", "median", "drop"):
        raise ConfigError(f"missing={request.missing}: expected mean, median or drop")
    try:
        with naming(_key):
            return read_files([path], reader), _names(request, path, options)
    except RefusedError as error:
        raise ConfigError(_explained(str(error), request, path)) from error


def _names(request: Request, path: Path, options: dict[str, Any]) -> list[str]:
    if not options.get("header"):
        return []
    with open(path, encoding="utf-8-sig", newline="") as handle:
        every = [
            one.strip()
            for one in next(csv.reader(handle, delimiter=options["separator"]))
        ]
    every = [name for name in every if name]
    left_out = {request.target or every[-1], *request.drop}
    return [name for name in every if name not in left_out]


def _key(name: str, value: str = "") -> str:
    """A reader's key in the form of the command line: ``missing=mean``."""
    return f"{name.removeprefix('options.')}={value}"


def _explained(text: str, request: Request, path: Path) -> str:
    """A reader's refusal, with the target described by the command line's keys."""
    target, text = request.target, text.replace(" or list its values (categories=)", "")
    if target and f"column {target!r} is not of numbers" in text:
        classes = text.partition("found ")[2].partition(", first")[0]
        return (
            f"target={target}: found classes such as {classes}: expected "
            "positive=CLASS, which makes one of them +1"
        )
    if target and f"column {target} is missing" in text:
        names = text.partition("the file has ")[2]
        near = hint(target, names.split(", "))
        return f"target={target}: no such column in {path.name}; it has {names}{near}"
    if not target and "is not of numbers" in text:
        text += "; the last column is the target, of whose classes positive= is +1"
    return text if text.startswith(path.name) else f"{path.name}: {text}"


def _prepared(request: Request, X: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """X standardised and with an intercept, and what that takes as public."""
    filled = isinstance(X, np.ndarray)
    if request.standardize and not filled and "standardize" in request.given:
        raise ConfigError("standardize=true: the file's records are sparse")
    is_moved = request.standardize and filled
    if is_moved:
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                X = standardize(X)
            check_standardized(X)
        except ValueError as error:
            raise ConfigError(
                f"standardize: {error}: drop=[NAME] leaves it out, standardize=false "
                "takes columns as they are"
            ) from error
    scaled = (STANDARDISATION,) if is_moved else ()
    given = united((N, *scaled), missing_values(request.missing))
    return (with_constant(X, CONSTANT) if request.intercept else X), given


# --- all obstacles to reading a CSV at once, with the command that fixes them ---------


def refuse_all(request: Request, path: Path, separator: str) -> None:
    """Refuse a CSV in which a column without numbers, or two of any, need a decision.

    A single one with numbers is left to the reader, which names its line.

    Raises
    ------
    ConfigError
        With one line for each column, and a command.
    """
    with open(path, encoding="utf-8-sig", newline="", errors="replace") as handle:
        every = [row for row in csv.reader(handle, delimiter=separator) if row]
    names, rows = next(iter(every), []), every[1:]
    odd = any(len(row) != len(names) for row in rows)
    if not rows or odd or len({*names}) < len(names):
        return  # the reader reports the error
    target = request.target or names[-1]
    drop, said, adds = list(request.drop), [], []
    needs_fill = has_text = False
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        if name in drop:
            continue
        gaps = sum(map(_is_missing, column))
        words = any(np.isinf(_number(value)) for value in column)
        is_usable = abs(_number(column[0])) < 1e150  # or the reader names its line
        if name == target:
            if gaps:
                said.append(f"{name}, the target: {gaps} missing values")
                adds.append("missing=drop")
            if words and request.positive is None:
                values = sorted({*column} - ABSENT)
                said.append(
                    f"{name}, the target: words such as {', '.join(values[:5])}"
                )
                adds.append(f"positive={values[-1]}")
        elif len({*column}) == 1 < len(column) and request.standardize and is_usable:
            said.append(f"{name}: one value alone, {column[0]}")
            drop.append(name)
        elif words:
            has_text = has_text or not any(map(_is_number, column))
            values = list(dict.fromkeys(column))
            said.append(f"{name}: words or dates, such as {', '.join(values[:QUOTED])}")
            drop.append(name)
        elif gaps and request.missing is None:
            said.append(f"{name}: {gaps} missing values")
            needs_fill = True
    if needs_fill and "missing=drop" not in adds:
        adds.append("missing=median")
    if drop != request.drop:
        adds.append(f"drop=[{','.join(drop)}]")
    if len(said) > 1 or has_text:
        lines = "\n".join(f"  {line}" for line in said)
        count = f"{len(said)} columns need" if len(said) > 1 else "1 column needs"
        raise ConfigError(
            f"{path.name}: {count} a decision:\n{lines}\n"
            f"one that works, of which classes are then public:\n"
            f"  {_command(request.words, adds)}"
        )


def _is_number(value: str) -> bool:
    try:
        return not np.isnan(float(value))
    except ValueError:
        return False


def _command(words: Sequence[Any], adds: Sequence[str]) -> str:
    new = {word.partition("=")[0] for word in adds}
    kept = [word for word in words if word.partition("=")[0] not in new]
    return shlex.join(["dperm", "try", *kept, *adds])
