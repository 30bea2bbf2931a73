"""The code that a result depends on, and its digest.

Entry points are names in modules, such as ``dperm.core.erm.optimum:solve``. Their
closure is every top-level definition in own code that they reach by name, including
imports inside functions. So an edit of a function makes stale only what uses it. Own
code is this package and all other plain source on Python's path, such as a user's paper
or solver and the modules next to it. Where a module is used as a whole, all of it
counts. Statements that run when a module is imported (such as registering an accountant
for an event) count as soon as any of its names does.

A definition enters the digest by its text, by the targets of its names, so that a
changed import counts too, and by the CSV files next to its module that it names.
Libraries enter the keys of solved results by their versions, and those of drawn
products by name. The closure stops at code that reads configuration or stores files,
because it computes no numbers.

A name looked up at run time (such as a solver named in a YAML) is not reached from the
code. The caller that looks it up passes it as a further entry point.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

Name = tuple[str, str]  # module and name; "" for the statements run at import
Use = tuple[str, ...]  # a name of the module and attributes; or "" and a dotted path

EXPERIMENT = "dperm.core.experiment"
PLUMBING = (
    *("dperm.cli", "dperm.store", "dperm.pipeline.workers"),
    *(f"{EXPERIMENT}.{name}" for name in ("config", "locate", "schema", "validation")),
    f"{EXPERIMENT}.files",
    # Keys of results contain the digests of the arrays that these load.
    *("dperm.data.fetching:load_fetched", "dperm.data.preparing:load_prepared"),
)
# In a module of PLUMBING, but it computes numbers: lambda from "1/n".
COUNTED = ("dperm.core.experiment.validation:number",)
# Libraries that do arithmetic, and their distributions. Libraries that store, draw or
# report (pandas, matplotlib) compute no numbers, and data have their own digests.
ARITHMETIC = {
    "numpy": "numpy",
    "numba": "numba",
    "llvmlite": "llvmlite",
    "scipy": "scipy",
    "dp_accounting": "dp-accounting",
}


class UnknownNameError(LookupError):
    """An entry point that does not exist."""


@dataclass
class _Known:
    """Cache of what has been read; sources are assumed fixed during the process."""

    sources: dict[str, Source | None] = field(default_factory=dict)
    edges: dict[Name, tuple[str, frozenset[Name], frozenset[str]]] = field(
        default_factory=dict
    )
    digests: dict[tuple[str, ...], str] = field(default_factory=dict)
    places: dict[str, list[Path] | None] = field(default_factory=dict)
    installed: set[str] = field(default_factory=set)  # solvers among the libraries
    tables: set[Path] = field(default_factory=set)  # CSV files that modules name
    lock: threading.RLock = field(default_factory=threading.RLock)


@functools.cache
def known() -> _Known:
    """The sources read so far; ``known.cache_clear()`` forgets them."""
    return _Known()


def digest(*entries: str, versioned: bool = False) -> str:
    """Digest of the code behind entry points.

    Parameters
    ----------
    entries : str
        ``module:name``, or ``module`` for all of a module.
    versioned : bool
        Whether the versions of the libraries that do arithmetic enter it.

    Raises
    ------
    UnknownNameError
        If there is no such module or name.
    """
    digests, key = known().digests, (str(versioned), *entries)
    if key not in digests:
        found = closure(*entries)
        if not versioned:
            found |= dict.fromkeys(found.keys() & ARITHMETIC.keys(), "")
        lines = (f"{name} {text}\n" for name, text in sorted(found.items()))
        digests[key] = hashlib.sha256("".join(lines).encode()).hexdigest()[:20]
    return digests[key]


def closure(*entries: str) -> dict[str, str]:
    """Dependencies of entry points: ``module:name`` to digest, library to version.

    Raises
    ------
    UnknownNameError
        If there is no such module or name.
    """
    with known().lock:
        reached, libraries = _reached(entries)
        found = {f"{m}:{name}": _edges((m, name))[0] for m, name in reached}
    return found | {name: _version(ARITHMETIC[name]) for name in libraries}


_version = functools.cache(version)


def versions() -> dict[str, str]:
    """Versions of the libraries that do arithmetic."""
    return {name: _version(distribution) for name, distribution in ARITHMETIC.items()}


def files() -> list[Path]:
    """The source files read so far, and the tables next to them."""
    found = (_path(module) for module in list(known().sources))
    return sorted({path for path in found if path is not None} | known().tables)


def functions(module: str) -> tuple[str, ...]:
    """The public functions of a module, found without importing it."""
    source = _source(module)
    found = source.functions if source else {}
    return tuple(name for name in found if not name.startswith("_"))


def words(*entries: str) -> set[str]:
    """All strings in the definitions that entry points depend on.

    Raises
    ------
    UnknownNameError
        If there is no such module or name.
    """
    with known().lock:
        reached, _ = _reached(entries)
        return {
            word
            for module, name in reached
            for statement in _statements(module, name)
            for word in statement.words
        }


def parameters(module: str, function: str) -> dict[str, tuple[str, bool]] | None:
    """The parameters of a function by name, found without importing it.

    Returns
    -------
    dict or None
        Name to annotation as text and whether it is required; None if the function
        accepts any keyword.
    """
    source = _source(module)
    assert source is not None
    given = source.functions[function]
    if given.kwarg is not None:
        return None
    plain, named = [*given.posonlyargs, *given.args], given.kwonlyargs
    needed = [True] * (len(plain) - len(given.defaults)) + [False] * len(given.defaults)
    needed += [default is None for default in given.kw_defaults]
    return {
        one.arg: (ast.unparse(one.annotation) if one.annotation else "Any", is_needed)
        for one, is_needed in zip((*plain, *named), needed, strict=True)
    }


def _reached(entries: Iterable[str]) -> tuple[set[Name], set[str]]:
    todo = [name for entry in entries for name in _entry(entry)]
    reached: set[Name] = set()
    libraries: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            _, following, used = _edges(name)
            todo.extend(following - reached)
            libraries |= used
    return reached, libraries


def _entry(entry: str) -> list[Name]:
    module, _, name = entry.partition(":")
    if _source(module) is None:
        known().installed.add(module.partition(".")[0])
        for kept in (known().sources, known().edges, known().places):
            kept.clear()
    found = list(_targets(module, (name,) if name else (), entered=True))
    ours = [one for one in found if _source(one[0]) is not None]
    if not ours:
        raise UnknownNameError(f"{entry}: no such module or name")
    return ours


def _edges(name: Name) -> tuple[str, frozenset[Name], frozenset[str]]:
    """Digest of a definition, the names it uses, the libraries it uses."""
    edges = known().edges
    if name not in edges:
        edges[name] = _read_edges(name)
    return edges[name]


def _read_edges(name: Name) -> tuple[str, frozenset[Name], frozenset[str]]:
    module, definition = name
    source = _source(module)
    assert source is not None
    statements = _statements(module, definition)
    if definition:
        found, package = {(module, "")}, module
        while package := package.rpartition(".")[0]:  # imported with the module
            if _source(package) is not None and not _is_plumbing((package, "")):
                found.add((package, ""))
    else:
        found = set(_idle(module, source))
    words, libraries = [statement.text for statement in statements], set()
    words += _tables(module, statements)
    for use in sorted({use for statement in statements for use in statement.uses}):
        for target in _used(module, use):
            words.append(f"{'.'.join(use)}>{':'.join(target)}")
            if _source(target[0]) is None:
                libraries.add(target[0].partition(".")[0])
            elif not _is_plumbing(target):
                found.add(target)
    text = hashlib.sha256("\0".join(words).encode()).hexdigest()
    return text, frozenset(found), frozenset(libraries & ARITHMETIC.keys())


def _tables(module: str, statements: list[Statement]) -> Iterator[str]:
    """Digests of CSV files next to a module that its statements name."""
    place = _path(module)
    assert place is not None
    for word in sorted({word for one in statements for word in one.words}):
        file = place.parent / Path(word).name
        if word.endswith(".csv") and word == file.name and file.is_file():
            known().tables.add(file)
            yield f"{word}={hashlib.sha256(file.read_bytes()).hexdigest()}"


def _statements(module: str, definition: str) -> list[Statement]:
    """Statements of a definition, or those that a module runs when imported."""
    source = _source(module)
    assert source is not None
    if definition:
        return source.definitions[definition]
    registered = (  # classes that a base class registers when they are defined
        statement
        for statements in source.definitions.values()
        for statement in statements
        if any(_hooks(module, base) for base in statement.bases)
    )
    return [*source.effects, *registered]


def _idle(module: str, source: Source) -> Iterator[Name]:
    """Modules that a module imports for their side effects only."""
    if _is_package(module):  # its imports re-export names
        return
    for to in source.idle():
        other = ".".join(to) if _source(".".join(to)) else to[0]
        if _source(other) is not None and not _is_plumbing((other, "")):
            yield other, ""


def _hooks(module: str, base: Use) -> bool:
    """Whether a class, or a base of it, has ``__init_subclass__``."""
    for other, name in _used(module, base):
        source = _source(other)
        for statement in source.definitions.get(name, ()) if source else ():
            if statement.hooks or any(_hooks(other, up) for up in statement.bases):
                return True
    return False


# --- resolving names ------------------------------------------------------------------


def _used(module: str, use: Use) -> Iterator[Name]:
    """The names, own or of libraries, to which a use in a module resolves."""
    first, rest = use[0], use[1:]
    source = _source(module)
    assert source is not None
    if first == "":  # an import inside a function
        yield from _targets(rest[0], rest[1:])
    elif first in source.definitions:
        yield module, first
        if first in source.imports:
            yield from _targets(source.imports[first][0], source.imports[first][1:])
    elif first in source.imports:
        to = source.imports[first]
        yield from _targets(to[0], (*to[1:], *rest))
    else:
        for star in source.stars:
            inside = _source(star)
            if inside is None or first in {*inside.definitions, *inside.imports}:
                yield from _targets(star, use)


def _targets(module: str, chain: Use, entered: bool = False) -> Iterator[Name]:
    """The names to which ``module.a.b`` resolves; all of the module if in doubt."""
    source = _source(module)
    if source is None:
        yield module, ".".join(chain)
    elif chain and source.imports.get(chain[0]) == (module, chain[0]):
        yield from _targets(f"{module}.{chain[0]}", chain[1:])  # a package's own part
    elif chain and source.has(chain[0]):
        if entered or not _is_plumbing((module, chain[0])):
            yield from _used(module, chain)
        else:
            yield module, chain[0]
    elif chain and _source(f"{module}.{chain[0]}") is not None:
        yield from _targets(f"{module}.{chain[0]}", chain[1:])
    elif _is_plumbing((module, "")) and not entered:
        yield module, ""
    elif not chain:
        yield from _whole(module, source)
    elif source.stars:
        yield from _used(module, chain)
    elif not entered and not chain[0].startswith("__"):
        yield from _whole(module, source)  # not found statically: count all of it


def _whole(module: str, source: Source) -> Iterator[Name]:
    yield module, ""
    for name in source.definitions:
        yield module, name
    for name in source.imports if _is_package(module) else ():
        yield from (to for to in _used(module, (name,)) if not _is_plumbing(to))


def _is_plumbing(name: Name) -> bool:
    module, definition = name
    if f"{module}:{definition}" in COUNTED:
        return False
    if module == "dperm":
        return True
    return f"{module}:{definition}" in PLUMBING or any(
        f"{module}.".startswith(f"{top}.") for top in PLUMBING
    )


# --- files of modules -----------------------------------------------------------------


def _source(module: str) -> Source | None:
    """The parsed source of an own module; None for a library or a missing module."""
    sources = known().sources
    if module not in sources:
        path = _path(module)
        sources[module] = None
        if path is not None and path.is_dir():
            sources[module] = Source()
        elif path is not None:
            package = module if path.stem == "__init__" else module.rpartition(".")[0]
            sources[module] = read(path.read_text(encoding="utf-8"), package)
    return sources[module]


def _is_package(module: str) -> bool:
    path = _path(module)
    return path is not None and (path.stem == "__init__" or path.is_dir())


def _path(module: str) -> Path | None:
    """The file of an own module, found without importing it.

    For a package without ``__init__.py``, such as a user's own paper, its folder.
    """
    top, *below = module.split(".")
    places = known().places
    if top not in places:
        places[top] = _places(top)
    folders = places[top]
    if folders is None:
        return None
    path = _file(folders, top)
    for depth, part in enumerate(below):
        if path is None or not (path.is_dir() or path.stem == "__init__"):
            return None
        parent = sys.modules.get(".".join((top, *below[:depth])))
        folder = path if path.is_dir() else path.parent
        inside = getattr(parent, "__path__", None) or [str(folder)]
        path = _file([Path(folder) for folder in inside], part)
    return path


def _file(folders: list[Path], name: str) -> Path | None:
    for folder in folders:
        for path in (folder / name / "__init__.py", folder / f"{name}.py"):
            if path.is_file():
                return path
    return next((at / name for at in folders if (at / name).is_dir()), None)


def _places(top: str) -> list[Path] | None:
    """The folder of an own top-level module; None for a library."""
    if top in sys.stdlib_module_names or not top:
        return None
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None or not str(spec.origin).endswith(".py"):
        return None  # a folder without __init__.py does not count either
    origin = Path(str(spec.origin))
    library = {"site-packages", "dist-packages"} & set(origin.parts)
    if library and top != "dperm" and top not in known().installed:
        return None
    return [origin.parents[1] if origin.stem == "__init__" else origin.parent]


# --- one module's source as top-level definitions ------------------------------------

_PARSING = threading.Lock()  # CPython 3.11 parses on one thread at a time only
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_IMPORTS = (ast.Import, ast.ImportFrom)
# Decorators without side effects outside of the object they decorate.
_PURE = frozenset(
    {
        "njit",
        "jit",
        "vectorize",
        "guvectorize",
        "intrinsic",
        "dataclass",
        "cache",
        "lru_cache",
        "singledispatch",
        "contextmanager",
        "total_ordering",
        "wraps",
    }
)


@dataclass(frozen=True)
class Statement:
    """A top-level statement: digest of its text, and the names it uses."""

    text: str
    uses: frozenset[Use]
    words: frozenset[str] = frozenset()  # strings in it
    bases: tuple[Use, ...] = ()  # of a class
    hooks: bool = False  # a class with ``__init_subclass__``


@dataclass
class Source:
    """The definitions and imports of a module."""

    #: name to the statements that bind it
    definitions: dict[str, list[Statement]] = field(default_factory=dict)
    #: name to its module and, unless it is a module itself, its name there
    imports: dict[str, Use] = field(default_factory=dict)
    #: modules imported by ``*``
    stars: list[str] = field(default_factory=list)
    #: statements with side effects when the module is imported
    effects: list[Statement] = field(default_factory=list)
    #: name of each function to its arguments, in order
    functions: dict[str, ast.arguments] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether the module binds a name."""
        return name in self.definitions or name in self.imports

    def idle(self) -> Iterator[Use]:
        """Imports that no statement uses, made for their side effects."""
        statements = (*self.effects, *(s for d in self.definitions.values() for s in d))
        used = {use[0] for statement in statements for use in statement.uses}
        return (to for name, to in self.imports.items() if name not in used)


def read(text: str, package: str) -> Source:
    """The definitions of a module from its source text.

    Parameters
    ----------
    package : str
        The package of the module, for relative imports.

    Raises
    ------
    SyntaxError
        If the text is not valid Python.
    """
    with _PARSING:
        tree = ast.parse(text)
    made = Source()
    for node in _without_docstring(tree.body):
        _add(made, node, package)
    return made


def _add(made: Source, node: ast.stmt, package: str) -> None:
    for inner in _at_top(node):
        for name, to in _imported(inner, package):
            if name == "*":
                made.stars.append(to[0])
            else:
                made.imports[name] = to
    if isinstance(node, _IMPORTS):
        return
    reader = _Reader(package)
    reader.spell(node)
    statement = reader.statement(node)
    for name in sorted(reader.scopes[0].bound - made.imports.keys()):
        made.definitions.setdefault(name, []).append(statement)
    if isinstance(node, _FUNCTIONS):
        made.functions[node.name] = node.args
    if _acts(node):
        made.effects.append(statement)


def _at_top(node: ast.stmt) -> Iterator[ast.stmt]:
    """A statement and those nested in it, except in functions and classes."""
    yield node
    if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.stmt):
                yield from _at_top(inner)
            elif isinstance(inner, ast.ExceptHandler):
                for one in inner.body:
                    yield from _at_top(one)


def _imported(node: ast.AST, package: str) -> Iterator[tuple[str, Use]]:
    """Names that an import binds, with their targets."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield alias.asname or top, (alias.name if alias.asname else top,)
    elif isinstance(node, ast.ImportFrom):
        parts = package.split(".")
        start = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
        module = ".".join(part for part in (start, node.module) if part)
        for alias in node.names:
            yield alias.asname or alias.name, (module, alias.name)


def _acts(node: ast.stmt) -> bool:
    """Whether a statement does more than bind a name."""
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        return not all(map(_is_pure, node.decorator_list))
    if isinstance(node, ast.Assign):
        return not all(isinstance(to, ast.Name | ast.Tuple) for to in node.targets)
    if isinstance(node, ast.AnnAssign | ast.AugAssign):
        return not isinstance(node.target, ast.Name)
    simple = (*_IMPORTS, ast.Assign, ast.AnnAssign, ast.Pass, ast.If, ast.Try)
    return not all(
        isinstance(inner, simple) and (inner is node or not _acts(inner))
        for inner in _at_top(node)
    )


def _is_pure(decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    if isinstance(decorator, ast.Attribute):
        return decorator.attr in _PURE
    return isinstance(decorator, ast.Name) and decorator.id in _PURE


def _without_docstring(body: list) -> list:
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return body[1:] if isinstance(first.value.value, str) else body
    return body


class _Scope:
    """Names bound and used in a function, a comprehension or at the top."""

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.uses: set[Use] = set()
        self.imports: dict[str, Use] = {}
        self.outer: set[str] = set()  # named by ``global`` or ``nonlocal``

    def free(self) -> Iterator[Use]:
        """Uses of names from outside the scope."""
        idle = set(self.imports)
        for use in self.uses:
            if use[0] in self.imports:
                idle.discard(use[0])
                yield "", *self.imports[use[0]], *use[1:]
            elif use[0] not in self.bound or use[0] in self.outer:
                yield use
        yield from (("", *self.imports[name]) for name in idle)


class _Reader:
    """Writes a statement as words and collects its names, in one walk of its tree."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.words: list[str] = []
        self.strings: set[str] = set()
        self.scopes = [_Scope()]

    def statement(self, node: ast.stmt) -> Statement:
        """The result of reading the statement."""
        text = hashlib.sha256("\0".join(self.words).encode()).hexdigest()
        uses, strings = frozenset(self.scopes[0].uses), frozenset(self.strings)
        if not isinstance(node, ast.ClassDef):
            return Statement(text, uses, strings)
        bases = tuple(use for base in node.bases if (use := _chain(base)))
        names = {inner.name for inner in node.body if isinstance(inner, _FUNCTIONS)}
        return Statement(text, uses, strings, bases, "__init_subclass__" in names)

    def spell(self, node: ast.AST) -> None:
        """Add the words of a node and of all below it."""
        self.words.append(node.__class__.__name__)
        special = _SPECIAL.get(node.__class__)
        if special is None:
            self._fields(node, node._fields)
        else:
            special(self, node)

    def _fields(self, node: ast.AST, names: Iterable[str]) -> None:
        for name in names:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                self.spell(value)
            elif value.__class__ is list:
                self.words.append("[")
                for one in value:
                    if isinstance(one, ast.AST):
                        self.spell(one)
                    else:
                        self.words.append(repr(one))
                self.words.append("]")
            else:
                self.words.append(repr(value))

    def _body(self, body: list) -> None:
        self.words.append("{")
        for one in _without_docstring(body):
            self.spell(one)
        self.words.append("}")

    def _leave(self) -> None:
        """Leave the innermost scope and pass its free names to the one around it."""
        inner = self.scopes.pop()
        self.scopes[-1].uses.update(inner.free())

    def _name(self, node: ast.Name) -> None:
        self.words.append(node.id)
        if isinstance(node.ctx, ast.Load):
            self.scopes[-1].uses.add((node.id,))
        else:
            self.words.append("=")
            self.scopes[-1].bound.add(node.id)

    def _constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.strings.add(node.value)
        self._fields(node, node._fields)

    def _attribute(self, node: ast.Attribute) -> None:
        use = _chain(node)
        if use:
            self.words += [*use, node.ctx.__class__.__name__]
            self.scopes[-1].uses.add(use)
        else:
            self._fields(node, node._fields)

    def _function(self, node: ast.FunctionDef) -> None:
        self.words.append(node.name)
        self.scopes[-1].bound.add(node.name)
        self._fields(node, ("decorator_list", "returns"))
        self._call(node.args, node.body)

    def _call(self, args: ast.arguments, body: list) -> None:
        """Read arguments (defaults and annotations in the outer scope) and body."""
        self.spell(args)
        scope = _Scope()
        self.scopes.append(scope)
        every = (*args.posonlyargs, *args.args, *args.kwonlyargs)
        scope.bound |= {one.arg for one in (*every, args.vararg, args.kwarg) if one}
        self._body(body)
        self._leave()

    def _class(self, node: ast.ClassDef) -> None:
        self.words.append(node.name)
        self.scopes[-1].bound.add(node.name)
        self._fields(node, ("decorator_list", "bases", "keywords"))
        scope = _Scope()
        self.scopes.append(scope)
        self._body(node.body)
        scope.bound.clear()  # methods do not see names of the class body
        self._leave()

    def _comprehension(self, node: ast.ListComp) -> None:
        self.spell(node.generators[0].iter)
        scope = _Scope()
        self.scopes.append(scope)
        self._fields(node, node._fields)
        self._leave()

    def _handler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.scopes[-1].bound.add(node.name)
        self._fields(node, node._fields)

    def _import(self, node: ast.Import) -> None:
        for name, to in _imported(node, self.package):
            module = to if name != "*" else to[:1]
            self.scopes[-1].imports[name] = module
            self.words += [name, *module]

    def _outer(self, node: ast.Global) -> None:
        self.scopes[-1].outer.update(node.names)
        self._fields(node, node._fields)


_SPECIAL: dict[type, Callable[[_Reader, Any], None]] = {
    ast.Name: _Reader._name,
    ast.Constant: _Reader._constant,
    ast.Attribute: _Reader._attribute,
    ast.Lambda: lambda reader, node: reader._call(node.args, [node.body]),
    ast.ClassDef: _Reader._class,
    ast.ExceptHandler: _Reader._handler,
    ast.Global: _Reader._outer,
    ast.Nonlocal: _Reader._outer,
    **dict.fromkeys(_FUNCTIONS, _Reader._function),
    **dict.fromkeys(_COMPREHENSIONS, _Reader._comprehension),
    **dict.fromkeys(_IMPORTS, _Reader._import),
}


def _chain(node: ast.expr) -> Use:
    """A name and its chain of attributes; empty for any other expression."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id, *reversed(attributes)) if isinstance(node, ast.Name) else ()
