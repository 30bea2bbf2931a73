"""The ``dperm`` command: a single stage, or papers and files through Snakemake.

``COMMANDS`` lists the package's own commands; ``python -m dperm tune`` is ``dperm
tune``. A stage is a Hydra application: it takes ``key=value``, and Hydra's flags. Any
other first word is passed with all arguments to Snakemake, with the package's Snakefile
and profile.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import logging
import os
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any, NamedTuple, NoReturn

import yaml

from dperm import __version__, extras, processor
from dperm.config import locate
from dperm.names import hint, no_option, option_names

IN_KEYS = "nothing"  # words of the command line
SOLVES, DRAWS = (
    "solves",
    "draws",
)  # stages; SOLVES first checks problem and solver
OPTIONS = "options"  # of argparse, as ``PARSERS`` says
OWN_KEYS = "keys"  # the command's own key=value


class Command(NamedTuple):
    """One of the package's commands: ``module:function``, help, kind of arguments."""

    function: str
    help: str
    form: str


# By name; a second word of a name must follow.
COMMANDS = {
    "audit module:function": Command(
        "audit.command:main",
        "audit the privacy of a function of yours",
        OPTIONS,
    ),
    "verify": Command(
        "workflow.verify:main", "check results by making some again", OPTIONS
    ),
    "fetch": Command(
        "experiments.inputs:fetch", "fetch a problem's data set", SOLVES
    ),
    "prepare": Command(
        "experiments.inputs:prepare", "prepare the arrays of a problem", SOLVES
    ),
    "optimum": Command(
        "experiments.inputs:optimum", "solve a problem without privacy", SOLVES
    ),
    "tune": Command(
        "experiments.stages:tune",
        "run a solver over the grid of a paper",
        SOLVES,
    ),
    "evaluate": Command(
        "experiments.stages:evaluate",
        "run the chosen settings on fresh seeds",
        SOLVES,
    ),
    "solve": Command(
        "experiments.stages:solve", "tune, then evaluate", SOLVES
    ),
    "sweep": Command(
        "experiments.stages:sweep", "run the sweeps of a paper", SOLVES
    ),
    "audit": Command(
        "experiments.auditing:audit",
        "audit a solver; exit code 1 if caught",
        SOLVES,
    ),
    "privacy": Command(
        "experiments.auditing:report", "print what a setting costs", SOLVES
    ),
    "accept-code": Command(
        "workflow.accept_code:accept_code",
        "keep rows of older code of the same bits",
        SOLVES,
    ),
    "timing": Command(
        "experiments.stages:timing",
        "time the runs that are shown in seconds",
        DRAWS,
    ),
    "figure": Command(
        "experiments.products:figure", "draw the figures of a paper", DRAWS
    ),
    "table": Command(
        "experiments.products:table", "make the tables of a paper", DRAWS
    ),
    "draw": Command(
        "experiments.products:draw", "make some figures and tables", DRAWS
    ),
    "complete": Command(
        "workflow.verify:complete",
        "check that a paper agrees with its rows",
        DRAWS,
    ),
    "claims": Command(
        "report.claims:write", "judge the claims of the papers", DRAWS
    ),
    "report": Command("report.stage:report", "write the report", DRAWS),
    "readme": Command(
        "report.texts:readme", "put scorecard and claims into the pages", DRAWS
    ),
    "try": Command(
        "benchmark.command:main",
        "compare private methods on a file of yours",
        OWN_KEYS,
    ),
}
# Functions that add the options of a command to its parser.
PARSERS = {
    "audit module:function": "audit.command:arguments",
    "verify": "workflow.options:verify",
}
# Keys that only some stages read; the others refuse them.
READ_BY = {
    "setting": ("privacy",),
    "formats": ("figure", "draw", "readme"),
    "product": ("audit", "sweep", "figure", "table"),
}
WIDTH = max(map(len, COMMANDS))
CORE = ("try", "audit module:function")  # commands that need no extra
# of ``audit module:function``
MARK = re.compile("[^=]*:[^=]*|--epsilon(=.*)?")
# Snakemake's options that set the number of jobs, or a profile or executor that does.
CORES = re.compile(r"-[cj]\d*$|--(cores|jobs|profile|executor)\b")
# Snakemake's options that need its own output.
OWN_OUTPUT = re.compile(
    r"-\w*n|-[hpq]$|--(dry-?run|verbose|quiet|logger|printshellcmds|help|summary|list)"
)
# Options with which nothing is computed, only shown.
SHOWN = re.compile(r"-\w*n|-h|--(help|dry-?run|summary|list(-\w+)*)")
JSON = "--json"  # of PRINTED: print what is written
CLAIMS = "report.claims:write"
PRINTED = (CLAIMS, "experiments.auditing:audit")  # whose rows --json prints
# Functions of stages that call functions of a paper, of these collections.
COLLECTIONS = {
    "experiments.stages:sweep": "sweeps",
    "experiments.products:figure": "figures",
    "experiments.products:table": "tables",
}
REFUSED = 2  # exit code
OPTION = re.compile(r"--[A-Za-z][\w-]*")
INTERRUPTED = (
    "dperm: interrupted; the same command goes on from what is stored"
)
WARM = "--warm-workers"  # started by Snakemake: fork its jobs, see ``workflow.warm``
# Options that may ask for no core, or fewer.
CORES_VALUE = re.compile(r"(-[cj]|--cores|--jobs)=?([-+]?\d*)")
DRY = ("-n", "--dry-run")  # Snakemake's, without a value
DEBUG = "DPERM_DEBUG"  # set to anything: a failed stage shows its traceback
TOPS = ("figures/", "results/")
# of a traceback as text
FRAME = re.compile(r'File "(.+)", line (\d+), in (\S+)')
# in what libraries say of a seed
SMALL_SEED = re.compile(r"2\*\*32|4294967295")
STAGE_HELP = """{what}

Groups, one of each (group=name):
$APP_CONFIG_GROUPS
Any other key (key=value): problem.privacy.epsilon=2 product=figure1 seed=7

--cfg job  show the configuration, run nothing
-m         every combination of several values: solver=dp_cd,dp_sgd -m
--json     of claims and audit: print the rows as JSON too
"""
USAGE = """usage: dperm COMMAND [key=value ...] [options]
       dperm TARGET ... [options of Snakemake] [--config scale=NAME set="key=value"]

a target is a paper, all, or a file of figures/ or results/ to be made
exit code: 0 done, 1 failed, refuted or at fault, 2 refused before it started"""
EXAMPLES = """
examples:
  dperm dpcd                                 a paper, on all cores
  dperm -n all                               what would run, and why
  dperm figures/dpcd/figure1.png -j 2        one figure and what it needs, on two
  dperm figure product=figure1 formats=[svg] the same figure as SVG or PDF
  dperm try mine.csv target=y                private methods on your data
  dperm tune problem=diabetes solver=dp_cd   one stage; dperm tune --help has its keys
  dperm audit mine:fit --epsilon 1           is this function that private?
to complete keys and names of a stage: eval "$(dperm -sc install=bash)"
Noise is seeded doubles, for study. To publish a model use dperm.fit(..., release=True).
"""


def main() -> None:
    """Run one of the package's commands in this process, or pass all to Snakemake."""
    processor.same_bits()  # numpy is not imported yet
    # else Python searches what ends with it: half a second
    atexit.register(gc.freeze)
    # of the many objects of a list of jobs few are garbage
    gc.set_threshold(200_000)
    if any(map(SHOWN.fullmatch, sys.argv)) and hasattr(signal, "SIGPIPE"):
        # ``| head`` ends it in silence
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        if hasattr(signal, "pthread_sigmask") and sys.argv[1:2] != [WARM]:
            # a job is started with Ctrl-C held back
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        try:
            _run(sys.argv[1:])
        finally:
            if sys.stdout is not None:  # it may be closed
                sys.stdout.flush()
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        raise SystemExit(130) from None
    except Exception as error:
        if isinstance(error, OSError):
            # Python would write the rest again at its end, and say that it cannot
            sys.stdout = None
        if os.environ.get(DEBUG):
            raise
        raise _ending(error) from error


def _run(arguments: list[str]) -> None:
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise RefusedCommandError(
            "dperm: the current folder was removed: go to another"
        ) from error
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        raise RefusedCommandError(
            "dperm: NUMBA_DISABLE_JIT is set: unset it, as kernels are compiled"
        )
    name = name_of(arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(described())
    elif arguments[0] == "--version":
        print(f"dperm {__version__}")
    elif arguments[0] in ("-sc", "--shell_completion"):
        _complete(arguments)
    elif arguments[0] == WARM:
        _serve(int(arguments[1]))
    elif name is None:
        first = next((word for word in arguments if word not in DRY), "all")
        _refuse_unknown(first)
        if {"-h", "--help"} & {*arguments}:
            print(described())
        else:
            _snakemake(arguments)
    else:
        _call(
            name, [word for word in arguments[1:] if word not in name.split()]
        )


def name_of(arguments: list[str]) -> str | None:
    """The entry of ``COMMANDS`` that is called; None for Snakemake.

    A stage with a number of cores (``dperm audit -j 2``) is Snakemake's target.
    """
    if arguments[:1] == ["audit"] and any(map(MARK.fullmatch, arguments[1:])):
        return "audit module:function"
    command = COMMANDS.get(arguments[0]) if arguments else None
    is_stage = command is not None and command.form in (SOLVES, DRAWS)
    if command is None or (is_stage and any(map(CORES.match, arguments))):
        return None
    return arguments[0]


def _call(name: str, words: list[str]) -> None:
    command, what = COMMANDS[name], f"dperm {name.split()[0]}"
    if name not in CORE:
        # draws by its libraries
        is_report = command.function == "report.stage:report"
        extras.require("report" if is_report else "pipeline", what)
    if command.form in (SOLVES, DRAWS):
        sys.argv = [what, *words]  # shown in Hydra's help
        refuse_unread(name, words)
        run_stage(command, words)
        return
    _log()
    with _refusing():
        given: Any = words
        if command.form == OPTIONS:
            options = Parser(what, description=command.help)
            called(PARSERS[name])(options)
            given = options.parse_args(words)
        run(function_of(command), given)


class RefusedCommandError(SystemExit):
    """A command line or configuration that is refused: one line, exit code 2."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.code = REFUSED
        print(message, file=sys.stderr, flush=True)


class Parser(argparse.ArgumentParser):
    """A parser whose error message is one line."""

    def error(self, message: str) -> NoReturn:
        """Print the message and exit with code 2."""
        raise RefusedCommandError(f"{self.prog}: {message}")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse an unknown option first, with the nearest one."""
        options = option_names(self)
        for word in args or ():
            name = word.partition("=")[0]
            is_known = any(option.startswith(name) for option in options)
            if OPTION.fullmatch(name) and not is_known:
                self.error(no_option(name, options))
        return super().parse_known_args(args, namespace)


# --- stages ---------------------------------------------------------------------------


def function_of(command: Command) -> Callable[..., Any]:
    """The function behind a command."""
    return called(command.function)


def called(place: str) -> Callable[..., Any]:
    """The function at ``module:function``."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"dperm.{module}"), name)


def refuse_unread(name: str, words: list[str]) -> None:
    """Refuse a key that a stage does not read; jobs of a run are passed those of all.

    Raises ConfigError.
    """
    from dperm.config import run_spec

    if run_spec.OPTION in words:
        return
    for word in words:
        key = word.lstrip("+~").partition("=")[0].partition(".")[0]
        readers = READ_BY.get(key, (name,))
        if name not in readers:
            commands = ", ".join(f"dperm {reader}" for reader in readers)
            raise locate.ConfigError(
                f"{word}: dperm {name} does not read {key}; it is read by {commands}"
            )


def run_stage(command: Command, arguments: list[str]) -> None:
    """Run one stage on the configuration of the command line.

    Hydra's own flags (``--cfg job``, ``-m`` for multirun, ``--help``) make it an
    application of Hydra's; without them the configuration is composed once. Any failure
    ends with one line and exit code 1, or with a traceback if the environment variable
    ``DPERM_DEBUG`` is set.
    """
    from dperm.config import run_spec

    _log()
    with _refusing():
        made = run_spec.told(arguments)
        if made is not None:
            _noted(command, made)
            return
    from dperm.config import composition, config

    def job(*composed: Any) -> None:  # once for each of a multirun
        with _refusing():
            made = (
                config.checked(*composed)
                if composed
                else config.compose(arguments)
            )
            if command.form == SOLVES:
                from dperm.experiments import checks  # imports the solvers

                checks.problem(made.problem)
                checks.solver(made.solver)
            if command.function in COLLECTIONS:
                _check_functions(made, COLLECTIONS[command.function])
            try:
                written = _noted(command, made)
            except SystemExit as ended:
                if is_json and hasattr(ended, "written"):
                    # of what was refuted
                    print(as_json(ended.written[0]))
                raise
            if is_json:
                print(as_json(written[0]))

    if run_spec.OPTION in arguments:  # whose file has gone
        arguments = arguments[: arguments.index(run_spec.OPTION)]
    _log()
    is_json = command.function in PRINTED and JSON in arguments
    if is_json:
        arguments = [word for word in arguments if word != JSON]
    flags = [word for word in arguments if not re.match("~|[^-].*=", word)]
    with _refusing():
        composition.refuse_flags(flags)
    if not any(word.startswith("-") for word in flags):
        job()
        return
    with _refusing():
        given = [word for word in arguments if word not in flags]
        keys = [
            composition.hydra_override(word, several=True) for word in given
        ]
        text = STAGE_HELP.format(what=command.help).replace("'", r"\'")
        sys.argv[1:] = [*flags, *keys, f"hydra.help.template='{text}'"]
        with composition.refusing(given):
            composition.application(job)()


def _check_functions(config: Any, collection: str) -> None:
    """Refuse functions of a paper that are not there, or do not take their options."""
    from dperm.experiments import makers

    for name in makers.chosen(config.paper, collection, config.product):
        makers.entry_of(config.paper, collection, name)


def as_json(path: Path) -> str:
    """The rows of a CSV as a list of JSON; an empty file has none."""
    import pandas as pd

    if not path.read_text(encoding="utf-8").strip():
        return "[]"
    return str(pd.read_csv(path).to_json(orient="records", indent=1))


def _serve(number: int) -> None:
    """Fork the jobs of a run."""
    from dperm.workflow import warm

    stages = [one for one in COMMANDS.values() if one.form in (SOLVES, DRAWS)]
    modules = {f"dperm.{stage.function.partition(':')[0]}" for stage in stages}
    warm.serve(number, main, sorted(modules))


def _complete(arguments: list[str]) -> None:
    """Have Hydra install its completion in a shell, or complete a line."""
    from dperm.config import composition

    line = os.environ.get("COMP_LINE", "")  # from which the stage is removed
    os.environ["COMP_LINE"] = re.sub(r"^\s*(\S+)\s+[\w-]+\s", r"\1 ", line)
    sys.argv = ["dperm", *arguments]
    composition.application(print)()


def _log() -> None:
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("dperm").setLevel(logging.INFO)
    logging.captureWarnings(True)


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn a failure into one line."""
    try:
        yield
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        raise SystemExit(130) from None
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        raise _ending(error) from error


def _ending(error: Exception) -> SystemExit:
    """How a failure ends the command: a refused word or configuration with code 2."""
    if isinstance(error, locate.ConfigError):
        return RefusedCommandError(message_of(error))
    return SystemExit(message_of(error))


def message_of(error: Exception) -> str:
    """Message of a failed stage: one line, or several where the error has them."""
    error_name = type(error).__name__
    where = own_place(error)
    if isinstance(error, locate.ConfigError):
        return f"dperm: {error}{where}"
    if isinstance(error, SyntaxError):
        return f"dperm: {error.filename}:{error.lineno}: not valid Python: {error.msg}"
    if isinstance(error, OSError | RuntimeError | ValueError):
        return f"{error_name}: {error}{where}"
    if isinstance(error, ModuleNotFoundError) and extras.which(error.name):
        return f"dperm: {extras.explained(error)}"
    text = " ".join(str(error).split())
    return f"{error_name}: {text}{where}; {DEBUG}=1 shows where it was raised"


def own_place(error: BaseException) -> str:
    """The line of a user's own module that raised an error; empty if none did.

    It is one outside of this package, of Python and of what is installed.
    """
    place = ""
    package = str(Path(__file__).parent)
    folders = (
        package,
        str(locate.home() / "Snakefile"),
        sys.prefix,
        sys.base_prefix,
    )
    # A forked process sends its traceback as the text of the cause.
    for text in (
        str(error.__cause__),
        "".join(traceback.format_exception(error)),
    ):
        for file, line, function in [] if place else FRAME.findall(text):
            path = Path(file)
            if path.is_file() and not any(
                path.is_relative_to(top) for top in folders
            ):
                place = f" ({file}:{line}, in {function})"
    if place and SMALL_SEED.search(str(error)):
        place += ": seeds are below 2^63, and seed % 2**32 is small enough"
    return place


def run(function: Callable[..., Any], given: Any) -> Any:
    """Call a function with BLAS on one thread: its number of threads changes bits."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return function(given)


def _noted(command: Command, config: Any) -> Any:
    """Run a stage and note what it has written, findings that end it among them."""
    try:
        written = run(function_of(command), config)
    except SystemExit as ended:
        _note(config.output.results, getattr(ended, "written", None))
        raise
    _note(config.output.results, written)
    return written


def _note(folder: str, written: Any) -> None:
    """Note the files that a stage has written in the manifest of their results."""
    paths = [written] if isinstance(written, Path) else written
    if isinstance(paths, list) and all(
        isinstance(path, Path) for path in paths
    ):
        from dperm.workflow import manifest

        manifest.note(Path(folder), paths)


# --- papers, files and Snakemake's options --------------------------------------------


def _refuse_unknown(word: str) -> None:
    """Refuse an unknown plain word."""
    known = [*{name.split()[0]: None for name in COMMANDS}, *papers(), "all"]
    if re.fullmatch(r"[A-Za-z0-9_]+", word) and word not in known:
        near = hint(word, known).removeprefix(" ")
        raise RefusedCommandError(
            f"dperm: {word!r}: no command or target of that name {near}".rstrip()
            + "; dperm --help lists them"
        )


def refuse_no_cores(arguments: list[str]) -> None:
    """Refuse ``-j 0``, with which Snakemake waits for ever, ``-j -3`` and ``-j x``."""
    for word, after in pairwise([*arguments, ""]):
        option = CORES_VALUE.fullmatch(word)
        count = (option[2] or after) if option else ""
        is_number = re.fullmatch(r"[-+]?\d+", count)
        is_word = count in ("", "all", "unlimited") or count.startswith("-")
        if option and (int(count) < 1 if is_number else not is_word):
            raise RefusedCommandError(
                f"dperm: {option[1]}: expected 1 or more, found {count}"
            )


def at_scale(arguments: list[str]) -> list[str]:
    """Arguments with the scale of a file among them, where --config names none."""
    scales = [name for name in locate.available("scale") if name != "full"]
    files = [
        PurePath(word).parts for word in arguments if word.startswith(TOPS)
    ]
    found = [parts[1] for parts in files if parts[1:2] and parts[1] in scales]
    if not found or any(word.startswith("scale=") for word in arguments):
        return arguments
    given = arguments if "--config" in arguments else [*arguments, "--config"]
    at = given.index("--config") + 1
    return [*given[:at], f"scale={found[0]}", *given[at:]]


def refuse_unwritable(arguments: list[str]) -> None:
    """Refuse a folder that cannot be written, before anything is composed."""
    named = [b for a, b in pairwise(arguments) if a in ("--directory", "-d")]
    path = Path(*named[-1:])
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise RefusedCommandError(
            f"dperm: {path.absolute()} cannot be written ({error.strerror}): run in "
            "another folder with --directory"
        ) from error


def _interrupted(*_: Any) -> NoReturn:
    """Say once that the same command goes on; Snakemake ends its jobs."""
    from dperm.workflow import progress

    signal.signal(signal.SIGINT, signal.default_int_handler)
    progress.silenced.set()
    print(f"\n{INTERRUPTED}", file=sys.stderr, flush=True)
    raise KeyboardInterrupt


def _snakemake(arguments: list[str]) -> None:
    from dperm.workflow import targets

    refuse_no_cores(arguments)
    words = [*COMMANDS, *papers(), "all"]
    targets.refuse(arguments, words, locate.available("scale"))
    refuse_unwritable(arguments)
    arguments = at_scale(arguments)
    here = Path(sys.executable).parent  # jobs must find the same Python
    os.environ["PATH"] = f"{here}{os.pathsep}{os.environ.get('PATH', '')}"
    from snakemake.cli import main as snakemake
    from snakemake.logging import logger

    if not os.environ.get(DEBUG):
        logger.addFilter(shortened)
        # a log on a full disk is not told line by line
        logging.raiseExceptions = False
    root = locate.home()
    if {"{", "}"} & {*str(root)}:
        raise SystemExit(
            f"dperm: {root}: expected a path without braces, which Snakemake reads as "
            "names of values: move the checkout"
        )
    profile = str(root / "profiles" / "default")
    options = [
        "--snakefile",
        str(root / "Snakefile"),
        "--workflow-profile",
        profile,
    ]
    if not any(CORES.match(word) for word in arguments):
        options.append("--cores=all")
    if not any(OWN_OUTPUT.match(word) for word in arguments):
        from dperm.workflow import progress

        progress.register()
        options.append(f"--logger={progress.NAME}")
        signal.signal(signal.SIGINT, _interrupted)
    sys.argv = [
        "snakemake",
        *options,
        *arguments,
    ]  # the Snakefile reads targets here
    snakemake()


def shortened(record: logging.LogRecord) -> bool:
    """Replace a traceback that Snakemake would show by its last line."""
    lines = str(record.msg).strip().splitlines()
    if lines and lines[0].startswith("Traceback (most recent call last)"):
        record.msg = f"dperm: {lines[-1]}; {DEBUG}=1 shows where it was raised"
    return True


# --- help -----------------------------------------------------------------------------


def described() -> str:
    """Help of the command: its stages and papers, each with a line."""
    stages = {name: command.help for name, command in sorted(COMMANDS.items())}
    parts = [USAGE]
    for head, rows in {"commands": stages, "papers": papers()}.items():
        lines = [f"  {name:{WIDTH}} {text}" for name, text in rows.items()]
        parts.append("\n".join([f"{head}:", *lines]))
    return "\n\n".join([*parts, EXAMPLES])


def papers() -> dict[str, str]:
    """The papers of the configuration, with their titles; none where unreadable."""
    titles = {}
    for name in locate.available("paper"):
        path = locate.conf_file(locate.group_file("paper", name))
        try:
            content = yaml.load(
                path.read_bytes() if path else "", yaml.CBaseLoader
            )
        except yaml.YAMLError:  # reported later, by config.compose
            content = None
        titles[name] = (
            content.get("title", "") if isinstance(content, dict) else ""
        )
    return titles
