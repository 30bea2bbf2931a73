"""The ``dperm`` command as a process of its own, whose libraries are there already.

Half of what a command takes is the import of pandas, scipy and Numba. A server that has
imported them, and nothing has run in, forks each process.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

from dperm.cli import COMMANDS, main

# For a Python of its own: commands one after the other, from JSON.
SCRIPT = """
import json, sys
from dperm.cli import main
for words in json.loads(sys.argv.pop()):
    sys.argv[1:] = words
    main()
"""
SERVER = multiprocessing.get_context("forkserver")
OURS = {
    f"dperm.{each.function.partition(':')[0]}" for each in COMMANDS.values()
}
LIBRARIES = (
    "pytest",
    "pyarrow.parquet",
    "scipy.stats",
    "hydra",
    "snakemake.cli",
)
SERVER.set_forkserver_preload([*LIBRARIES, *sorted(OURS)])


def python(
    *words: str | Path, cwd: Path | None = None, **env: str
) -> CompletedProcess[str]:
    """Run Python in a process of its own and keep what it prints."""
    command, environment = (
        [sys.executable, *map(str, words)],
        {**os.environ, **env},
    )
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def dperm(
    *words: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> CompletedProcess[str]:
    """Run the command and keep what it prints; ``env`` besides what is set here."""
    return in_turn(list(map(str, words)), cwd=cwd, env=env)


def in_turn(
    *given: list[str],
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> CompletedProcess[str]:
    """Run several commands one after the other in one process."""
    place, environment = str(cwd or Path.cwd()), {**os.environ, **(env or {})}
    with TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("stdout", "stderr")]
        run = SERVER.Process(
            target=_run, args=(given, place, environment, paths)
        )
        run.start()
        run.join()
        out, error = (path.read_text() for path in paths)
    return CompletedProcess(
        ["dperm", *given[-1]], run.exitcode or 0, out, error
    )


def _run(
    given: tuple[list[str], ...],
    place: str,
    environment: dict[str, str],
    paths: list[Path],
) -> None:
    for stream, path in zip((sys.stdout, sys.stderr), paths, strict=True):
        with open(path, "wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    os.chdir(place)
    os.environ.clear()
    os.environ.update(environment)
    # a folder of tests named as an option's word would be in keys
    tests = str(Path(__file__).parent)
    sys.path[:] = [*filter(tests.__ne__, sys.path), place]
    for words in given:
        sys.argv = ["dperm", *words]
        main()
