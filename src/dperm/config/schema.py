"""The typed configuration: the keys and values allowed in each YAML under ``conf/``.

Pydantic makes these sections of what Hydra composes, and checks it against their
annotations: types, ranges, names, grids and known keys. ``validation`` writes the error
messages, and ``config`` checks what one section must tell of others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from numbers import Real
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, Strict, model_validator
from pydantic_core import PydanticCustomError

from dperm.config import grid
from dperm.config.locate import available, conf_file, group_file
from dperm.config.validation import UNKNOWN, check, check_call, one_of, quoted
from dperm.privacy import accountants as calibrations
from dperm.privacy.events import Gaussian, Ledger

IN_KEYS = "nothing"  # a key has the settings that come out of it
GIVEN = ""  # in place of a value that every YAML gives
# Columns of all rows of sweeps, whose names no axis may have.
RESERVED_AXES = {
    "paper",
    "sweep",
    "replicate",
    "seed",
    "commit",
    "versions",
    "config_digest",
    "status",
    "seconds",
}
SOURCES = {  # origins of sources to their keys; members may be left out
    "file": ("files", "members"),
    "mirror": ("files", "members"),
    "package": ("files", "loader"),
    "http": ("urls", "members"),
    "openml": ("id",),
    "sklearn": ("loader",),
    "synthetic": ("generator", "options"),
}
ONE_RELEASE = Ledger((Gaussian(1.0, 1.0, 1, "1", "an example"),))
QUANTITIES = (
    "errors",
    "deviations",
    "counts",
    "seconds",
)  # that a paper prints


def same(check: Callable[[Any], Any]) -> AfterValidator:
    """A constraint: a check that refuses a value by a ValueError."""

    def checked(value: Any) -> Any:
        check(value)
        return value

    return AfterValidator(checked)


def among(*known: str) -> AfterValidator:
    """A constraint: the text must be one of the known words."""
    return same(lambda word: one_of("", word, known))


def matching(pattern: str, words: str) -> AfterValidator:
    """A constraint: the whole text must match a pattern, which is told in words."""

    def check(text: str) -> None:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"expected {words}, found {text!r}")

    return same(check)


def named(group: str) -> AfterValidator:
    """A constraint: the text must be the name of a YAML of the group."""

    def check(name: str) -> None:
        if conf_file(group_file(group, name)) is None:
            # faster than to list them
            one_of("", name, available(group))

    return same(check)


def _each_once(words: Sequence[Any]) -> None:
    for word in words:
        if words.count(word) > 1:
            raise ValueError(f"expected each of them once, found {word} twice")


def _require_axes(spec: Any, names: str) -> None:
    if spec in (GIVEN, None):
        raise ValueError(
            f": expected axes {names}, each with its values, found none"
        )


def _run(spec: Any) -> None:
    _require_axes(spec, ", ".join(grid.AXES))
    points = grid.points(spec, "")
    for axis in grid.AXES:
        for number in grid.values(points, axis):
            check({axis: number}, Setting, lambda path: f".{path[0]}")


def _swept(spec: Any) -> None:
    _require_axes(spec, "of any names")
    points = grid.points(spec, "", axes=None)
    for axis in sorted(
        RESERVED_AXES & {name for point in points for name in point}
    ):
        raise ValueError(
            f".{axis}: expected another name, as all rows have a column {axis}"
        )
    for group in ("problem", "solver"):  # axes that name something
        try:
            for name in grid.values(points, group):
                one_of(f".{group}", name, available(group))
        except ValueError as error:
            raise ValueError(
                f"{error}; an axis {group!r} has files of conf/{group}, one of "
                "another name has any values"
            ) from None


def _below(paths: Sequence[str]) -> None:
    for path in paths:
        folders = PurePosixPath(path).parts
        if not folders or folders[0] == "/" or ".." in folders:
            raise ValueError(
                f"expected paths below the folder, found {path!r}"
            )


def _category(word: Any) -> None:
    if isinstance(word, bool) or not isinstance(word, str | int | float):
        text = "nothing" if word is None else repr(word)
        raise ValueError(
            f"expected text or a number, found {text}{quoted(word)}"
        )


def _calibration(name: str) -> None:
    place = calibrations.place(name)
    if name in calibrations.PLACES:
        return
    accountant = import_module(place)
    where = f"{accountant.__file__}: epsilon"
    check_call(accountant.epsilon, where, ("ledger", "delta"))
    try:
        epsilon = accountant.epsilon(ONE_RELEASE, 1e-6)
    except Exception:
        # it may refuse; an error is told with its line where it is used
        return
    if not isinstance(epsilon, Real) or epsilon != epsilon:
        raise ValueError(f"{where}: expected a number, found {epsilon!r}")


Flag = Annotated[bool, Strict()]
Whole = Annotated[int, Strict()]
Natural = Annotated[int, Strict(), Field(ge=0)]
Count = Annotated[int, Strict(), Field(ge=1)]
Number = Annotated[float, Strict()]
Positive = Annotated[float, Strict(), Field(gt=0)]
Finite = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1)]
# Names become parts of paths: none may lead out of its folder.
Folder = Annotated[str, matching("[A-Za-z0-9_-]*", "letters, digits, _ and -")]
Name = Annotated[Folder, Field(min_length=1)]
Category = Annotated[Any, same(_category)]
Axis = Annotated[str, among(*grid.AXES)]
Calibration = Annotated[str, same(_calibration)]
Names = Annotated[list[str], same(_each_once)]
ProblemName = Annotated[str, named("problem")]
ProblemNames = Annotated[list[ProblemName], same(_each_once)]
Problems = Annotated[ProblemNames, Field(min_length=1)]
RunGrid = Annotated[Any, same(_run)]
SweepGrid = Annotated[Any, same(_swept)]
OfRecords = Literal["1/n", "1/n^2"]  # see ``grid.number``
Strength = (
    Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)] | OfRecords
)
Delta = Annotated[float, Strict(), Field(gt=0, lt=1)] | OfRecords
Url = Annotated[str, matching("https?://[^/].*", "http:// or https://")]
Digest = Annotated[
    str, matching("sha256:[0-9a-f]{64}", "sha256: and 64 hex digits")
]
Calibrations = Annotated[
    list[Calibration], Field(min_length=1), same(_each_once)
]


class Section:
    """Base class of sections: unknown keys are refused, numbers may stand for text."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    __pydantic_config__: ClassVar[dict[str, Any]] = {
        "extra": "forbid",
        "coerce_numbers_to_str": True,
        "revalidate_instances": "always",
    }

    @model_validator(mode="before")
    @classmethod
    def _has_known_keys(cls, content: Any) -> Any:
        fields = [*cls.__dataclass_fields__]
        for key in content if isinstance(content, dict) else ():
            if key not in fields:
                raise PydanticCustomError(
                    UNKNOWN, "", {"key": key, "known": fields}
                )
        return content


class Part(Section):
    """A section of ``conf/``; the empty default of what must be given is refused."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {
        **Section.__pydantic_config__,
        "validate_default": True,
    }


@dataclass(frozen=True)
class Source(Part):
    """One source of a data set; sources are tried in the listed order."""

    origin: Annotated[str, among(*SOURCES)] = GIVEN
    # paths below the current folder, data.mirror, or an installed package's folder
    files: Annotated[Names, same(_below)] = field(default_factory=list)
    # of archives among these files
    members: Names = field(default_factory=list)
    # http: of files
    urls: Annotated[list[Url], same(_each_once)] = field(default_factory=list)
    id: Count | None = None  # openml: data set id
    # sklearn: function of its datasets; package: its name
    loader: Name | None = None
    generator: str | None = None  # synthetic: function of dperm.data.synthetic
    # of loader, generator
    options: dict[str, Any] = field(default_factory=dict)


Sources = Annotated[list[Source], Field(min_length=1)]


@dataclass(frozen=True)
class Reader(Part):
    """How the files become arrays X (n, p) and y (n,)."""

    format: Literal[
        "arrays", "arff", "csv", "libsvm", "cal_housing", "nips2003"
    ] = "arrays"
    target: str | None = None  # column that holds y (arff, csv, openml)
    positive: str | None = None  # class mapped to +1, all others to -1
    drop: list[str] = field(default_factory=list)  # columns left out
    missing: Literal["mean", "median", "drop"] | None = (
        None  # arff, csv; None: refused
    )
    # arff, csv: column: its values, each of which becomes a column of 0 and 1
    categories: dict[str, list[Category]] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)  # of the format


@dataclass(frozen=True)
class Dataset(Part):
    """A data set: its sources, its reader, and the digest of its arrays."""

    name: Name = GIVEN
    title: str = ""
    sources: Sources = field(default_factory=list)
    reader: Reader = field(default_factory=Reader)
    digest: Digest | None = None  # of the parsed arrays; printed by fetch


@dataclass(frozen=True)
class Preparation(Part):
    """Preparation of the arrays before a problem is made of them."""

    # Columns to mean 0 and standard deviation 1 (ddof 0); refused where data are sparse
    standardize: Flag = False
    drop_zero_columns: Flag = False
    centre: Flag = False  # labels to mean 0
    intercept: Flag = False  # a last column of ones


@dataclass(frozen=True)
class PenaltySection(Part):
    """Separable penalty l1 |w_j| + (l2/2) w_j^2 on the box [lower, upper]."""

    l1: Strength = 0.0
    l2: Strength = 0.0
    # runs start at 0, which the box must hold
    lower: Annotated[Number, Field(le=0)] = float("-inf")
    upper: Annotated[Number, Field(ge=0)] = float("inf")


@dataclass(frozen=True)
class Privacy(Part):
    """The privacy target; neighbouring data sets differ by replacing one record."""

    epsilon: Positive = 1.0  # .inf runs the non-private method
    delta: Delta = "1/n^2"


@dataclass(frozen=True)
class ProblemSection(Part):
    """Data set + preparation + loss + penalty + privacy target."""

    name: Name = GIVEN
    title: str = ""
    dataset: Dataset = field(default_factory=Dataset)
    preparation: Preparation = field(default_factory=Preparation)
    # Name of one of dperm.problems.losses, except the linear one
    loss: Text = GIVEN
    penalty: PenaltySection = field(default_factory=PenaltySection)
    privacy: Privacy = field(default_factory=Privacy)


@dataclass(frozen=True)
class Solver(Part):
    """A solver with its options; a variant is another YAML."""

    name: Name = GIVEN
    label: Text = GIVEN  # as the paper writes it
    # A module of this package, next to conf, or installed
    algorithm: Text = GIVEN
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunSection(Part):
    """One solver of a paper: its problems and its grid."""

    grid: RunGrid = GIVEN
    problems: Problems | None = None  # None: all problems of the paper
    label: str | None = None  # its name in the paper; None: that of the solver
    # On sparse data, a setting whose objective is this many times F(0) after a
    # sixteenth of a pass runs no further in the first replicate of tuning, from which
    # the best are taken; None: it does
    stop_above: Finite | None = None


@dataclass(frozen=True)
class Sweep(Part):
    """An experiment other than a tuned grid: a function, called at every point."""

    # A function of the paper's sweeps.py, or of all papers
    function: Text = GIVEN
    grid: SweepGrid = GIVEN  # axes of any name
    # the grid at scales smoke and quickstart; None: the same
    small: SweepGrid | None = None
    replicates: Count = 10
    # whose optimum is needed
    problems: ProblemNames = field(default_factory=list)
    # whose arrays are needed
    prepared: ProblemNames = field(default_factory=list)
    # Whether it starts from the tuned settings of its solvers
    tuned: Flag = False
    # Whether its seconds are shown: then nothing else runs
    timed: Flag = False
    # axes that one process runs through
    together: Names = field(default_factory=list)
    # Whether a point depends on its own problem and solver only. Then it stays valid
    # when others are added or removed, and is passed its own solver's entry of options.
    apart: Flag = False
    options: dict[str, Any] = field(default_factory=dict)
    smoke: Flag = True  # whether scales that are not thorough run it


@dataclass(frozen=True)
class Product(Part):
    """A figure or a table: the function that makes it, and its inputs."""

    function: Text = GIVEN  # a function of the paper's module
    problems: Problems | None = None
    sweeps: Names = field(default_factory=list)
    calibration: Calibration = calibrations.PUBLISHED
    caption: str = ""
    # Whether it shows seconds; they are then measured for it
    timed: Flag = False
    options: dict[str, Any] = field(default_factory=dict)
    smoke: Flag = True  # whether scales that are not thorough make it


@dataclass(frozen=True)
class PrintedNumbers(Part):
    """Columns of one of its tables: what the paper prints, and what we found."""

    quantity: Annotated[str, among(*QUANTITIES)] = GIVEN
    table: Name = GIVEN
    printed: Text = GIVEN  # column
    ours: Text = GIVEN  # column
    low: str = ""  # columns of the interval of ours
    high: str = ""
    # column: its value in them
    rows: dict[str, str] = field(default_factory=dict)
    paper_table: str = ""  # what the paper calls the table, if another name
    # A sentence for readers where the paper does not say what it is
    reading: str = ""


@dataclass(frozen=True)
class Paper(Part):
    """Problems, solvers, grids, figures, tables and claims of one paper."""

    name: Name = GIVEN
    label: str = ""  # what pages and pictures call it; its name without one
    title: str = ""
    reference: str = ""
    problems: ProblemNames = field(default_factory=list)
    # of the small scales
    small_problems: ProblemNames = field(default_factory=list)
    runs: dict[Annotated[str, named("solver")], RunSection] = field(
        default_factory=dict
    )
    calibrations: Calibrations = field(
        default_factory=lambda: [*calibrations.OURS]
    )
    replicates: Count = 5  # tuning runs of every grid point
    fresh: Count = 10  # evaluation runs of every chosen setting
    most: Count = 400  # of the best settings, as far as their means need them
    evaluated: Literal["all", "best", "ties"] = "all"  # numbers of passes
    # Evaluation runs that are repeated alone where time is shown
    clocked: Whole = 5
    race: Flag = True  # false: run all settings in all replicates
    sweeps: dict[Name, Sweep] = field(default_factory=dict)
    figures: dict[Name, Product] = field(default_factory=dict)
    tables: dict[Name, Product] = field(default_factory=dict)
    # CSV files in its folder
    published: dict[str, str] = field(default_factory=dict)
    printed_numbers: list[PrintedNumbers] = field(default_factory=list)
    # A YAML file in its folder: claims and their tests
    claims: str | None = None
    # When those of its claims were set; shown in the report
    thresholds: str = ""


@dataclass(frozen=True)
class Scale(Part):
    """How much of a paper runs: everything, or a thinned part without downloads."""

    name: Name = GIVEN
    folder: Folder = ""  # below results/ and figures/
    problems: Literal["all", "small"] = "all"
    # values kept per axis
    keep: dict[Axis, Count] = field(default_factory=dict)
    replicates: Count | None = None
    fresh: Count | None = None
    # False: sweeps and products with smoke: false are left out
    thorough: Flag = True


@dataclass(frozen=True)
class Data(Part):
    """Sources and storage of data."""

    mirror: str | None = None  # folder with copies of the sources' files
    dir: Text = "data"
    # Seconds without an answer before a source is abandoned
    timeout: Finite = 60.0
    retries: Natural = 3
    # of a source's files together, packed and unpacked
    most_bytes: Count = 2**28
    most_seconds: Finite = 21600.0  # for the download of all files of a source
    # Whether `dperm fetch` fails if no source has the data
    required: Flag = True


@dataclass(frozen=True)
class Output(Part):
    """Folders of results and figures; where composed, those of the scale."""

    results: Text = "results"
    figures: Text = "figures"


@dataclass(frozen=True)
class Setting(Part):
    """One setting, for commands that concern a single setting."""

    calibration: Calibration = calibrations.PUBLISHED
    passes: Annotated[Positive, Field(le=grid.MOST_PASSES)] = 10.0
    step: Finite = 1.0
    clip: Positive = 1.0
    # None: calibrate it
    noise_multiplier: (
        Annotated[Number, Field(ge=0, allow_inf_nan=False)] | None
    ) = None


@dataclass(frozen=True)
class Settings(Part):
    """The scale, and what belongs to no paper, problem or solver."""

    scale: Scale = field(default_factory=Scale)
    data: Data = field(default_factory=Data)
    output: Output = field(default_factory=Output)
    setting: Setting = field(default_factory=Setting)
    seed: Natural = 20220202
    workers: Count = 1
    product: str | None = None  # figure, table, sweep: which one; None for all
    # of figures
    formats: list[Literal["pdf", "svg"]] = field(default_factory=list)
    # draw: figures/name@digest, tables/
    drawn: list[str] = field(default_factory=list)
    # of the command line, recorded
    overrides: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Config(Settings):
    """The root: one paper, one problem, one solver, one scale."""

    paper: Paper = field(default_factory=Paper)
    problem: ProblemSection = field(default_factory=ProblemSection)
    solver: Solver = field(default_factory=Solver)


PRODUCTS: dict[str, type] = {
    "sweeps": Sweep,
    "figures": Product,
    "tables": Product,
}
GROUPS: dict[str, type] = {
    "paper": Paper,
    "problem": ProblemSection,
    "solver": Solver,
    "scale": Scale,
    "dataset": Dataset,
}
