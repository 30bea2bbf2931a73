"""Reading the configuration: one group's section, or all of it.

``read`` returns one section, ``compose`` all of them for the command line of a stage.
Both merge the YAML files into the typed classes of ``schema`` with OmegaConf, to the
same result as Hydra and in a tenth of the time. Every refusal is a
``ConfigError`` whose one-line text names the file, the key, the value found and the
value expected.
"""

from __future__ import annotations

import functools
import os
import pickle
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from dperm.core.experiment import grid, schema
from dperm.core.experiment.locate import (
    ROOT,
    ConfigError,
    available,
    conf_file,
    group_file,
)
from dperm.core.experiment.validation import (
    check,
    check_name,
    load_yaml,
    validate,
    validate_section,
    validate_settings,
)

CHOSEN = ("paper", "problem", "solver", "scale")
CLASSES = {
    "paper": schema.Paper,
    "problem": schema.Problem,
    "solver": schema.Solver,
    "scale": schema.Scale,
    "dataset": schema.Dataset,
}
_DATASET = "/dataset@dataset"  # in a defaults list, the data set of a problem
# Besides its own errors OmegaConf raises these on invalid files.
_SENSELESS = (
    *(OmegaConfBaseException, OSError, ValueError, TypeError),
    *(AttributeError, RecursionError),
)
_REFERENCE = re.compile(r"\$\{[\w.\[\]-]*\}")  # to another key
# A whole number or a plain word: read without importing Hydra's grammar.
_PLAIN = re.compile(
    r"[A-Za-z_][\w.]*=(?:(0|-?[1-9]\d{0,15})|((?!(?i:true|false|null|inf|nan)$)[A-Za-z]\w*))"
)


def read(group: str, name: str, overrides: Iterable[str] = ()) -> Any:
    """One group's section by itself, without a whole configuration around it.

    Parameters
    ----------
    group : {"paper", "problem", "solver", "scale", "dataset"}
    name : str
        Name of its YAML.
    overrides : iterable of str
        As on a command line; those of keys below the group are applied.
    """
    check_name(group, name, "command line")
    inner = [text for text in overrides if key_of(text).startswith(f"{group}.")]
    tree = _merged({group: name}, [group], inner)
    section = _object(tree, {group: name})[group]
    _check_own_name(group, name, section)
    validate_section(group, section, _narrowed(inner))
    return section


def settings(overrides: Sequence[str]) -> schema.Config:
    """Settings outside of paper, problem and solver: scale, seed, folders, workers.

    The sections of these three are left empty.

    Raises
    ------
    ConfigError
        If a setting is invalid, or a paper, problem or solver is among the overrides.
    """
    chosen, keys = _choices(overrides), {key_of(text) for text in overrides}
    for group in keys & {*CHOSEN[:-1]}:
        raise ConfigError(
            f"{group}={chosen[group]}: expected a key below it, {group}.<key>=value: "
            "what is made is chosen by the target"
        )
    rest = [field.name for field in fields(schema.Config) if field.name not in CHOSEN]
    inner = [text for text in overrides if key_of(text).split(".")[0] not in CLASSES]
    composed = schema.Config(**_object(_merged({}, rest, inner)))
    composed = replace(
        composed,
        scale=read("scale", chosen["scale"], overrides),
        data=_with_mirror(composed.data),
        overrides=list(overrides),
    )
    validate_settings(composed)
    return composed


def compose(overrides: Sequence[str]) -> schema.Config:
    """Compose one configuration and check it.

    Parameters
    ----------
    overrides : sequence of str
        Such as ``problem=california_norm`` or ``problem.privacy.epsilon=2``.
    """
    chosen = _choices(overrides)
    inner = [text for text in overrides if text.partition("=")[0] not in CHOSEN]
    tree = _merged(chosen, [field.name for field in fields(schema.Config)], inner)
    composed: schema.Config = _object(tree, chosen)
    validate(composed, _narrowed(overrides))
    for group, name in chosen.items():
        _check_own_name(group, name, getattr(composed, group))
    return replace(
        composed,
        paper=at_scale(composed.paper, composed.scale),
        data=_with_mirror(composed.data),
        overrides=list(overrides),
    )


def at_scale(paper: schema.Paper, scale: schema.Scale) -> schema.Paper:
    """The part of a paper that a scale runs.

    A scale that is not thorough drops sweeps and products marked ``smoke: false``. The
    small scales also drop sweeps none of whose problems they run. Products that show a
    dropped sweep are dropped too.
    """
    is_small = scale.problems == "offline"
    sweeps = {
        name: sweep
        for name, sweep in paper.sweeps.items()
        if (sweep.smoke or scale.thorough)
        and not (is_small and not small_points(paper, sweep))
    }
    kept: dict[str, Any] = {
        kind: {
            name: product
            for name, product in getattr(paper, kind).items()
            if (product.smoke or scale.thorough)
            and sweeps.keys() >= set(product.sweeps)
        }
        for kind in ("figures", "tables")
    }
    return replace(paper, sweeps=sweeps, **kept)


def small_points(paper: schema.Paper, sweep: schema.Sweep) -> grid.Grid:
    """The points of a sweep at the small scales, on the problems these run."""
    points = grid.points(sweep.grid if sweep.small is None else sweep.small, axes=None)
    return points.keeping("problem", set(paper.offline))


def with_paper(config: schema.Config, name: str) -> schema.Config:
    """The configuration of another paper, at the same scale and with its overrides."""
    paper = read("paper", name, config.overrides)
    return replace(config, paper=at_scale(paper, config.scale))


def _narrowed(overrides: Iterable[str]) -> bool:
    """Whether the overrides replace the problems of the paper's file."""
    keys = ("paper.problems", "paper.offline")
    return any(key_of(text).startswith(keys) for text in overrides)


def _with_mirror(data: schema.Data) -> schema.Data:
    folder = os.environ.get("DPERM_MIRROR") or None
    return data if data.mirror is not None else replace(data, mirror=folder)


def _check_own_name(group: str, name: str, section: Any) -> None:
    """Refuse a section whose ``name`` differs from its file's name."""
    if section.name != name:
        raise ConfigError(
            f"conf/{group_file(group, name)}: name: expected {name}, "
            f"found {section.name!r}"
        )


# --- files ----------------------------------------------------------------------------


_TREES: dict[Any, tuple[list[Any], bytes]] = {}  # contents, and what they merge to


def _merged(
    chosen: dict[str, str], keys: list[str], overrides: Iterable[str]
) -> DictConfig:
    """The chosen files, the root's own values of some keys, and the overrides, merged.

    Merging takes long: a tree that is asked for again is kept, without its overrides.
    """
    found = [(g, *one) for g, name in chosen.items() for one in _contents(g, name)]
    contents = [content for _, _, content in found] + [_loaded(ROOT)[0]]
    key = (*chosen.items(), *keys)
    known, kept = _TREES.get(key, ([], b""))
    is_known = [*map(id, known)] == [*map(id, contents)]
    if is_known and kept:
        tree: DictConfig = pickle.loads(kept)  # noqa: S301  # made by this process
    else:
        tree = _merge(found, keys)
        _TREES[key] = contents, pickle.dumps(tree) if is_known else b""
    for text in overrides:
        with _refusing(f"command line: {text}"):
            _override(tree, text)
    return tree


def _merge(found: list[tuple[str, str, Any]], keys: list[str]) -> DictConfig:
    """The tree of files, with their groups, and of the root's own values."""
    if len(keys) == 1:
        tree = OmegaConf.create({keys[0]: OmegaConf.structured(CLASSES[keys[0]])})
    else:
        tree = OmegaConf.structured(schema.Config)
        tree = tree if keys == [*tree] else OmegaConf.masked_copy(tree, keys)
    for group, file, content in found:
        inline = group == "dataset" or not file.startswith("dataset/")
        with _refusing(f"conf/{file}"):
            tree[group].merge_with(content if inline else {"dataset": content})
    with _refusing(f"conf/{ROOT}"):
        tree.merge_with(_root(keys))
    OmegaConf.set_struct(tree, True)
    return tree


def _contents(
    group: str, name: str, inside: tuple[str, ...] = ()
) -> Iterator[tuple[str, Any]]:
    """Files of a section and their contents, in the order in which they are merged."""
    file = group_file(group, name)
    if file in inside:
        raise ConfigError(f"conf/{file}: defaults: expected no circle, found {inside}")
    content, taken = _loaded(file)
    if group == "problem":
        _check_inline_dataset(file, content)
    for entry in taken if "_self_" in taken else [*taken, "_self_"]:
        if entry == "_self_":
            yield file, content
        elif isinstance(entry, str) and group != "paper":
            check_name(group, entry, f"conf/{file}: defaults")
            yield from _contents(group, entry, (*inside, file))
        elif group == "problem" and isinstance(entry, dict) and [*entry] == [_DATASET]:
            dataset = str(entry[_DATASET])
            check_name("dataset", dataset, f"conf/{file}: defaults")
            yield from _contents("dataset", dataset)
        else:
            allowed = f"{_DATASET}: name" if group == "problem" else "a name"
            raise ConfigError(
                f"conf/{file}: defaults: expected {allowed} of its group or _self_, "
                f"found {entry!r}"
            )


def _check_inline_dataset(file: str, content: DictConfig) -> None:
    """Refuse an inline data set with the name of a file in ``conf/dataset``.

    Fetched data are stored by name, so that the two would overwrite each other.
    """
    dataset = content.get("dataset")
    name = dataset.get("name") if isinstance(dataset, DictConfig) else None
    if name is not None and str(name) in available("dataset"):
        raise ConfigError(
            f"conf/{file}: dataset.name: expected another name, found {name!r}, which "
            f"conf/dataset/{name}.yaml has (defaults: [{_DATASET}: {name}] takes it)"
        )


def _loaded(file: str) -> tuple[DictConfig, list[Any]]:
    """Content of a file and its ``defaults`` list; do not modify either."""
    path = conf_file(file)
    if path is None:
        raise ConfigError(f"conf/{file}: no such file")
    with _refusing(f"conf/{file}"):
        return _parsed(file, path.read_bytes())


@functools.lru_cache(512)
def _parsed(file: str, text: bytes) -> tuple[DictConfig, list[Any]]:
    if file != ROOT and re.search(rb"@\s*package", text):  # a directive of Hydra
        raise ConfigError(f"conf/{file}: expected settings of its group, not @package")
    content = load_yaml(f"conf/{file}", text)
    if not content or not isinstance(content, dict):
        raise ConfigError(f"conf/{file}: expected keys and values, name first of all")
    taken = content.pop("defaults", [])
    if not isinstance(taken, list):
        raise ConfigError(f"conf/{file}: defaults: expected a list, found {taken!r}")
    content.pop("hydra" if file == ROOT else None, None)
    _refuse_resolvers(content, f"conf/{file}: ")
    check(content, CLASSES.get(file.partition("/")[0], schema.Config), f"conf/{file}: ")
    return OmegaConf.create(content), taken


def _refuse_resolvers(value: Any, where: str) -> None:
    """Refuse ``${name:...}``, which may read the environment; ``${key}`` is allowed."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            dot = "" if where.endswith(" ") else "."
            _refuse_resolvers(inner, f"{where}{dot}{key}")
    elif isinstance(value, str):
        rest, count = value, 1
        while count:  # the innermost first
            rest, count = _REFERENCE.subn("", rest)
        if "${" in rest:
            what = "expected a value, or another key as ${key}"
            raise ConfigError(f"{where}: {what}, found {value!r}")


def _root(keys: Iterable[str]) -> DictConfig:
    """The values that ``config.yaml`` itself sets for these keys."""
    content, _ = _loaded(ROOT)
    return OmegaConf.masked_copy(content, [key for key in keys if key in content])


def _object(tree: DictConfig, chosen: dict[str, str] | None = None) -> Any:
    """The dataclasses of a tree; ``chosen`` are the names of groups in it."""
    try:
        return OmegaConf.to_object(tree)
    except _SENSELESS:
        pass  # a missing value is named first
    files = {group: group_file(group, name) for group, name in (chosen or {}).items()}
    with _refusing(f"conf/{files.get('paper', ROOT)}"):
        keys = sorted(OmegaConf.missing_keys(tree))
    for missing in keys:
        group, _, key = missing.partition(".")
        file = files.get(group)
        if chosen and group == "problem" and key.startswith("dataset."):
            shared = _dataset_file(chosen[group])
            file, key = (shared, key[len("dataset.") :]) if shared else (file, key)
        place = f"conf/{file}: {key}" if file else missing
        what = (
            "a value, or a data set in `defaults`" if "dataset" in place else "a value"
        )
        raise ConfigError(f"{place}: expected {what}, found none")
    with _refusing(f"conf/{files.get('paper', ROOT)}"):
        return OmegaConf.to_object(tree)


def _dataset_file(problem: str) -> str | None:
    """The file of a problem's data set; None if it is written inline."""
    _, taken = _loaded(group_file("problem", problem))
    named = [entry[_DATASET] for entry in taken if isinstance(entry, dict)]
    return f"dataset/{named[0]}.yaml" if named else None


# --- the command line -----------------------------------------------------------------


def _choices(overrides: Iterable[str]) -> dict[str, str]:
    """The name for every group, from the command line or the defaults."""
    named: dict[str, str] = {}
    for group, _, name in (text.partition("=") for text in overrides):
        if group in CHOSEN:
            check_name(group, name, "command line")
            named[group] = name
    return {**_defaults(), **named}


def _defaults() -> dict[str, str]:
    """The paper, problem, solver and scale that ``config.yaml`` chooses."""
    _, taken = _loaded(ROOT)
    names = {}
    for entry in taken:
        for group, name in entry.items() if isinstance(entry, dict) else ():
            names[group] = str(name).removesuffix("/paper")
    for group in CHOSEN:
        check_name(group, names.get(group, ""), f"conf/{ROOT}: defaults")
    return {group: names[group] for group in CHOSEN}


def key_of(override: str) -> str:
    """The key of an override."""
    return override.partition("=")[0].lstrip("+~")


def _override(tree: DictConfig, text: str) -> None:
    """Apply an override as Hydra does; its grammar is Hydra's own."""
    plain = _PLAIN.fullmatch(text)
    if plain is not None:
        _put(tree, text, key_of(text), plain[2] or int(plain[1]))
        return
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    spelt = re.sub(r"(?<=[=,\[])(-?)\.inf\b", r"\1inf", text)
    try:
        order = OverridesParser.create().parse_override(spelt)
    except HydraException as error:
        what = str(error).splitlines()[0]
        raise _refused(text, f"expected key=value: {what}") from error
    key, value = order.key_or_group, order.value()
    if order.package is not None or order.is_sweep_override():
        raise _refused(text, "expected key=value, one value; --multirun takes several")
    is_there = OmegaConf.select(tree, key, throw_on_missing=False) is not None
    if order.is_delete():
        if not is_there:
            raise _refused(text, f"there is no {key}")
        above, _, last = key.rpartition(".")
        with open_dict(tree):
            del OmegaConf.select(tree, above)[last]
    elif order.is_add() and is_there and not isinstance(value, dict | list):
        raise _refused(text, "is there; expected it without the +")
    else:
        _put(tree, text, key, value, order.is_add() or order.is_force_add())


def _put(tree: DictConfig, text: str, key: str, value: Any, add: bool = False) -> None:
    nested = value
    for name in reversed(key.split(".")):
        nested = {name: nested}
    _refuse_resolvers(nested, f"command line: {text}: ")
    check(nested, schema.Config, f"command line: {text}: ")
    OmegaConf.update(tree, key, value, merge=True, force_add=add)


def _refused(text: str, what: str) -> ConfigError:
    return ConfigError(f"command line: {text}: {what}")


# --- messages -------------------------------------------------------------------------


@contextmanager
def _refusing(place: str) -> Iterator[None]:
    """Turn errors of OmegaConf, YAML and Hydra's grammar into ConfigError."""
    try:
        yield
    except ConfigError:
        raise
    except _SENSELESS as error:
        raise ConfigError(_explained(error, place)) from error


def _explained(error: Exception, place: str) -> str:
    """One line for an error: place, key and reason."""
    text = str(error)
    key = re.search(r"full_key: (\S+)", text)
    what = re.search(
        r"^(Key|Value|Cannot|Missing|Could|Inc|Inv|Interp|Unsupp).*$", text, re.M
    )
    line = what[0] if what else (text.splitlines() or [type(error).__name__])[0]
    return ": ".join(part for part in (place, key[1] if key else "", line) if part)
