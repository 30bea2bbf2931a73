"""The shared kinds, on results made by hand."""

from types import SimpleNamespace

import pandas as pd
import pytest

from dperm.core.experiment import results
from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.results import Result
from dperm.kinds import figures, tables
from dperm.present import drawing

PRODUCT = SimpleNamespace(calibration="strict", options={}, timed=False)


def result(solver, status="ok"):
    common = {"calibration": "strict", "passes": 2.0, "step": 1.0, "clip": 1.0}
    tuned = [{**common, "replicate": r, "status": status, "objective": 1.0 + r,
              "relative_error": 0.1 * (1 + r)} for r in range(2)]  # fmt: skip
    fresh = [{**common, "checkpoint": at, "seconds": at, "true_epsilon": 0.5,
              "relative_error": error} for at, error in ((0.0, 1.0), (2.0, 0.5))
             for _ in range(3)]  # fmt: skip
    kept = pd.DataFrame(fresh if status == "ok" else fresh[:0], columns=list(fresh[0]))
    return Result("one", solver, solver.upper(), pd.DataFrame(tuned), kept, "")


@pytest.fixture
def shown(monkeypatch):
    """A figure of the results, with options of the product."""
    penalty, privacy = SimpleNamespace(l1=0.0, l2=0.5), SimpleNamespace(epsilon=1.0)
    problem = SimpleNamespace(title="One", privacy=privacy, loss="logistic",
                              penalty=penalty)  # fmt: skip
    config = SimpleNamespace(paper=SimpleNamespace(name="mine"))

    def draw(*found, **options):
        monkeypatch.setattr(results, "load", lambda *_: {"one": list(found)})
        monkeypatch.setattr(results, "titles", lambda *_: {"one": problem})
        product = SimpleNamespace(calibration="strict", options=options, timed=False)
        figure, rows = figures.trajectories(config, product, ["one"])
        drawing.plt.close(figure)
        return figure, pd.DataFrame(rows)

    return draw


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_what_diverged_is_said_and_stops_no_figure(shown):
    figure, rows = shown(result("a"), result("b", status="diverged"))
    assert labels(figure.axes[0]) == ["A (true $\\epsilon$ 0.50)", "B: all diverged"]
    assert set(rows["algorithm"]) == {"A"}


def test_one_legend_below_has_no_epsilon(shown):
    figure, _ = shown(result("a"), result("b"), legend="below")
    assert figure.axes[0].get_legend() is None
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["A", "B"]


def test_labels_titles_and_ends(shown):
    figure, rows = shown(result("a"), names={"a": "new"}, title="penalty", ends=True)
    assert set(rows["algorithm"]) == {"new"}
    assert figure.axes[0].get_title() == "One\nlogistic + L2, $\\lambda$ = 0.5"
    ends = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    assert [float(line.get_xdata()[0]) for line in ends] == [2.0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"legend": "blow"}, r"options\.legend: .*found 'blow' \(did you mean below"),
        ({"solver": ["a"]}, r"mine/paper\.yaml: .*'solver' \(did you mean solvers"),
    ],
)
def test_a_slip_in_the_options_is_named(shown, options, said):
    with pytest.raises(ConfigError, match=said):
        shown(result("a"), **options)


def test_errors_without_a_published_table(monkeypatch):
    monkeypatch.setattr(results, "load", lambda *_: {"one": [result("a")]})
    made = tables.relative_error(None, PRODUCT, ["one"])
    assert "published_mean" not in made.data
    assert made.data.loc[0, ["mean", "fresh_mean"]].tolist() == pytest.approx(
        [0.15, 0.5]
    )
    assert made.text.loc[0, "2 passes"] == "**0.150**; fresh 0.500"


def test_the_first_calibration_of_a_kind_counts(monkeypatch):
    entries = [
        {"passes": passes, "calibrated": {"calibration": "strict", "noise": noise}}
        for passes, noise in ((5.0, 1), (2.0, 2), (5.0, 3))
    ]
    monkeypatch.setattr(results, "ledgers", lambda *_: entries)
    found = results.calibrated(None, result("a"))
    assert list(found) == [2.0, 5.0] and found[5.0]["strict"]["noise"] == 1
