"""The typed configuration: what every YAML under ``conf/`` may say.

Keys and simple types are checked against these classes while files are merged;
``validation`` checks the rest (names, ranges, grids) before anything runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING


@dataclass
class Source:
    """One place a data set can come from; sources are tried in the order given."""

    kind: str = MISSING  # file | mirror | http | openml | sklearn | synthetic
    # file: paths below the current folder; mirror: paths below data.mirror
    files: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)  # of archives among these files
    urls: list[str] = field(default_factory=list)  # http: one URL per file
    id: int | None = None  # openml: data set id
    loader: str | None = None  # sklearn: function of sklearn.datasets
    generator: str | None = None  # synthetic: function of dperm.data.synthetic
    options: dict[str, Any] = field(default_factory=dict)  # of loader, generator


@dataclass
class Reader:
    """How the files become arrays X (n, p) and y (n,)."""

    format: str = "arrays"  # arrays | arff | csv | libsvm | cal_housing | nips2003
    target: str | None = None  # column that holds y (arff, csv, openml)
    positive: str | None = None  # class mapped to +1, all others to -1
    drop: list[str] = field(default_factory=list)  # columns left out
    missing: str | None = None  # arff, csv: None: refused | mean | median | drop
    # arff, csv: column: its values, each of which becomes a column of 0 and 1
    categories: dict[str, list[Any]] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)  # of the format


@dataclass
class Dataset:
    """A data set: where it is found, how it is read, and the digest of its arrays."""

    name: str = MISSING
    title: str = ""
    sources: list[Source] = field(default_factory=list)
    reader: Reader = field(default_factory=Reader)
    digest: str | None = None  # sha256 of the parsed arrays; printed by fetch


@dataclass
class Preparation:
    """What is done to the arrays before a problem is made of them."""

    # Columns to mean 0 and standard deviation 1 (ddof 0); sparse ones not filled in,
    # which the solvers dp_cd and dp_gcd can work with.
    standardize: bool = False
    drop_zero_columns: bool = False


@dataclass
class Penalty:
    """Separable penalty l1 |w_j| + (l2/2) w_j^2 on the box [lower, upper]."""

    l1: Any = 0.0  # a number, or "1/n"
    l2: Any = 0.0
    lower: float = float("-inf")
    upper: float = float("inf")


@dataclass
class Privacy:
    """The privacy target; neighbouring data sets differ by replacing one record."""

    epsilon: float = 1.0  # .inf runs the non-private method
    delta: Any = "1/n^2"  # a number in (0, 1), "1/n" or "1/n^2"


@dataclass
class Problem:
    """Data set + preparation + loss + penalty + privacy target."""

    name: str = MISSING
    title: str = ""
    dataset: Dataset = field(default_factory=Dataset)
    preparation: Preparation = field(default_factory=Preparation)
    loss: str = MISSING  # name of one of dperm.core.erm.losses, but for the linear one
    penalty: Penalty = field(default_factory=Penalty)
    privacy: Privacy = field(default_factory=Privacy)


@dataclass
class Solver:
    """A solver with its options; a variant is another YAML."""

    name: str = MISSING
    label: str = MISSING  # as the paper writes it
    algorithm: str = MISSING  # a module of ours, beside conf, or installed
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Run:
    """One solver of a paper: on which problems, over which grid."""

    grid: Any = MISSING
    problems: list[str] | None = None  # None: all problems of the paper
    calibrations: list[str] | None = None  # None: those of the paper
    leave_out: dict[str, list[str]] = field(default_factory=dict)  # problem: these
    label: str | None = None  # what the paper calls it; None: what the solver does


@dataclass
class Sweep:
    """An experiment that is no tuned grid: a function, called at every point."""

    kind: str = MISSING  # a function of dperm.sweeps.<module of the paper>
    grid: Any = MISSING  # axes of any name
    small: Any = None  # the grid at scales smoke and quickstart; None: the same
    replicates: int = 10
    problems: list[str] = field(default_factory=list)  # whose optimum must be there
    prepared: list[str] = field(default_factory=list)  # whose arrays must be there
    tuned: bool = False  # whether it starts from what its points' solvers were tuned to
    timed: bool = False  # whether its seconds are shown: then nothing runs beside it
    # Whether a point depends on its own problem and solver alone: then it stays when
    # others come and go, and of an option by solvers' names it is given its own entry.
    apart: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    smoke: bool = True  # whether a scale that is not thorough runs it


@dataclass
class Product:
    """A figure or a table: the function that makes it and what it is given."""

    kind: str = MISSING  # a function of the paper's module
    problems: list[str] | None = None
    sweeps: list[str] = field(default_factory=list)
    calibration: str = "paper"
    caption: str = ""
    timed: bool = False  # whether it shows seconds, which are then measured for it
    options: dict[str, Any] = field(default_factory=dict)
    smoke: bool = True  # whether a scale that is not thorough makes it


@dataclass
class Paper:
    """Problems, solvers, grids, figures, tables and claims of one paper."""

    name: str = MISSING
    title: str = ""
    reference: str = ""
    problems: list[str] = field(default_factory=list)
    offline: list[str] = field(default_factory=list)  # problems of the small scales
    runs: dict[str, Run] = field(default_factory=dict)  # by the solver's name
    calibrations: list[str] = field(default_factory=lambda: ["paper", "strict"])
    replicates: int = 5  # tuning runs of every grid point
    fresh: int = 10  # evaluation runs of every chosen setting
    evaluated: str = "all"  # all | best: numbers of passes that are evaluated
    clocked: int = 5  # evaluation runs that are made again alone where time is shown
    race: bool = True  # false: settings that cannot win are run to the end too
    sweeps: dict[str, Sweep] = field(default_factory=dict)
    figures: dict[str, Product] = field(default_factory=dict)
    tables: dict[str, Product] = field(default_factory=dict)
    published: dict[str, str] = field(default_factory=dict)  # CSV files in its folder
    claims: str | None = None  # a YAML file in its folder: sentences and tables, judged
    thresholds: str = ""  # of its claims: when they were set; shown in the report


@dataclass
class Claim:
    """An entry of the file of claims; what rules take is checked with the rules."""

    place: str = MISSING
    claim: str = MISSING
    rule: str = MISSING
    options: dict[str, Any] = field(default_factory=dict)
    kind: str = "sentence"
    published: str = ""
    readings: dict[str, Any] = field(default_factory=dict)  # name: options it changes
    note: str = ""
    set: str = ""  # when its thresholds were set
    first: bool = False


@dataclass
class Scale:
    """How much of a paper is run: everything, or a thinned part without downloads."""

    name: str = MISSING
    folder: str = ""  # below results/ and figures/
    problems: str = "all"  # all | offline
    keep: dict[str, int] = field(default_factory=dict)  # grid axis: values kept
    replicates: int | None = None
    fresh: int | None = None
    thorough: bool = True  # false: sweeps and products with smoke: false are left out


@dataclass
class Data:
    """Where data are found and kept."""

    mirror: str | None = None  # folder that holds what the sources serve
    dir: str = "data"
    timeout: float = 60.0  # seconds without an answer before a source is given up
    retries: int = 3
    required: bool = True  # whether `dperm fetch` fails where no source serves it


@dataclass
class Parallel:
    """Where the units of tune and sweep run; the rows are the same everywhere."""

    backend: str = "local"  # local: threads and processes of this machine | dask
    scheduler: str | None = None  # dask: address, such as tcp://host:8786


@dataclass
class Output:
    """Where results and figures go."""

    results: str = "results"
    figures: str = "figures"


@dataclass
class Setting:
    """One lane, for the commands that look at a single setting."""

    calibration: str = "paper"
    passes: float = 10.0
    step: float = 1.0
    clip: float = 1.0
    noise_multiplier: float | None = None  # None: calibrate it


@dataclass
class Config:
    """The root: one paper, one problem, one solver, one scale."""

    paper: Paper = field(default_factory=Paper)
    problem: Problem = field(default_factory=Problem)
    solver: Solver = field(default_factory=Solver)
    scale: Scale = field(default_factory=Scale)
    data: Data = field(default_factory=Data)
    output: Output = field(default_factory=Output)
    parallel: Parallel = field(default_factory=Parallel)
    setting: Setting = field(default_factory=Setting)
    seed: int = 20220202
    workers: int = 1
    product: str | None = None  # figure, table, sweep: which one, None for all
    made: str = ""  # complete: digest of what a paper's rows are of, by the Snakefile
    drawn: list[str] = field(default_factory=list)  # draw: figures/name@digest, tables/
    overrides: list[str] = field(default_factory=list)  # filled in, for the record
