"""The code that a result depends on, and its digest.

An entry point is a module, or a name in a module such as
``dperm.core.erm.optimum:solve``. Its closure is all of every module that it imports,
directly or not, including imports inside functions. Of its own module only the
statements count that the name reaches, so that an edit of one sweep leaves the others
as they are. Docstrings and comments do not count; CSV files next to a module that it
names do.

Own code is this package and all other plain source on Python's path, such as a user's
paper or solver and the modules next to it; an installed package counts if it has an
entry point. The closure stops at ``PLUMBING`` and ``PACKAGES``, which compute no
numbers. A module that is looked up at run time (such as a solver named in a YAML) is
not reached from the code: the caller that looks it up passes it as a further entry.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

EXPERIMENT = "dperm.core.experiment"
PLUMBING = (  # modules
    *("dperm", "dperm.cli", "dperm.extras"),
    *(f"{EXPERIMENT}.{name}" for name in ("config", "locate", "schema", "validation")),
    *(f"{EXPERIMENT}.{name}" for name in ("files",)),
    # Keys of results contain the digests of the arrays that these load.
    *("dperm.data", "dperm.data.fetching", "dperm.data.preparing"),
)
PACKAGES = ("dperm.store.", "dperm.pipeline.")  # with all their modules
# Distributions that do arithmetic, means and deviations of tables among it. Libraries
# that draw compute no numbers, and data have their own digests.
ARITHMETIC = (
    *("numpy", "numba", "llvmlite", "scipy", "dp-accounting"),
    *("pandas", "pyarrow", "scikit-learn"),
)


class UnknownNameError(LookupError):
    """An entry point that does not exist."""


class Code(NamedTuple):
    """Statements of a module."""

    digest: str  #: of them and of the tables that they name
    words: frozenset[str]  #: strings in them
    imports: frozenset[str]  #: modules that they may import


@functools.cache
def digest(*entries: str) -> str:
    """Digest of the code behind entry points and of the libraries' versions.

    Raises
    ------
    UnknownNameError
        If there is no such module or name.
    """
    found = sorted(f"{name} {code.digest}" for name, code in _closure(entries).items())
    text = "\n".join([*found, repr(versions())])
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def closure(*entries: str) -> set[str]:
    """The entry points and the modules that they import.

    Raises UnknownNameError if there is no such module or name.
    """
    return set(_closure(entries))


def words(*entries: str) -> set[str]:
    """All strings in the code behind entry points.

    Raises UnknownNameError if there is no such module or name.
    """
    return {word for code in _closure(entries).values() for word in code.words}


@functools.cache
def versions() -> dict[str, str]:
    """Versions of the libraries that do arithmetic."""
    return {name: version(name) for name in ARITHMETIC}


def forget() -> None:
    """Read sources again; they are assumed fixed during a process."""
    for known in (digest, versions, functions, _closure, _code, _reached, _tree, _spec):
        known.cache_clear()


@functools.cache
def functions(module: str) -> dict[str, ast.arguments]:
    """The public functions of a module with their arguments, without importing it."""
    path = _path(module)
    body = ast.parse(path.read_text(encoding="utf-8")).body if path else []
    found = (node for node in body if isinstance(node, ast.FunctionDef))
    return {node.name: node.args for node in found if not node.name.startswith("_")}


@functools.cache
def _closure(entries: tuple[str, ...]) -> dict[str, Code]:
    """The code of entry points and of all modules that they import, by their names."""
    tops = {"dperm", *(entry.partition(".")[0].partition(":")[0] for entry in entries)}
    found: dict[str, Code] = {}
    todo = [*entries]
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = _code(*name.split(":"))
            todo += [one for one in found[name].imports if _counts(one, tops)]
    return found


def _counts(module: str, tops: Iterable[str]) -> bool:
    """Whether a module is own code and no plumbing."""
    if module in PLUMBING or f"{module}.".startswith(PACKAGES):
        return False
    path, top = _path(module), module.partition(".")[0]
    is_library = bool(path and {"site-packages", "dist-packages"} & {*path.parts})
    return path is not None and (top in tops or not is_library)


# --- one module -----------------------------------------------------------------------


@functools.cache
def _code(module: str, name: str = "") -> Code:
    path = _path(module)
    if path is None:
        raise UnknownNameError(f"{module}: no such module")
    tree: ast.AST = _reached(module, name) if name else _tree(module)
    nodes = [*ast.walk(tree)]
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    strings = frozenset(value for value in constants if isinstance(value, str))
    made = hashlib.sha256(ast.dump(tree).encode())
    for word in sorted(word for word in strings if word.endswith(".csv")):
        table = path.with_name(word) if word == Path(word).name else path.parent
        made.update(table.read_bytes() if table.is_file() else b"")
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return Code(made.hexdigest(), strings, frozenset(_imports(nodes, package)))


@functools.cache
def _tree(module: str) -> ast.Module:
    """A module's statements, without docstrings and annotations of functions."""
    path = _path(module)
    assert path is not None
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, said) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
        # a decorator may dispatch on annotations, as ``singledispatch`` does
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            node.returns = None
            for arg in ast.walk(node.args):
                if isinstance(arg, ast.arg):
                    arg.annotation = None
    return tree


@functools.cache
def _reached(module: str, name: str) -> ast.Module:
    """The top-level statements of a module that a name reaches within it."""
    body = [part for node in _tree(module).body for part in _parts(node)]
    bound = [_bound(node) for node in body]
    found, todo = set[int](), [name]
    while todo:
        wanted = todo.pop()
        for at, names in enumerate(bound):
            if wanted in names and at not in found:
                found.add(at)
                todo += _named(body[at])
    if not found:
        raise UnknownNameError(f"{module}:{name}: no such name")
    return ast.Module([body[at] for at in sorted(found)], [])


def _parts(node: ast.stmt) -> Iterator[ast.stmt]:
    """A statement; for an import of several names, one statement for each."""
    if isinstance(node, ast.Import):
        yield from (ast.Import([name]) for name in node.names)
    elif isinstance(node, ast.ImportFrom):
        names = node.names
        yield from (ast.ImportFrom(node.module, [one], node.level) for one in names)
    else:
        yield node


def _bound(node: ast.stmt) -> set[str]:
    """The names that a top-level statement binds or changes."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(one.asname or one.name).partition(".")[0] for one in node.names}
    return _named(node)


def _named(node: ast.AST) -> set[str]:
    """The names in a statement."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _imports(nodes: Iterable[ast.AST], package: str) -> Iterator[str]:
    """Names of the modules that code may import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            whole = ".".join([*above, *([node.module] if node.module else [])])
            inner = [f"{whole}.{alias.name}" for alias in node.names]
            yield from (name if _path(name) else whole for name in inner)


# --- where modules are ----------------------------------------------------------------


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
    if package in ("", "dperm.papers"):  # which knows where a user's own papers are
        try:
            return importlib.util.find_spec(module)
        except (ImportError, ValueError):
            return None
    above = _spec(package)
    folders = above.submodule_search_locations if above else None
    return PathFinder.find_spec(module, folders) if folders is not None else None
