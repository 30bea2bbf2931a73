"""What is as it was but for one place: a frozen section, or a file."""

from dataclasses import replace


def changed(section, key, value):
    """A copy of a section with another value at a key such as ``paper.sweeps``."""
    first, _, rest = key.partition(".")
    inner = changed(getattr(section, first), rest, value) if rest else value
    return replace(section, **{first: inner})


def edit(path, old, new, count=-1):
    """Replace text that stands in a file."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))
