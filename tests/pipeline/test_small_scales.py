"""What of a paper the small scales run."""

from dperm.core.experiment.config import compose
from dperm.pipeline import products


def test_a_small_scale_leaves_out_sweeps_of_problems_that_it_does_not_run():
    given = ["paper=dpcd", "scale=smoke", "paper.sweeps.epsilon.small.problem="]
    narrow = "paper.offline=[diabetes]"
    whole, left = compose(given[:2]), compose([*given[:2], narrow])
    assert "ablation" in whole.paper.sweeps and "thresholds" in whole.paper.tables
    assert "ablation" not in left.paper.sweeps and "thresholds" not in left.paper.tables
    mixed = compose([*given[:2], narrow, f"{given[2]}[diabetes,breast_cancer]"])
    points = products.sweep_points(mixed, mixed.paper.sweeps["epsilon"])
    assert {point["problem"] for point in points} == {"diabetes"}
    assert "epsilon" in mixed.paper.figures
