"""The ``dperm`` command: one stage by itself, or papers and files through Snakemake.

``COMMANDS`` is the table of what is ours; ``python -m dperm tune`` is ``dperm tune``.
What follows a stage is ``key=value``, what follows anything else is Snakemake's, which
gets the Snakefile and the profile that came with the package.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import logging
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from dperm import __version__
from dperm.core.experiment import locate

Stage = Callable[..., Any]


class Command(NamedTuple):
    """A command of our own: what it does, ``module:function``, and how it is called."""

    help: str
    function: str
    is_stage: bool = True  # of a configuration; False: it reads the command line itself
    solves: bool = True  # uses problem and solver, which are checked; False: draws


COMMANDS: dict[str, Command] = {
    "fetch": Command(
        "fetch the data set of a problem", "pipeline.inputs:fetch_required"
    ),
    "prepare": Command("prepare the arrays of a problem", "pipeline.inputs:prepare"),
    "optimum": Command(
        "solve a problem without privacy, with a certificate",
        "pipeline.inputs:optimum",
    ),
    "tune": Command(
        "run a solver on a problem over the grid of a paper",
        "pipeline.stages:tune",
    ),
    "evaluate": Command(
        "run the chosen settings on fresh seeds", "pipeline.stages:evaluate"
    ),
    "solve": Command("tune, then evaluate", "pipeline.stages:solve"),
    "timing": Command(
        "run again, with nothing beside, what a paper shows against time",
        "pipeline.stages:timing",
        solves=False,
    ),
    "sweep": Command("run the sweeps of a paper", "pipeline.stages:sweep"),
    "figure": Command(
        "draw the figures of a paper", "pipeline.products:figure", solves=False
    ),
    "table": Command(
        "make the tables of a paper", "pipeline.products:table", solves=False
    ),
    "draw": Command(
        "make those of some figures and tables that are not up to date",
        "pipeline.products:draw",
        solves=False,
    ),
    "audit": Command(
        "audit a solver's privacy, or any function's: audit module:fit --epsilon 1",
        "pipeline.auditing:audit",
    ),
    "try": Command(
        "compare private methods on a file of yours, at one true epsilon",
        "compare.command:main",
        is_stage=False,
    ),
    "privacy": Command(
        "what a setting costs, and the noise it needs", "pipeline.prices:report"
    ),
    "complete": Command(
        "say whether a paper is complete, and write its manifest",
        "pipeline.completion:complete",
        solves=False,
    ),
    "claims": Command(
        "judge the claims of the papers", "report.judging:claims", solves=False
    ),
    "report": Command("write the report", "report.page:report", solves=False),
    "readme": Command(
        "put the scorecard and three figures into README.md",
        "report.scorecard:readme",
        solves=False,
    ),
    "bundle": Command(
        "pack the data sets of the papers for a machine without a network",
        "pipeline.inputs:bundle",
        solves=False,
    ),
    "results": Command(
        "pack the rows of a full run into one archive, or unpack one",
        "pipeline.packed:main",
        is_stage=False,
    ),
    "crate": Command(
        "write runs as a Workflow Run RO-Crate, for an archive",
        "pipeline.crate:main",
        is_stage=False,
    ),
    "adopt": Command(
        "keep lanes of older code where a sample has the same bits",
        "pipeline.adopt:adopt",
    ),
    "plan": Command(
        "predict how long a run takes on so many cores, and why",
        "pipeline.forecast:main",
        is_stage=False,
    ),
    "compare": Command(
        "compare two trees of results row by row", "pipeline.compare:main", False
    ),
}
DEBUG = "DPERM_DEBUG"  # set to anything: a failed stage shows its traceback
FUNCTION = Command(  # dperm audit module:function
    COMMANDS["audit"].help, "audit.blackbox.command:main", is_stage=False
)
PEERS = {  # dperm arena --peers: other libraries beside a paper's methods
    "arena": Command(
        "run other libraries on the same problems", "papers.arena.peers:run"
    )
}
ON_ONE = {  # dperm arena problem=mine: a paper on a single problem
    "arena": Command(
        "run every private method on one problem, and say which to take",
        "papers.arena.single:recommend",
    ),
}
GROUPS = ("paper", "problem", "solver", "scale")
KEYS = """
  any key of the configuration: product=figure1 problem.privacy.epsilon=2 seed=7
flags, which are Hydra's:
  --cfg job   show the configuration, run nothing
  -m          every combination of several values: dperm tune -m solver=dp_cd,dp_sgd
"""
EXAMPLES = """
examples:
  dperm dpcd -j 2                            a paper on two cores
  dperm -n all                               what would run, and why
  dperm figures/dpcd/figure1.svg -j 2        one figure and what it needs
  dperm arena problem=diabetes               every private method; which to take
  dperm try problem=mine.csv target=y        a few of them, and yours, on your data
  dperm tune problem=diabetes solver=dp_cd   one stage; dperm tune --help says more
  dperm audit mine:fit --epsilon 1           is a function of mine as private as that?
completion of names, in bash or zsh, and in fish:
  eval "$(register-python-argcomplete dperm)"
  register-python-argcomplete --shell fish dperm | source
Noise is made of seeded doubles: for study, not for the release of anything private.
"""


def main() -> None:
    """Run a command of ours in this process, or give everything to Snakemake."""
    try:
        _run(sys.argv[1:])
    except locate.ConfigError as error:
        raise SystemExit(f"ConfigError: {error}") from error


def _run(arguments: list[str]) -> None:
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser())
    if not arguments or arguments[0] in ("-h", "--help"):
        parser().print_help()
    elif arguments[0] == "--version":
        print(f"dperm {__version__}")
    elif arguments[0] in PEERS and "--peers" in arguments:
        _on_paper(PEERS, [one for one in arguments if one != "--peers"])
    elif _names_problem(arguments):
        _on_paper(ON_ONE, arguments)
    elif arguments[0] in COMMANDS:
        sys.argv = [f"dperm {arguments[0]}", *arguments[1:]]
        command = FUNCTION if _names_function(arguments) else COMMANDS[arguments[0]]
        if command.is_stage and {"-h", "--help"} & {*arguments[1:]}:
            print(stage_help(arguments[0]))
        elif command.is_stage:
            run_stage(command, arguments[1:])
        else:
            run_alone(command)
    else:
        _refuse_unknown(arguments[0])
        _snakemake(arguments)


def _names_function(arguments: list[str]) -> bool:
    """Whether an audit is asked of ``module:function``, and not of a solver."""
    return arguments[0] == "audit" and any(
        ":" in word and "=" not in word for word in arguments[1:]
    )


def _on_paper(known: dict[str, Command], arguments: list[str]) -> None:
    """Run a command of a paper's own."""
    paper, rest = arguments[0], arguments[1:]
    sys.argv = [f"dperm {paper}", *rest]
    run_stage(known[paper], [f"paper={paper}", *rest])


def _names_problem(arguments: list[str]) -> bool:
    """Whether a paper is asked for on a single problem."""
    return arguments[0] in ON_ONE and any(
        word.startswith("problem=") for word in arguments[1:]
    )


# --- stages ---------------------------------------------------------------------------


def function_of(command: Command) -> Stage:
    """The function behind a command."""
    module, _, name = command.function.partition(":")
    return getattr(importlib.import_module(f"dperm.{module}"), name)


def run_stage(command: Command, arguments: list[str]) -> None:
    """Run one stage on the configuration of the command line.

    Hydra's own flags (``--cfg job``, ``-m`` for multirun) work as usual.
    Whatever goes wrong ends with one line and exit code 1; the environment variable
    ``DPERM_DEBUG`` has it end with a traceback.
    """
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("dperm").setLevel(logging.INFO)
    logging.captureWarnings(True)
    if any(argument.startswith("-") for argument in arguments):
        from dperm import flags

        flags.run(functools.partial(_composed, command), arguments)
    else:
        _composed(command, arguments)


def _composed(command: Command, overrides: list[str]) -> None:
    from dperm.core.experiment import config

    place = ""
    try:
        made = config.compose(overrides)
        if command.solves:
            from dperm.pipeline import checks  # brings the solvers and what they need

            place = _place(command, made)
            checks.check(made)
        run(function_of(command), made)
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        raise SystemExit(_said(error, place)) from error


def _place(command: Command, made: Any) -> str:
    """Where the size of what a stage holds is decided."""
    if command is COMMANDS["sweep"]:
        swept = "sweeps" if made.product is None else f"sweeps.{made.product}"
        return f"conf/paper/{made.paper.name}/paper.yaml: {swept}: "
    return f"conf/problem/{made.problem.name}.yaml: dataset: "


def _said(error: Exception, place: str) -> str:
    """What is said of a failed stage: a line, or several that were meant as such."""
    kind, where = type(error).__name__, own_place(error)
    if isinstance(error, locate.ConfigError | OSError | RuntimeError | ValueError):
        return f"{kind}: {error}{where}"
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"MemoryError: {place}{text or 'it does not fit'}; expected smaller data"
    return f"{kind}: {text}{where}; {DEBUG}=1 shows where it was raised"


def own_place(error: BaseException) -> str:
    """Where in a module of the reader's own an error arose; empty if in none."""
    own, found = locate.own_conf(), ""
    for frame in traceback.extract_tb(error.__traceback__):
        if own is not None and own.parent in Path(frame.filename).parents:
            found = f" ({frame.filename}:{frame.lineno}, in {frame.name})"
    return found


def run_alone(command: Command) -> None:
    """Run a command that reads the command line itself, BLAS on one thread."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        function_of(command)()


def run(stage: Stage, config: Any) -> Any:
    """Run a stage with BLAS on one thread: its results would depend on their number."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return stage(config)


# --- papers, files and Snakemake's options --------------------------------------------


def _refuse_unknown(word: str) -> None:
    """A plain word must be a stage or a paper; options and files are Snakemake's."""
    known = [*COMMANDS, *papers(), "all"]
    if re.fullmatch(r"[A-Za-z0-9_]+", word) and word not in known:
        raise SystemExit(
            f"dperm: {word!r}: expected one of {', '.join(known)}"
            f"{locate.hint(word, known)}"
        )


def _snakemake(arguments: list[str]) -> None:
    here = Path(sys.executable).parent  # jobs must find the same Python
    os.environ["PATH"] = f"{here}{os.pathsep}{os.environ.get('PATH', '')}"
    from snakemake.cli import main as snakemake

    root = locate.home()
    profile = str(root / "profiles" / "default")
    given = ["--snakefile", str(root / "Snakefile"), "--workflow-profile", profile]
    sys.argv = ["snakemake", *given, *arguments]  # where the Snakefile finds targets
    snakemake()


# --- help and completion --------------------------------------------------------------


def stage_help(name: str) -> str:
    """What a stage does, and what may follow it."""
    names = {f"{group}=": ", ".join(locate.available(group)) for group in GROUPS}
    given = textwrap.indent("\n".join(_list(names)), "  ")
    return (
        f"usage: dperm {name} [key=value ...]\n\n{COMMANDS[name].help}\n\n{given}{KEYS}"
    )


def _list(names: dict[str, str]) -> Iterator[str]:
    for name, text in names.items():
        space = " " * 10
        yield textwrap.fill(f"{name:10}{text}", 86, subsequent_indent=space)


def papers() -> dict[str, str]:
    """The papers of the configuration, with their titles."""
    return {name: _title(name) for name in locate.available("paper")}


def _title(paper: str) -> str:
    path = locate.conf_file(locate.group_file("paper", paper))
    try:
        content = yaml.load(path.read_text(), yaml.CSafeLoader) if path else None
    except yaml.YAMLError:  # composing says what is wrong, and where
        content = None
    return str(content.get("title", "")) if isinstance(content, dict) else ""


def parser() -> argparse.ArgumentParser:
    """The command line, as ``--help`` and completion see it."""
    lists = {
        "stages": {name: command.help for name, command in sorted(COMMANDS.items())},
        "papers, or all": papers(),
    }
    text = "\n".join(
        "\n".join([f"{head}:", *(f"  {name:14} {line}" for name, line in made.items())])
        for head, made in lists.items()
    )
    made = argparse.ArgumentParser(
        "dperm", description=text, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    made.add_argument("--version", action="version", version=f"dperm {__version__}")
    first = made.add_argument("what", help="a stage, a paper, all, or a file to make")
    rest = made.add_argument(
        "rest", nargs="*", help="key=value, or Snakemake's options"
    )
    known = [name for names in lists.values() for name in names]
    first.completer = lambda **_: [*known, "all"]  # type: ignore[attr-defined]
    rest.completer = _values  # type: ignore[attr-defined]
    return made


def _values(prefix: str, **_: object) -> list[str]:
    """``key=value`` for the groups of the configuration."""
    group = prefix.partition("=")[0]
    if group not in GROUPS:
        return [f"{name}=" for name in GROUPS]
    return [f"{group}={name}" for name in locate.available(group)]
