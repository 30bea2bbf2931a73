"""One module's source as top-level definitions: their text, and the names they use.

A definition's text is its syntax tree without docstrings, comments and positions. A use
is a name with the attributes taken of it, ``("np", "linalg", "norm")``; names that are
bound inside a function are not among them.
"""

from __future__ import annotations

import ast
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

Use = tuple[str, ...]  # a name of the module and attributes; or "" and a dotted path
_PARSING = threading.Lock()  # CPython 3.11 parses on one thread at a time only
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_IMPORTS = (ast.Import, ast.ImportFrom)
# Decorators that change what they decorate and nothing else.
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
    """A top-level statement: digest of its text, and what it uses."""

    text: str
    uses: frozenset[Use]
    words: frozenset[str] = frozenset()  # strings that stand in it
    bases: tuple[Use, ...] = ()  # of a class
    hooks: bool = False  # a class whose subclasses are registered as they are made


@dataclass
class Source:
    """What a module defines."""

    #: name to the statements that bind it
    definitions: dict[str, list[Statement]] = field(default_factory=dict)
    #: name to the module it comes from and, unless it is a module, its name
    #: there
    imports: dict[str, Use] = field(default_factory=dict)
    #: modules all of whose names are imported
    stars: list[str] = field(default_factory=list)
    #: what is done whenever the module is imported, whichever name is wanted
    effects: list[Statement] = field(default_factory=list)
    #: name to the arguments of the functions, in order
    functions: dict[str, ast.arguments] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether the module binds a name."""
        return name in self.definitions or name in self.imports

    def idle(self) -> Iterator[Use]:
        """Imports that no statement uses: they are there for their effects."""
        statements = (*self.effects, *(s for d in self.definitions.values() for s in d))
        used = {use[0] for statement in statements for use in statement.uses}
        return (to for name, to in self.imports.items() if name not in used)


def read(text: str, package: str) -> Source:
    """The definitions of a module from its source text.

    Parameters
    ----------
    package : str
        The package the module lies in, for relative imports.

    Raises
    ------
    SyntaxError
        If it is no Python.
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
    """A statement and those nested in it, but for bodies of functions and classes."""
    yield node
    if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.stmt):
                yield from _at_top(inner)
            elif isinstance(inner, ast.ExceptHandler):
                for one in inner.body:
                    yield from _at_top(one)


def _imported(node: ast.AST, package: str) -> Iterator[tuple[str, Use]]:
    """Names an import binds and what they are."""
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
    """Whether a statement does more than give a name to something."""
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
        """What is used of the world outside."""
        idle = set(self.imports)
        for use in self.uses:
            if use[0] in self.imports:
                idle.discard(use[0])
                yield "", *self.imports[use[0]], *use[1:]
            elif use[0] not in self.bound or use[0] in self.outer:
                yield use
        yield from (("", *self.imports[name]) for name in idle)


class _Reader:
    """Spells a statement and notes the names it uses, in one walk over its tree."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.words: list[str] = []
        self.strings: set[str] = set()
        self.scopes = [_Scope()]

    def statement(self, node: ast.stmt) -> Statement:
        """What was read of the statement."""
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
        """Leave the innermost scope: what it uses from outside is used outside."""
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

    def _lambda(self, node: ast.Lambda) -> None:
        self._call(node.args, [node.body])

    def _call(self, args: ast.arguments, body: list) -> None:
        """Arguments, whose defaults and annotations belong outside, and the body."""
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
        scope.bound.clear()  # its methods do not see them; others may be meant
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
    ast.Lambda: _Reader._lambda,
    ast.ClassDef: _Reader._class,
    ast.ExceptHandler: _Reader._handler,
    ast.Global: _Reader._outer,
    ast.Nonlocal: _Reader._outer,
    **dict.fromkeys(_FUNCTIONS, _Reader._function),
    **dict.fromkeys(_COMPREHENSIONS, _Reader._comprehension),
    **dict.fromkeys(_IMPORTS, _Reader._import),
}


def _chain(node: ast.expr) -> Use:
    """A name and the attributes taken of it; empty if it is anything else."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id, *reversed(attributes)) if isinstance(node, ast.Name) else ()
