"""The words of a run's command line, refused before anything of it starts.

Options are Snakemake's, and ``--config`` takes two keys. Snakemake itself answers a
misspelt option with its usage, and a misspelt key after it has listed all jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dperm.names import ConfigError, expected, parsed

CONFIG = ("scale", "set")  # keys of --config


def refuse(
    arguments: Sequence[str], targets: Iterable[str], scales: Iterable[str]
) -> None:
    """Refuse the first word of a run that is no option, key or target.

    Parameters
    ----------
    arguments : sequence of str
        The command line, without ``dperm``.
    targets, scales : iterable of str
        The known words that are no files, and the names of scales.

    Raises
    ------
    ConfigError
        One line, with the nearest name.
    """
    from snakemake.cli import get_argument_parser

    options = parsed(get_argument_parser(), arguments, "--version")
    for key, setting in _keys(arguments):
        if key not in CONFIG:
            raise ConfigError(f"--config: {expected(key, CONFIG)}")
        if key == "scale" and setting not in {*scales}:
            raise ConfigError(f"--config: scale: {expected(setting, scales)}")
    for word in options.targets:
        _refuse_target(word, [*targets])


def _keys(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """Keys and values that follow ``--config``, which Snakemake would read as YAML."""
    pairs = []
    is_config = False
    for word in arguments:
        key, equals, setting = word.partition("=")
        if word.startswith("-"):
            is_config = key == "--config" or word == "-C"
            key, equals, setting = (
                setting.partition("=") if is_config else ("", "", "")
            )
        if is_config and equals:
            pairs.append((key, setting))
    return pairs


def _refuse_target(word: str, targets: list[str]) -> None:
    key, equals, _ = word.partition("=")
    if not equals:
        if word.isidentifier() and word not in targets:
            raise ConfigError(expected(word, targets))
    elif key == "scale":
        raise ConfigError(f"{word!r}: a run takes it as --config {word}")
    elif "/" not in key:
        raise ConfigError(
            f"{word!r}: expected a command before it, or a target and --config "
            f'set="{word}"'
        )
