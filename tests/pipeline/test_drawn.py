"""One process draws several products."""

import pytest

from dperm.core.experiment import plan
from dperm.core.experiment.locate import ConfigError
from dperm.pipeline import products, stages

SMALL = ("paper=dpcd", "paper.offline=[diabetes]", "scale.keep.clip=2")


@pytest.fixture
def drawing(configured, tmp_path, monkeypatch):
    """Draw as one job of Snakemake's would; the stems of what was written."""
    for problem, solver in plan.runs(configured(*SMALL)):
        stages.solve(configured(*SMALL, f"problem={problem}", f"solver={solver}"))
    monkeypatch.chdir(tmp_path)

    def draw(*asked):
        config = configured(*SMALL, f"drawn=[{','.join(asked)}]")
        return {path.stem for path in products.draw(config)}

    return draw


def test_what_is_asked_for_is_drawn(drawing):
    assert drawing("tables/noise", "tables/table2") == {"noise", "table2"}
    assert drawing("tables/table2") == {"table2"}


def test_a_table_asked_for_by_name_is_printed_in_markdown(drawing, configured, capsys):
    drawing("tables/noise")
    assert capsys.readouterr().out == ""
    (path,) = products.table(configured(*SMALL, "product=noise"))
    assert path.name == "noise.csv"
    assert "\n| problem " in capsys.readouterr().out


@pytest.mark.parametrize("asked", ["noise", "tables/", "maps/noise"])
def test_a_slip_is_refused(drawing, asked):
    with pytest.raises(ConfigError, match="expected figures/name"):
        drawing(asked)
