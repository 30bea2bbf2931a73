import itertools

from dperm.core.experiment.plan import seed_of


def test_no_two_names_share_a_seed():
    names = itertools.product(
        (1, 2),
        ("tune", "evaluate"),
        ("a", "b"),
        ("dp_cd", "dp_sgd"),
        (2.0, 5.0),
        range(10),
    )
    found = [seed_of(*name) for name in names]
    assert len(set(found)) == len(found) == 320


def test_seeds_are_what_they_were():
    """A change here changes every published result: it must be meant."""
    assert seed_of(1, "tune", "california_norm", "dp_cd", 2.0, 0) == 2190794563514816515


def test_whole_passes_have_one_name():
    assert seed_of(1, "tune", "a", "b", 2, 0) == seed_of(1, "tune", "a", "b", 2.0, 0)
