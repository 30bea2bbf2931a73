"""``dperm try``: what it is asked for is checked before anything heavy is imported."""

from __future__ import annotations

from dperm.compare.request import parse, usage


def main(words: list[str]) -> None:
    """Print the comparison that the words ask for."""
    if {"-h", "--help"} & {*words}:
        print(usage())
        return
    request = parse(words)
    from threadpoolctl import threadpool_limits

    from dperm.compare import run

    with threadpool_limits(1):  # of what is loaded by now
        print(run.compare(request))
