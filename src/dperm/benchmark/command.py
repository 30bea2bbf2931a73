"""``dperm try mine.csv target=y``: private methods on data of one's own.

The words of the command are checked before any slow import, and all that is wrong with
them is said at once; then all that is wrong with the file, the ranges and the methods.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
)

from dperm import extras
from dperm.config.locate import ConfigError
from dperm.names import hint, no_option

if TYPE_CHECKING:
    from dperm.benchmark.race import Case
    from dperm.estimators.methods import Method

log = logging.getLogger(__name__)

OVERRIDES = ("data", "output")  # data.mirror=..., output.results=...
OF_COLUMNS = ("positive", "drop", "missing", "categories")
BY_COLUMN = (
    "bounds",
    "categories",
)  # with the name of a column behind a point
USUAL = {  # methods if none is named, by whether labels are classes
    True: ("objective_perturbation", "dp_gram", "dp_minibatch", "dp_gd"),
    False: ("moments", "ada_ssp", "dp_gram", "dp_gd"),
}
WORKBOOKS = (".xls", ".xlsx", ".xlsm", ".ods", ".numbers")  # endings
JSON = "--json"  # print the table's rows as JSON
HTML = "--html"  # write one page with answer, picture and table
MIN_RECORDS = 10  # records, of which a fifth is held out
NO_RELEASE = (
    "Ranges and classes that you did not declare, settings of a grid and all of these\n"
    "numbers are read off your data, and no epsilon pays for that: they are for you\n"
    "alone and no release. Release a fit by dperm.fit(..., release=True) instead."
)


def _ordered(pair: tuple[float, float]) -> tuple[float, float]:
    if not pair[0] < pair[1]:
        raise ValueError("low below high")
    return pair


def _key(help: str, default: Any = None, **limits: Any) -> Any:
    return Field(default, description=help, **limits)


Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[Finite, Field(gt=0)]
Pair = Annotated[tuple[Finite, Finite], AfterValidator(_ordered)]
Loss = Literal["logistic", "smoothed_hinge", "least_squares", "huber"]
Tuning = Literal["default", "grid"]


class Request(BaseModel):
    """The keys of ``dperm try`` and their defaults."""

    model_config = ConfigDict(extra="forbid")

    problem: str = _key("a CSV or Parquet file; the word without =", "")
    target: str | None = _key("column that holds y (default: the last)")
    positive: str | None = _key(
        "class that is +1 (default: of two the larger)"
    )
    drop: list[str] = _key("columns left out, [a, b]", [])
    separator: str | None = _key("of fields (default: as in the first line)")
    decimal: Literal[".", ","] = _key("decimal mark", ".")
    header: bool | None = _key("whether the first line has names")
    missing: Literal["mean", "median", "drop"] | None = _key(
        "mean, median or drop, for values that are missing (default: refuse)"
    )
    categories: dict[str, list[str]] = _key(
        "categories.city=[A, B]: values of a column of text, each a column of 0 and 1",
        {},
    )
    loss: Loss | None = _key(
        "smoothed_hinge, huber (default: logistic for two values)"
    )
    l1: Finite = _key("strength of the L1 norm of a fit", 0.0, ge=0)
    l2: Finite | None = _key(
        "of the squared norm (default: as dperm.fit)", ge=0
    )
    intercept: bool = _key("whether to add one", True)
    bounds: Pair | dict[str, Pair] = _key(
        "[0, 1], or bounds.age=[18, 90] for a column: ranges (default: the data's)",
        {},
    )
    label_bounds: Pair | None = _key(
        "the range of real labels (default: the data's)"
    )
    solvers: list[str] = _key(
        "names of conf/solver, or of a Python file here; all; diffprivlib, interpret",
        [],
    )
    epsilon: list[Positive] = _key(
        "one or several, for neighbours that differ by replacing one record",
        [1.0],
        min_length=1,
    )
    delta: Finite | None = _key(
        "of the guarantee (default: 1/n^2)", gt=0, lt=1
    )
    tunings: list[Tuning] = _key(
        "default, grid or both", ["default", "grid"], min_length=1
    )
    defaults: dict[str, dict[str, Any]] = _key(
        "defaults.mine.step=0.3: the setting without tuning", {}
    )
    grids: dict[str, dict[str, Any]] = _key(
        "grids.mine.step=[0.1, 1]: the settings that are tried", {}
    )
    fresh: int = _key("fresh fits of each chosen setting", 20, ge=2)
    seed: int = _key("all random numbers follow from it", 20220202, ge=0)
    workers: int = _key("processes", 1, ge=1)
    overrides: list[str] = Field([], exclude=True)


LISTS = (
    "drop",
    "categories",
    "solvers",
    "epsilon",
    "tunings",
    "bounds",
    "label_bounds",
)
OPTION_HELP = {
    key: str(one.description)
    for key, one in Request.model_fields.items()
    if one.description
}


def usage() -> str:
    """The command's purpose and keys."""
    wrapper = textwrap.TextWrapper(86, "  ", " " * 18)
    keys = [
        wrapper.fill(f"{key + '=':15} {text}")
        for key, text in OPTION_HELP.items()
    ]
    return (
        "usage: dperm try mine.csv target=y solvers=[dp_cd,dp_gd,mine] epsilon=1\n\n"
        "compare private methods on data of your own, at one true epsilon\n\n"
        + "\n".join(keys)
        + f"\n\n{JSON}          print the table as JSON, its other words on stderr"
        f"\n{HTML}          write try.html: answer, picture and table in one file"
    )


def main(words: list[str]) -> None:
    """Print the comparison that the arguments of ``dperm try`` request."""
    if not words or {"-h", "--help"} & {*words}:
        print(usage())
    else:
        request = parse(word for word in words if word not in (JSON, HTML))
        print(compare(request, is_json=JSON in words, is_page=HTML in words))


# --- words ----------------------------------------------------------------------------


def parse(words: Iterable[str]) -> Request:
    """Parse the arguments of a command line.

    Raises one ConfigError for all words that are not ``key=value`` and wrong values.
    """
    arguments: dict[str, Any] = {"overrides": []}
    faults = []
    for word in words:
        key, equals, text = word.partition("=")
        name, *below = key.split(".")
        if word.startswith("-"):
            faults.append(no_option(word, [JSON, HTML, "--help"]))
        elif not equals and "problem" not in arguments:
            arguments["problem"] = word
        elif below and equals and name in OVERRIDES:
            arguments["overrides"].append(word)
        elif not equals or name not in OPTION_HELP:
            near = hint(f"{name}=", [f"{option}=" for option in OPTION_HELP])
            listed = near or f": expected one of {', '.join(OPTION_HELP)}"
            faults.append(f"no key {word!r}{listed}")
        else:
            try:
                if name in BY_COLUMN and below:
                    # a column's name may have points
                    below = [".".join(below)]
                _put(arguments, [name, *below], _value(name, text))
            except (yaml.YAMLError, TypeError):
                faults.append(f"{word}: expected {OPTION_HELP[name]}")
    try:
        request = Request(**arguments)
    except ValidationError as error:
        # of one key once, and of bounds.age not bounds too
        sentences: dict[str, str] = {}
        for problem in sorted(
            error.errors(), key=lambda problem: -len(problem["loc"])
        ):
            key = _named(arguments, problem["loc"])
            if not any(
                f"{option}.".startswith(f"{key}.") for option in sentences
            ):
                sentences[key] = _fault(key, problem)
        faults += sentences.values()
    if not arguments.get("problem"):
        faults.append(f"problem=: expected {OPTION_HELP['problem']}")
    if faults:
        raise ConfigError("; ".join(faults))
    return request


def _put(tree: dict[str, Any], path: list[str], value: Any) -> None:
    """Put a value below keys. Raises TypeError if a value is in the way."""
    *folders, leaf = path
    for name in folders:
        tree = tree.setdefault(name, {})
        if not isinstance(tree, dict):
            raise TypeError(name)
    tree[leaf] = value


def _value(key: str, text: str) -> Any:
    """A list or a number of YAML, or text without the quotes that a shell leaves.

    A list is split at commas, also without brackets.
    """
    if key == "separator" and text.isspace():
        return text  # a blank or a tab, which need no quotes
    text = text.strip()
    if key in ("defaults", "grids"):
        parsed = yaml.safe_load(text)
        is_one = key == "grids" and not isinstance(parsed, list)
        return [parsed] if is_one else parsed
    if key in LISTS:
        brackets = text if text.startswith("[") else f"[{text}]"
        return yaml.load(brackets, yaml.BaseLoader)
    quoted = re.fullmatch(r"(['\"])(.*)\1", text)
    return quoted[2] if quoted else text


def _named(given: Mapping[str, Any], place: tuple[Any, ...]) -> str:
    """The key of an error of pydantic, as it was typed: bounds.age."""
    names = []
    tree = given
    for key in place:
        if isinstance(tree, dict) and key in tree:
            names.append(str(key))
            tree = tree[key]
    return ".".join(names)


def _fault(key: str, error: Mapping[str, Any]) -> str:
    """One line of a key's error of pydantic, with what the key is."""
    sentence = re.sub(
        "^(Input should be|Value error,)", "expected", str(error["msg"])
    )
    name = key.partition(".")[0]
    help_text = OPTION_HELP.get(name, "no key")
    return f"{key}={error['input']}: {sentence} ({name}: {help_text})"


# --- the race -------------------------------------------------------------------------


def compare(
    request: Request, is_json: bool = False, is_page: bool = False
) -> str:
    """Race the methods of a request, write the results, and return text or its rows.

    Table and picture are written, and with ``is_page`` a page with both; without
    matplotlib the table alone. Raises ConfigError for what cannot be carried out, and
    ModuleNotFoundError for a page without matplotlib, before any run.
    """
    import pandas as pd

    from dperm.benchmark import peers, race
    from dperm.storage.files import write_csv

    draws = importlib.util.find_spec("matplotlib") is not None
    if is_page:
        # refused now, and not after the runs
        importlib.import_module("matplotlib")
    case, chosen, pythons = planned(request)
    written = _file(request, case.name)
    held_out = len(case.y_held)
    n, p = case.X.shape
    log.info(
        "%d records and %d held out, p = %d, %s", n, held_out, p, case.loss
    )
    counts: dict[str, Any] = {
        "fresh": request.fresh,
        "tunings": request.tunings,
    }
    forecast = race.expected(case, chosen, request.epsilon, **counts)
    able = [
        one
        for one, seconds in zip(chosen, forecast, strict=True)
        if seconds > 0
    ]
    fits = sum(race.fits(case, method, **counts) for method in able)
    fits *= len(race.unique(request.epsilon))
    length = race.duration(sum(forecast) / request.workers)
    log.info("%d fits of %d methods: about %s", fits, len(able), length)
    common = (request.epsilon, request.seed, request.workers, forecast)
    runs = race.race(case, chosen, *common, **counts)
    seeds = [request.seed % 2**31 + k for k in range(request.fresh)]
    for name, python in pythons.items():
        library = peers.LIBRARIES[name]
        rows = peers.rows(case, python, request.epsilon, seeds, library)
        runs = pd.concat([runs, pd.DataFrame(rows)], ignore_index=True)
    labels = {method.name: method.label for method in chosen}
    table = race.means(runs, {**peers.PEER_LABELS, **labels})
    table_of_try = table.reindex(columns=race.OF_TRY)
    write_csv(written, table_of_try)
    if draws:
        _draw(table, written, is_page)
    else:
        need = f"a picture needs matplotlib: {extras.command('pipeline')}"
        log.info("%s; %s", written, need)
    if is_json:
        return str(table_of_try.to_json(orient="records", indent=1))
    return f"{race.words(table)}\n{NO_RELEASE}"


def _draw(table: Any, written: Path, is_page: bool) -> None:
    """Write the picture of a table, and the page with both, beside its file."""
    from dperm.benchmark import pages

    picture = written.with_suffix(".png")
    pages.draw(table, picture)
    log.info("%s, %s", written, picture.name)
    if is_page:
        page = written.with_suffix(".html")
        pages.write(table, picture, page, NO_RELEASE)
        log.info("%s", page)


def planned(request: Request) -> tuple[Case, list[Method], dict[str, str]]:
    """The data, the methods, and the Python of each other library that is named.

    Raises one ConfigError for all that is wrong with the file and the methods.
    """
    from dperm.benchmark import peers
    from dperm.estimators import methods

    faults: list[str] = []
    case = _tried(faults, _case, request)
    names = [*dict.fromkeys(request.solvers)]
    if names == ["all"]:
        names = [*methods.ARENA]
    method_names = [name for name in names if name not in peers.LIBRARIES]
    if not names and case is not None:
        method_names = [*USUAL[case.signed]]
    settings = (request.defaults, request.grids)
    chosen = [
        _tried(faults, _method, name, *settings) for name in method_names
    ]
    strange = {*request.defaults, *request.grids} - {*method_names}
    if strange and method_names:
        faults.append(
            f"defaults, grids: {', '.join(sorted(strange))}: expected a method that "
            f"runs, one of {', '.join(method_names)}; solvers= names others"
        )
    pythons = {}
    for name in (name for name in names if name in peers.LIBRARIES):
        pythons[name], reason = peers.environment(peers.LIBRARIES[name])
        faults += [f"solvers: {name}: {reason}"] * bool(reason)
    if faults or case is None:
        raise ConfigError("; ".join(faults))
    return case, [method for method in chosen if method is not None], pythons


def _method(name: str, *given: Mapping[str, Any]) -> Method:
    """The method of a name, or of a Python file in the current folder."""
    from dperm.estimators import methods

    file = Path(f"{name}.py")
    if name.isidentifier() and name not in methods.known() and file.is_file():
        return methods.of_file(file, *given)
    return methods.method(name, *given)


def _tried(
    faults: list[str], function: Callable[..., Any], *given: Any
) -> Any:
    """What a function returns; None, and its message among the faults, if it raises."""
    try:
        return function(*given)
    except ConfigError as error:
        faults.append(str(error))
        return None


def _case(request: Request) -> Case:
    """The data of a request with its ranges; those not declared are the data's."""
    import numpy as np

    from dperm.benchmark.race import Case
    from dperm.estimators.estimators import SIGNED

    path = Path(request.problem)
    X, y, names = _read(request)
    classes = np.unique(y)
    if len(y) < MIN_RECORDS:
        raise ConfigError(
            f"{path.name}: expected {MIN_RECORDS} records or more, found {len(y)}"
        )
    if len(classes) < 2:
        raise ConfigError(f"{path.name}: target: expected labels that differ")
    is_two = len(classes) == 2 and not request.label_bounds
    loss = request.loss or ("logistic" if is_two else "least_squares")
    is_signed = loss in SIGNED
    if is_signed and len(classes) > 2:
        raise ConfigError(
            f"{path.name}: target: {loss} loss takes two classes, found {len(classes)} "
            "values: positive=VALUE makes one of them +1; or loss=least_squares"
        )
    if is_signed and request.label_bounds:
        raise ConfigError("label_bounds: labels of two classes have none")
    declared: dict[str, Any] = {
        key: getattr(request, key) for key in ("l1", "l2", "delta")
    }
    declared["fit_intercept"] = request.intercept
    declared["bounds"] = _bounds(request, X, names)
    if request.label_bounds:
        declared["label_bounds"] = request.label_bounds
    try:
        case = Case.of(path.stem.split(".")[0], X, y, loss, **declared)
        case.reference  # noqa: B018 - found before any run
    except ValueError as error:
        raise ConfigError(f"{path.name}: {error}") from error
    return case


def _read(request: Request) -> tuple[Any, Any, list[str]]:
    """X (n, p), y (n,) and the columns' names of the file."""
    from dperm import data
    from dperm.data.arrays import RefusedError

    path = Path(request.problem)
    if not path.is_file():
        files = [str(file) for file in Path().iterdir() if file.is_file()]
        near = hint(request.problem, files)
        raise ConfigError(f"problem={request.problem}: no such file{near}")
    if path.suffix.lower() in WORKBOOKS:
        raise ConfigError(
            f"{path.name}: a workbook, expected CSV: save a sheet as CSV"
        )
    separator = request.separator and request.separator.replace("\\t", "\t")
    read_options: dict[str, Any] = {
        "decimal": request.decimal,
        "header": request.header,
    }
    columns = {key: getattr(request, key) for key in OF_COLUMNS}
    try:
        table = data.read_table(path, separator=separator, **read_options)
        return data.table_arrays(table, request.target, **columns)
    except RefusedError as error:
        where = "" if str(error).startswith(path.name) else f"{path.name}: "
        raise ConfigError(f"{where}{_as_words(str(error))}") from error


def _as_words(message: str) -> str:
    """A message whose cures are words of the command: ``drop: [1]`` is ``drop=[1]``."""
    cures = re.sub(r"`(\w+): '?([^`]*?)'?`", r"`\1=\2`", message)
    return re.sub(
        r"`(drop|categories|missing|positive|separator)`", r"`\1=`", cures
    )


def _bounds(request: Request, X: Any, names: list[str]) -> tuple[Any, Any]:
    """Ranges as declared: one for all columns, or by name; others are the data's."""
    from dperm.benchmark.race import ends

    if isinstance(request.bounds, tuple):
        return request.bounds
    low, high = ends(X)
    for name, pair in request.bounds.items():
        if name not in names:
            raise ConfigError(
                f"bounds: no column {name}; expected some of "
                f"{', '.join(names)}{hint(name, names)}"
            )
        low[names.index(name)], high[names.index(name)] = pair
    return low, high


def _site(request: Request) -> Any:
    """Where data and results lie: of a ``conf`` in the current folder, if it is ours.

    Raises ConfigError for overrides that mean nothing.
    """
    from dperm.config import locate
    from dperm.config.config import compose

    try:
        return compose(request.overrides)
    except ConfigError:
        # of another program's configuration, or of the overrides
        with locate.packaged_alone():
            return compose(request.overrides)


def _file(request: Request, name: str) -> Path:
    """The file of the results. Raises ConfigError if it cannot be written."""
    folder = Path(_site(request).output.results, "try")
    file = (
        folder / (re.sub(r"[^A-Za-z0-9_-]+", "_", name) or "data") / "try.csv"
    )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    except OSError as error:
        raise ConfigError(f"output.results: {error}") from error
    return file
