"""Wrong worlds are noticed by as many claims as when this was written."""

import pytest

from dperm.core.experiment.config import compose
from dperm.judge.claims import groups
from dperm.judge.judge import HELD, judged
from dperm.report import claims

from . import worlds

MANY = 60  # most groups of a claim that is tried: others take long
NOTICED = {  # claims that notice a world, of those that hold
    "names exchanged": 41,
    "half empty": 62,
    "a group lost": 71,
    "errors x 0.7": 12,
    "errors x 1.4": 9,
}
HOLD = 83  # of the claims that are tried


@pytest.fixture(scope="module")
def seen():
    """Worlds that every claim notices, of those that hold and read a table."""
    found = {}
    for config in claims.papers(compose([])):
        tables, arguments = claims.tables(config), claims.arguments(config)
        for claim in claims.load(config):
            parts = claim.read().values()
            most = max(len(groups(part.each)) for part in parts)
            if most > MANY or not any(part.table for part in parts):
                continue
            if judged(claim, tables, arguments).verdict in HELD:
                name = f"{config.paper.name} {claim.place} {claim.says}"
                found[name] = worlds.noticed(claim, tables, arguments)
    return found


@pytest.mark.parametrize("world", worlds.WORLDS)
def test_claims_notice_wrong_worlds(seen, world):
    assert len(seen) >= HOLD
    assert sum(world in names for names in seen.values()) >= NOTICED[world]


def test_most_claims_notice_something(seen):
    blind = [name for name, names in seen.items() if not names]
    assert len(blind) <= 4, blind
