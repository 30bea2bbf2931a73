"""The ``dperm`` command: a stage by itself, or papers and files through Snakemake.

What follows a stage is ``key=value``, what follows anything else is Snakemake's, which
gets the Snakefile and the profile that came with the package.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import runpy
import sys
from pathlib import Path

import yaml

from dperm import locate

GROUPS = ("paper", "problem", "solver", "scale")
EXAMPLES = """
examples:
  dperm dpcd -j 2                            a paper on two cores
  dperm -n all                               what would run, and why
  dperm figures/dpcd/figure1.svg -j 2        one figure and what it needs
  dperm tune problem=diabetes solver=dp_cd   one stage; dperm tune --help says more
completion of names, in bash or zsh, and in fish:
  eval "$(register-python-argcomplete dperm)"
  register-python-argcomplete --shell fish dperm | source
"""


def stages() -> dict[str, str]:
    """The modules of the package that are commands, with the first line of each."""
    folder = Path(__file__).parent
    found = [*folder.glob("[a-z]*.py"), *folder.glob("[a-z]*/__main__.py")]
    named = {path.parent.name if path.stem == "__main__" else path.stem: path
             for path in found}  # fmt: skip
    return {
        name: _first_line(path)
        for name, path in sorted(named.items())
        if 'if __name__ == "__main__":' in path.read_text()
    }


def _first_line(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return text.split("\n")[0].split(": ``")[0].rstrip(".:")


def papers() -> dict[str, str]:
    """The papers of the configuration, with their titles."""
    return {name: _title(name) for name in locate.available("paper")}


def _title(paper: str) -> str:
    path = locate.conf_file(f"paper/{paper}.yaml")
    try:
        content = yaml.safe_load(path.read_text()) if path else None
    except yaml.YAMLError:  # composing says what is wrong, and where
        content = None
    return str(content.get("title", "")) if isinstance(content, dict) else ""


def parser() -> argparse.ArgumentParser:
    """The command line, as ``--help`` and completion see it."""
    lists = {"stages": stages(), "papers, or all": papers()}
    text = "\n".join(
        "\n".join([f"{head}:", *(f"  {name:14} {line}" for name, line in made.items())])
        for head, made in lists.items()
    )
    made = argparse.ArgumentParser(
        "dperm", description=text, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
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


def main() -> None:
    """Run a stage in this process, or give everything to Snakemake."""
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
    elif arguments[0] in stages():
        sys.argv = [f"dperm {arguments[0]}", *arguments[1:]]
        runpy.run_module(f"dperm.{arguments[0]}", run_name="__main__")
    else:
        _refuse_unknown(arguments[0])
        _snakemake(arguments)


def _refuse_unknown(word: str) -> None:
    """A plain word must be a stage or a paper; options and files are Snakemake's."""
    known = [*stages(), *papers(), "all"]
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
    sys.argv[0] = "snakemake"
    snakemake([*given, *arguments])


if __name__ == "__main__":
    main()
