"""Where a result came from: code, versions, commit."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import platform
import subprocess
import threading
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

# What a lane's numbers depend on beside its own solver.
_SHARED = (
    "dperm.compiled",
    "dperm.solvers.lanes.engine",
    "dperm.pipeline.seeds",
    "dperm.privacy.mechanisms",
    "dperm.privacy.smoothness",
    "dperm.erm.loss",
    "dperm.erm.losses",
    "dperm.erm.penalties",
    "dperm.erm.problem",
    "dperm.solvers",
)
# Reading configuration and data and storing files: no numbers come from there, but for
# the modules that are counted all the same.
_PLUMBING = ("dperm.config", "dperm.data", "dperm.pipeline", "dperm.schema")
_COUNTED = tuple(f"dperm.pipeline.{name}" for name in ("results", "seeds"))
_PARSING = threading.Lock()  # CPython 3.11 parses on one thread at a time only
_PRIVACY = ("accounting", "calibration", "ledger", "pld", "noisy_max")


def code_digest(module: ModuleType) -> str:
    """Digest of the code a solver's lanes depend on; comments and layout do not count.

    Parameters
    ----------
    module : module of ``dperm.solvers``, or one found through configuration
    """
    bases = {base.__module__ for base in module.Run.__mro__ if base is not object}
    return _digest_of((*_SHARED, *sorted(bases | {module.__name__})))


def privacy_digest(module: ModuleType) -> str:
    """Digest of the code a calibration depends on."""
    names = (f"dperm.privacy.{name}" for name in _PRIVACY)
    bases = {base.__module__ for base in module.Run.__mro__ if base is not object}
    return _digest_of((*names, *sorted(bases | {module.__name__})))


def product_digest(*modules: str) -> str:
    """Digest of modules and what of ours they import, without reading and storing."""
    return _digest_of(
        tuple(sorted({name for one in modules for name in imported(one)}))
    )


@functools.cache
def imported(name: str) -> tuple[str, ...]:
    """A module and the modules of ours it imports, transitively; sorted."""
    found, todo = set(), [name]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [other for other in _imports(name) if _counts(other)]
    return tuple(sorted(found))


def _imports(name: str) -> Iterator[str]:
    """Modules a module of ours names in its imports, also those inside functions."""
    for node in ast.walk(parsed(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _counts(name: str) -> bool:
    """Whether a name is a module of ours whose code counts, and no function of one."""
    plumbing = any(f"{name}.".startswith(f"{top}.") for top in _PLUMBING)
    if not name.startswith("dperm.") or (plumbing and name not in _COUNTED):
        return False
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is a module, no package
        return False


@functools.cache
def _digest_of(names: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for name in names:
        digest.update(ast.dump(_without_docstrings(parsed(name))).encode())
    return digest.hexdigest()[:20]


def parsed(name: str) -> ast.Module:
    """A module's syntax tree, without importing it."""
    source = Path(str(_spec(name).origin)).read_text()
    with _PARSING:
        return ast.parse(source)


def _spec(name: str) -> ModuleSpec:
    """Where a module lies, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(name)
    return spec


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                value.value = ""
    return tree


@functools.cache
def commit() -> str:
    """The commit of the source tree, ``+`` if it was changed since; or the version."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return f"v{version('dperm')}"

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "conf")
    return (git("rev-parse", "--short=12", "HEAD") or "none") + ("+" if changed else "")


@functools.cache
def versions() -> str:
    """Versions that matter for the numbers."""
    packages = ("dperm", "numpy", "scipy", "numba", "dp-accounting")
    found = [f"python {platform.python_version()}"]
    return ", ".join(found + [f"{name} {version(name)}" for name in packages])


def machine() -> str:
    """Class of the machine, for timings; nothing that identifies it."""
    import os

    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
