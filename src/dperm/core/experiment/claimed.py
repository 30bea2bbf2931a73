"""The file of a paper's claims: keys and types, before anything is computed.

What their rules take is checked by ``dperm.report``, which has the rules.
"""

from __future__ import annotations

import functools
from typing import Any

import yaml

from dperm.core.experiment import schema, typed
from dperm.core.experiment.locate import ConfigError, hint


@functools.lru_cache(16)
def check(where: str, text: bytes) -> None:
    """Check the claims of a file.

    Raises
    ------
    ConfigError
        Naming the file ``where``, the claim and what is wrong with it.
    """
    try:
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
        _refuse_doubled(root, where)
        content = yaml.load(text, Loader=yaml.CSafeLoader)
        typed.check(content, list[schema.Claim])
        for number, entry in enumerate(content):
            _check_claim(entry, f"{where}: claim {number + 1}")
    except typed.MisfitError as error:
        raise ConfigError(f"{where}: {error}") from error
    except ConfigError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{where}: not valid YAML: {reason}") from error


def _check_claim(entry: dict[str, Any], where: str) -> None:
    """Check one entry; that of a table says how each of its columns is read."""
    known = list(schema.Claim.__dataclass_fields__)
    for key in entry:
        if key not in known:
            raise ConfigError(
                f"{where}: {key}: expected one of {', '.join(known)}{hint(key, known)}"
            )
    for key in ("place", "claim", "rule"):
        if not entry.get(key):
            raise ConfigError(f"{where}: {key}: expected text, found nothing")
    if entry["rule"] == "cells":
        options = entry.get("options", {})
        for key, kind in (("published", str), ("file", str), ("keys", list[str])):
            typed.check(options.get(key), kind, f"{where}: options.{key}")
        cells = options.get("cells")
        typed.check(cells, dict[str, dict[str, Any]], f"{where}: options.cells")
        for column, how in cells.items():
            typed.check(how.get("kind"), str, f"{where}: options.cells.{column}.kind")
    readings = entry.get("readings", {})
    typed.check(readings, dict[str, dict[str, Any]], f"{where}: readings")


def _refuse_doubled(node: Any, where: str) -> None:
    """Refuse a key that stands twice in one mapping of a YAML document."""
    if isinstance(node, yaml.MappingNode):
        names = [name.value for name, _ in node.value if name.tag.endswith(":str")]
        for name in names:
            if names.count(name) > 1:
                line = node.start_mark.line + 1
                raise ConfigError(f"{where}: line {line}: {name} stands there twice")
        for _, value in node.value:
            _refuse_doubled(value, where)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _refuse_doubled(value, where)
