"""What a solver cannot work with, by what it declares."""

import re

import pytest

from dperm.core import solvers
from dperm.core.experiment.config import compose
from dperm.core.solvers.capabilities import kept_sparse, obstacle

SPARSE = ["problem=sparse_small"]
CENTRED = [*SPARSE, "problem.preparation.standardize=true"]


def why(algorithm, *overrides, **options):
    module = solvers.load(algorithm)
    made = solvers.make_options(module, options)
    return obstacle(module, made, compose(list(overrides)).problem)


@pytest.mark.parametrize(
    ("algorithm", "overrides", "options", "said"),
    [
        ("dp_cd", SPARSE, {}, ""),
        ("dp_gcd", CENTRED, {}, ""),
        ("dp_sgd", SPARSE, {}, ""),
        ("dp_sgd", CENTRED, {}, "expected dp_cd or dp_gcd, found dp_sgd"),
        ("dp_cd_priv", CENTRED, {}, "expected dp_cd or dp_gcd, found dp_cd_priv"),
        ("dp_svrg", SPARSE, {}, "kept sparse: .*found dp_svrg"),
        ("dp_cd", SPARSE, {"periods": 2}, r"options\.periods"),
        ("dp_cd_priv", SPARSE, {"periods": 2}, r"options\.periods"),
        ("dp_cd", ["problem=diabetes"], {"periods": 2}, ""),
        ("dp_skgd", ["problem=california_raw"], {}, r"options\.composite: true"),
        ("dp_skgd", ["problem=california_raw"], {"composite": True}, ""),
        ("dp_skgd", ["problem=breast_cancer"], {}, ""),
        ("dp_fw", ["problem=diabetes"], {}, "family frank_wolfe"),
        ("noisy_sfw", ["problem=diabetes"], {}, "family streams"),
    ],
)
def test_obstacles(algorithm, overrides, options, said):
    found = why(algorithm, *overrides, **options)
    assert re.search(said, found) if said else found == ""


def test_what_is_sparse_is_known_before_it_is_read():
    sparse = {"sparse_small", "dorothea", "rcv1_train"}
    for name in (*sparse, "madelon_l1", "colon_cancer", "diabetes"):
        assert kept_sparse(compose([f"problem={name}"]).problem.dataset) == (
            name in sparse
        )
