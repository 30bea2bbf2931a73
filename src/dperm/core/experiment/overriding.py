"""Overrides of a command line, applied as Hydra applies them."""

from __future__ import annotations

import re

from omegaconf import DictConfig, OmegaConf, open_dict

from dperm.core.experiment import schema, typed
from dperm.core.experiment.locate import ConfigError

# A whole number or a word that stands for itself: needs no grammar, nor its import.
_PLAIN = re.compile(
    r"[A-Za-z_][\w.]*=(?:(0|-?[1-9]\d{0,15})|((?!(?i:true|false|null|inf|nan)$)[A-Za-z]\w*))"
)


def key_of(override: str) -> str:
    """The key of an override."""
    return override.partition("=")[0].lstrip("+~")


def apply(tree: DictConfig, text: str) -> None:
    """Apply an override as Hydra does; its grammar is Hydra's own."""
    plain = _PLAIN.fullmatch(text)
    if plain is not None:
        value = plain[2] or int(plain[1])
        OmegaConf.update(tree, key_of(text), value, merge=True)
    else:
        _parsed_override(tree, text)


def _parsed_override(tree: DictConfig, text: str) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    plain = re.sub(r"(?<=[=,\[])(-?)\.inf\b", r"\1inf", text)
    try:
        given = OverridesParser.create().parse_override(plain)
    except HydraException as error:
        what = str(error).splitlines()[0]
        raise ConfigError(
            f"command line: {text}: expected key=value: {what}"
        ) from error
    key, value = given.key_or_group, given.value()
    if given.package is not None or given.is_sweep_override():
        raise ConfigError(
            f"command line: {text}: expected key=value, one value; --multirun takes "
            "several"
        )
    if isinstance(value, bool | None) and not given.is_delete():
        try:
            typed.check(value, typed.hint_of(schema.Config, key), key)
        except typed.MisfitError as error:
            raise ConfigError(f"command line: {text}: {error}") from error
    if given.is_delete():
        _delete(tree, key, text)
    elif given.is_add() and not isinstance(value, dict | list) and _is_there(tree, key):
        raise ConfigError(f"command line: {text}: is there; expected it without the +")
    else:
        added = given.is_add() or given.is_force_add()
        OmegaConf.update(tree, key, value, merge=True, force_add=added)


def _is_there(tree: DictConfig, key: str) -> bool:
    return OmegaConf.select(tree, key, throw_on_missing=False) is not None


def _delete(tree: DictConfig, key: str, text: str) -> None:
    if not _is_there(tree, key):
        raise ConfigError(f"command line: {text}: there is no {key}")
    above, _, last = key.rpartition(".")
    with open_dict(tree):
        del OmegaConf.select(tree, above)[last]
