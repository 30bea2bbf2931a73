"""The code that a result depends on, and its digest.

An entry point is a module, or a name in a module such as
``dperm.problems.optimum:solve``. Its code is what it reaches through every import,
also through imports inside functions:

- Of its own module only the statements count that the name reaches, so that an edit of
  one sweep leaves the others as they are. So it is in a package or a module that says
  ``IN_KEYS = "names"``, because its modules serve many stages.
- Of any other module of this package all statements count.
- Of a module outside of this package, such as a user's paper or solver, all statements
  count, the modules beside it that it imports or names, and the files that it names. A
  module that opens files or imports modules by computed names counts with its whole
  folder.

Docstrings and comments do not count, nor annotations of plain functions of this
package. Imports of installed libraries are not followed, nor those of modules that say
``IN_KEYS = "nothing"``: these make no numbers, or what comes out of them is itself in
every key. Of libraries the version counts. A module that is looked up at run time (such
as a solver named in a YAML) is not reached from the code: the caller that looks it up
passes it as a further entry.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import (
    PackageNotFoundError,
    packages_distributions,
    version,
)
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import dperm
from dperm.names import ConfigError
from dperm.storage import statements
from dperm.storage.answers import StoredAnswers
from dperm.storage.statements import Import, Statement

PACKAGE = Path(dperm.__file__).parent
IN_KEYS = "nothing"  # keys come out of it
# What a module of this package, or a package of modules, says of itself.
SAID = re.compile(r'^IN_KEYS = "(\w+)"', re.MULTILINE)
NOTHING = "nothing"  # it makes no numbers
NAMES = "names"  # it serves many stages: only the names count that are reached
# Its functions are papers', and read settings by their names
SETTINGS = "settings"
# Distributions that compute, store and summarise numbers anywhere.
COUNTED = (
    "numpy",
    "numba",
    "llvmlite",
    "scipy",
    "dp-accounting",
    "pandas",
    "scikit-learn",
    "pyarrow",
)
PROVIDERS = {
    "PIL": "pillow",
    "arff": "liac-arff",
    "hydra": "hydra-core",
    "vl_convert": "vl-convert-python",
    "yaml": "PyYAML",
}
# Names that look up others by a text; the whole module of code that uses one counts.
REFLECTIVE = frozenset(
    ("globals", "locals", "vars", "eval", "exec", "__import__", "__dict__")
)
# Names that open files or modules, which may be computed.
OPENING = frozenset(
    (
        "open",
        "read_text",
        "read_bytes",
        "iterdir",
        "glob",
        "rglob",
        "listdir",
        "scandir",
        "loadtxt",
        "genfromtxt",
        "fromfile",
        "memmap",
        "CDLL",
        "read_csv",
        "read_json",
        "read_excel",
        "read_pickle",
        "read_feather",
        "import_module",
        "__import__",
        "exec",
        "eval",
        "run_path",
        "run_module",
        "spec_from_file_location",
        "iter_modules",
        "walk_packages",
        "files",
        "get_data",
        "getsource",
        "__file__",
    )
)
# Folders beside a user's module that hold no source of numbers.
ASIDE = frozenset(
    ("conf", "results", "figures", "logs", "data", "build", "docs")
)
MAX_FILES = 5000  # of a folder that counts as a whole
READ = StoredAnswers(statements.read)  # a second of all that a run's keys take


class UnknownNameError(LookupError):
    """An entry point that does not exist."""


class UnfollowedError(ValueError):
    """A user's module depends on more than can be followed; the text says on what."""


class _Unwatched:
    """A context in which keys are made, so that nothing that is read counts."""

    is_on = 0  #: how many of them are open

    def __enter__(self) -> None:
        self.is_on += 1

    def __exit__(self, *_: object) -> None:
        self.is_on -= 1


unwatched = _Unwatched()


class Code(NamedTuple):
    """Statements of a module."""

    digest: str  #: of them and of the files that they name
    words: frozenset[str]  #: strings in them
    attributes: frozenset[str]  #: that they read
    uses: frozenset[str]  #: entry points that they may reach
    files: frozenset[Path]  #: that they may open


@functools.cache
def digest(*entries: str) -> str:
    """Digest of the code behind entry points and of the libraries' versions.

    Raises
    ------
    UnknownNameError
        If there is no such module or name.
    UnfollowedError
        If a user's module has too many files beside it, any of which it may open.
    """
    reached = _reached_code(entries)
    lines = sorted(f"{name} {code.digest}" for name, code in reached.items())
    uses = chain.from_iterable(code.uses for code in reached.values())
    used = frozenset(use.partition(".")[0] for use in uses)
    text = "\n".join([*lines, repr({**versions(), **_further(used)})])
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def reached(*entries: str) -> set[str]:
    """The entry points and all that they reach: modules, and names in modules.

    Raises as ``digest``.
    """
    return set(_reached_code(entries))


@functools.cache
def words(*entries: str) -> frozenset[str]:
    """All strings in the code behind entry points. Raises as ``digest``."""
    codes = _reached_code(entries).values()
    return frozenset(chain.from_iterable(code.words for code in codes))


def lines(*entries: str) -> dict[Path, set[int]]:
    """The lines of each file of which an edit changes the digest of entry points.

    Comments, docstrings and annotations in them do not count. Raises as ``digest``.
    """
    numbers_of: dict[Path, set[int]] = {}
    for reached_entry in _reached_code(entries):
        module, _, name = reached_entry.partition(":")
        path = _path(module)
        assert path is not None
        is_whole = not name or is_outside(path)
        body = _module(module).body if is_whole else _reached(module, name)
        line_numbers = numbers_of.setdefault(path, set())
        for first, last in chain.from_iterable(
            statement.lines for statement in body
        ):
            line_numbers.update(range(first, last + 1))
    return numbers_of


@functools.cache
def fields_read(*entries: str) -> frozenset[str]:
    """Names of attributes in code that may read the configuration, as ``loss``.

    Each is there also with the name before it, as ``problem.loss``.

    It is that of users and papers, and that of which only the names count that are
    reached.
    Raises as ``digest``.
    """
    attributes = set[str]()
    for reached_entry, code in _reached_code(entries).items():
        if (
            ":" in reached_entry
            or says(reached_entry, SETTINGS)
            or is_outside(_path(reached_entry))
        ):
            attributes |= code.attributes
    return frozenset(attributes)


@functools.cache
def own_words(*entries: str) -> frozenset[str]:
    """All strings in code of users and papers, and in the entry points themselves."""
    strings = set[str]()
    for reached_entry, code in _reached_code(entries).items():
        if (
            reached_entry in entries
            or says(reached_entry, SETTINGS)
            or is_outside(_path(reached_entry.partition(":")[0]))
        ):
            strings |= code.words
    return frozenset(strings)


def files(*entries: str) -> set[Path]:
    """All files that the code behind entry points names. Raises as ``digest``."""
    codes = _reached_code(entries).values()
    return set(chain.from_iterable(code.files for code in codes))


@functools.cache
def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that compute."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"python": python} | {name: _version(name) for name in COUNTED}


@functools.cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # an extra that is not installed
        return ""


@functools.cache
def _further(tops: frozenset[str]) -> dict[str, str]:
    """Versions of the other libraries among imported modules without a dot."""
    counted = {
        *COUNTED,
        "dperm",
        "sklearn",
        "dp_accounting",
        *sys.stdlib_module_names,
    }
    packages = sorted(top for top in tops - counted if top and not is_own(top))
    return {top: _version(top) or _version_of(top) for top in packages}


@functools.cache
def _version_of(top: str) -> str:
    """Versions of the distributions that provide a module, which takes a second."""
    if top in PROVIDERS or _spec(top) is None:
        return _version(PROVIDERS.get(top, top))
    return ", ".join(
        map(_version, sorted({*packages_distributions().get(top, ())}))
    )


def forget() -> None:
    """Read sources again; they are assumed fixed during a process."""
    stored: list[Any] = [
        digest,
        versions,
        functions,
        fields_read,
        own_words,
        words,
        _reached_code,
        _code,
        _reached,
        _module,
        _places,
        _said,
        _counts,
        _spec,
        _path,
        _further,
        _version,
        _version_of,
        _beside,
        _named_files,
    ]
    for cached in stored:
        cached.cache_clear()


@functools.cache
def functions(module: str) -> dict[str, ast.arguments]:
    """The public functions of a module with their arguments, without importing it."""
    path = _path(module)
    body: list[ast.stmt] = []
    if path is not None:
        with _naming(path):
            body = ast.parse(path.read_text(encoding="utf-8")).body
    definitions = (node for node in body if isinstance(node, ast.FunctionDef))
    return {
        node.name: node.args
        for node in definitions
        if not node.name.startswith("_")
    }


@functools.cache
def _reached_code(entries: tuple[str, ...]) -> dict[str, Code]:
    """The code of entry points and of all that they reach, by their names."""
    names = (entry.partition(".")[0].partition(":")[0] for entry in entries)
    tops = frozenset(("dperm", *names))
    reached: dict[str, Code] = {}
    todo = [*entries]
    with unwatched:
        # a job that reads its code for a key does not depend on it
        while todo:
            reached_entry = todo.pop()
            if reached_entry not in reached:
                code = _code(*reached_entry.split(":"))
                reached[reached_entry] = code
                todo += [use for use in code.uses if _counts(use, tops)]
    return reached


@functools.cache
def _counts(entry: str, tops: frozenset[str]) -> bool:
    """Whether an entry point is own code and no plumbing."""
    module = entry.partition(":")[0]
    if (
        _said(module) == NOTHING
        or module.partition(".")[0] in sys.stdlib_module_names
    ):
        return False
    return _path(module) is not None and (
        module.partition(".")[0] in tops or is_own(module)
    )


def is_own(module: str) -> bool:
    """Whether a module is plain source on Python's path, and no installed library."""
    path = _path(module.partition(":")[0])
    return path is not None and not {"site-packages", "dist-packages"} & {
        *path.parts
    }


def is_outside(path: Path | None) -> bool:
    """Whether a source file lies outside of this package."""
    return path is not None and PACKAGE not in path.parents


@functools.cache
def _said(module: str) -> str:
    """What a module of this package says of itself in ``IN_KEYS``; empty if nothing."""
    path = _path(module)
    if path is None or is_outside(path):
        return ""
    match = SAID.search(path.read_text(encoding="utf-8"))
    return match[1] if match else ""


def says(entry: str, what: str) -> bool:
    """Whether the module of an entry point, or a package that it is in, says this."""
    names = entry.partition(":")[0].split(".")
    packages = (".".join(names[:count]) for count in range(1, len(names) + 1))
    return any(_said(package) == what for package in packages)


def source(module: str) -> Path | None:
    """The file of a module; None if there is none."""
    path = _path(module)
    return path.resolve() if path is not None else None


# --- one module -----------------------------------------------------------------------


@functools.cache
def _code(module: str, name: str = "") -> Code:
    path = _path(module)
    if path is None:
        raise UnknownNameError(f"{module}: no such module")
    outside = is_outside(path)
    counted = _module(module).body
    if name:
        reached = _reached(module, name)
        if not outside:
            counted = reached
    strings = _union(statement.strings for statement in counted)
    attributes = _union(statement.attributes for statement in counted)
    named_files = {
        *chain.from_iterable(_named_files(path, word) for word in strings)
    }
    package = (
        module if path.name == "__init__.py" else module.rpartition(".")[0]
    )
    uses = {*_uses(counted, package)}
    if outside and not {"site-packages", "dist-packages"} & {*path.parts}:
        uses |= {word for word in strings if is_beside(word)}
        if _union(statement.names for statement in counted) & OPENING:
            named_files |= _beside(path.parent)
    text = ", ".join(statement.text for statement in counted)
    content = hashlib.sha256(f"{_BEFORE}{text}{_AFTER}".encode())
    for file in sorted(named_files):
        content.update(f"\n{file.name} ".encode() + _content(file))
    digest = content.hexdigest()
    return Code(
        digest, strings, attributes, frozenset(uses), frozenset(named_files)
    )


# What ``ast.dump`` writes before and after the statements of a module.
_BEFORE, _AFTER = ast.dump(ast.Module([ast.Pass()], [])).split(
    ast.dump(ast.Pass())
)


def _union(parts: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset(chain.from_iterable(parts))


def _content(file: Path) -> bytes:
    """What a file holds; nothing if it cannot be read, as no job can read it either.

    A named pipe or a device holds nothing; to read it might never end.
    """
    try:
        return file.read_bytes() if file.is_file() else b""
    except OSError:
        return b""


def is_beside(word: str) -> bool:
    """Whether a text names a user's own module, as for ``import_module``."""
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", word):
        return False
    return (
        word not in sys.stdlib_module_names
        and is_own(word)
        and is_outside(_path(word))
    )


@functools.cache
def _named_files(path: Path, word: str) -> frozenset[Path]:
    """The files that a string of a module names, by a path from its folder.

    A folder is named with all its files. The module's own file is not among them: its
    comments count only where it opens files.
    """
    if not word or len(word) > 200 or "\n" in word or "\0" in word:
        return frozenset()
    outside = is_outside(path)
    file = path.parent / word
    if outside and not file.is_file() and "." in word:
        file = Path(word)
    named_files = set[Path]()
    if file == path or (file.suffix in (".py", ".yaml") and not outside):
        return frozenset()
    if file.is_file():
        named_files.add(file)
    elif not outside and re.fullmatch(r"\w+_files", word) and file.is_dir():
        named_files |= {below for below in file.rglob("*") if below.is_file()}
    return frozenset(file for file in named_files if file.suffix != ".pyc")


@functools.cache
def _beside(folder: Path) -> set[Path]:
    """All source and data files in a user's folder and below it.

    Raises UnfollowedError if there are very many.
    """
    neighbours: set[Path] = set()
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in ASIDE and not name.startswith((".", "__", "venv"))
        )
        paths = (Path(top, name) for name in names if not name.startswith("."))
        neighbours |= {
            path for path in paths if path.suffix not in (".pyc", ".yaml")
        }
        if len(neighbours) > MAX_FILES:
            raise UnfollowedError(
                f"{folder}: a module here opens files by computed names, and has more "
                f"than {MAX_FILES} files beside it: write the names of those that it "
                "reads as plain texts, or move it to a folder of its own"
            )
    return neighbours


class Module(NamedTuple):
    """The top-level statements of a module."""

    body: list[Statement]
    parts: list[Statement]  #: the same, with one import for each imported name


@functools.cache
def _module(module: str) -> Module:
    """What a module holds; ConfigError if its text is no module."""
    path = _path(module)
    assert path is not None
    with unwatched, _naming(path):
        body, parts = READ(path.read_text(encoding="utf-8"), is_outside(path))
    return Module(
        [Statement(*row) for row in body], [Statement(*row) for row in parts]
    )


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file whose text cannot be parsed."""
    try:
        yield
    except SyntaxError as error:
        place = f"{path}:{error.lineno}"
        raise ConfigError(f"{place}: not valid Python: {error.msg}") from error
    except ValueError as error:  # of bytes that no text has
        raise ConfigError(f"{path}: not valid Python: {error}") from error


@functools.cache
def _reached(module: str, name: str) -> list[Statement]:
    """The top-level statements of a module that a name reaches within it.

    Those that act when the module is imported, as a registration does, are always
    among them. All of them are, if one of them looks up names by texts.
    """
    parts = _module(module).parts
    places_of = _places(module)
    if name not in places_of:
        raise UnknownNameError(f"{module}:{name}: no such name")
    reached = {
        place for place, statement in enumerate(parts) if statement.acts
    }
    todo = [
        name,
        *chain.from_iterable(parts[place].mentioned for place in reached),
    ]
    while todo:
        for place in places_of.get(todo.pop(), ()):
            if place not in reached:
                reached.add(place)
                todo += parts[place].mentioned
    body = [parts[place] for place in sorted(reached)]
    is_plain = all(
        REFLECTIVE.isdisjoint(statement.names) for statement in body
    )
    return body if is_plain else _module(module).body


@functools.cache
def _places(module: str) -> dict[str, list[int]]:
    """The names that a module's statements bind, each with the places of these."""
    places: dict[str, list[int]] = {}
    for place, statement in enumerate(_module(module).parts):
        for name in statement.bound:
            places.setdefault(name, []).append(place)
    return places


# --- what code imports ----------------------------------------------------------------


def _uses(counted: list[Statement], package: str) -> Iterator[str]:
    """Entry points that code may reach by its imports."""
    attributes: dict[str, set[str]] = {}
    for statement in counted:
        for name, read in statement.read_of.items():
            attributes.setdefault(name, set()).update(read)
    bare = _union(statement.bare for statement in counted)
    for row in chain.from_iterable(statement.imports for statement in counted):
        imported = Import(*row)
        names = (
            None
            if imported.local in bare
            else attributes.get(imported.local, set())
        )
        if not imported.name:
            is_dotted = not imported.alias and "." in imported.module
            yield from _of_module(
                imported.module, None if is_dotted else names
            )
            continue
        above = (
            package.split(".")[: 1 - imported.level or None]
            if imported.level
            else []
        )
        source_module = ".".join(
            [*above, *([imported.module] if imported.module else [])]
        )
        inside = f"{source_module}.{imported.name}"
        if imported.name == "*":
            yield from _of_module(source_module, None)
        elif _path(inside):
            yield from _of_module(inside, names)
        else:
            yield from _of_module(source_module, {imported.name})


def _of_module(module: str, names: set[str] | None) -> Iterator[str]:
    """Entry points in a module of which some names are used; of None, any."""
    if module == "dperm":  # which imports what it offers at its first use
        used = dperm.PLACES if names is None else names & dperm.PLACES.keys()
        yield from {dperm.PLACES[name] for name in used}
    elif names is None or not says(module, NAMES):
        yield module
    else:
        for name in names:
            if _path(f"{module}.{name}"):
                yield f"{module}.{name}"
            else:
                yield f"{module}:{name}" if _has(module, name) else module


def _has(module: str, name: str) -> bool:
    """Whether a module of this package has a statement that binds a name."""
    if _said(module) == NOTHING:
        return True
    return name in _places(module)


# --- where modules are ----------------------------------------------------------------


@functools.cache
def _path(module: str) -> Path | None:
    """The source file of a module; None if there is none."""
    spec = _spec(module)
    origin = (spec.origin if spec else None) or ""
    return Path(origin) if origin.endswith(".py") else None


@functools.cache
def _spec(module: str) -> ModuleSpec | None:
    """Where a module is, found without importing the package that it is in."""
    package, _, _ = module.rpartition(".")
    if module in sys.stdlib_module_names:
        return None
    # Packages of papers know where a user's own papers are.
    if not package or _said(package) == SETTINGS:
        try:
            return importlib.util.find_spec(module)
        except (ImportError, ValueError):
            return None
    above = _spec(package)
    folders = above.submodule_search_locations if above else None
    return (
        PathFinder.find_spec(module, folders) if folders is not None else None
    )
