"""The shared kinds, on results made by hand."""

from types import SimpleNamespace

import pandas as pd
import pytest

from dperm.config import schema
from dperm.experiments import inputs, results
from dperm.experiments.results import Result
from dperm.papers.shared import figures, tables
from dperm.plotting import drawing

PRODUCT = SimpleNamespace(calibration="tight", timed=False)


def result(solver, status="ok"):
    common = {"calibration": "tight", "passes": 2.0, "step": 1.0, "clip": 1.0}
    tuned = [{**common, "replicate": r, "status": status, "objective": 1.0 + r,
              "relative_error": 0.1 * (1 + r)} for r in range(2)]  # fmt: skip
    fresh = [{**common, "checkpoint": at, "seconds": at, "true_epsilon": 0.5,
              "relative_error": error} for at, error in ((0.0, 1.0), (2.0, 0.5))
             for _ in range(3)]  # fmt: skip
    kept = pd.DataFrame(
        fresh if status == "ok" else fresh[:0], columns=list(fresh[0])
    )
    return Result("one", solver, solver.upper(), pd.DataFrame(tuned), kept, "")


@pytest.fixture
def shown(monkeypatch):
    """A figure of the results, with options of the product."""
    penalty, privacy = (
        SimpleNamespace(l1=0.0, l2=0.5),
        SimpleNamespace(epsilon=1.0),
    )
    problem = SimpleNamespace(title="One", privacy=privacy, loss="logistic",
                              penalty=penalty)  # fmt: skip

    def draw(*found, sweeps=(), two=(), **options):
        """``two``, results of a second problem."""
        every = {"one": list(found)} | ({"two": list(two)} if two else {})
        other = SimpleNamespace(**{**vars(problem), "title": "Two"})
        titles = {"one": problem, "two": other}
        monkeypatch.setattr(results, "load", lambda *_: every)
        monkeypatch.setattr(figures, "titles", lambda *_: titles)
        product = SimpleNamespace(
            calibration="tight", timed=False, sweeps=sweeps
        )
        return figures.trajectories(
            None, None, None, product, list(every), **options
        )

    return draw


def test_curves_are_named_with_what_they_cost_and_titles_say_the_penalty(
    shown,
):
    picture = shown(
        result("a"), result("b"), names={"a": "new"}, title="penalty"
    )
    assert set(picture.rows["algorithm"]) == {"new", "B"}
    assert picture.labels["one", "new"] == "new, $\\epsilon$ 0.5"
    assert picture.titles["one"] == "One\nlogistic + L2, $\\lambda$ = 0.5"
    figure = drawing.draw(picture)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert sorted(texts) == sorted(picture.labels.values())
    drawing.plt.close(figure)


def test_what_diverged_is_said_and_stops_no_figure(shown):
    picture = shown(result("a"), result("b", status="diverged"))
    assert set(picture.rows["algorithm"]) == {"A"}
    assert picture.note.endswith("one, B: all diverged")


def test_a_problem_without_data_is_named_and_has_no_panel(shown, caplog):
    trace = "NameResolutionError: HTTPSConnection(host='www.openml.org')"
    empty = pd.DataFrame({"status": ["unavailable"]})
    lost = Result("two", "a", "A", pd.DataFrame(), empty, trace)
    picture = shown(result("a"), two=[lost])
    figure = drawing.draw(picture)
    assert len(figure.axes) == 1 and set(picture.rows["panel"]) == {"one"}
    assert picture.note.endswith(f"Two: {drawing.UNAVAILABLE}")
    assert trace in caplog.text
    drawing.plt.close(figure)


def test_errors_without_a_published_table(monkeypatch):
    monkeypatch.setattr(results, "load", lambda *_: {"one": [result("a")]})
    made = tables.relative_error(None, None, PRODUCT, ["one"])
    assert "published_mean" not in made
    assert made.loc[0, ["mean", "fresh_mean"]].tolist() == pytest.approx(
        [0.15, 0.5]
    )


def ended(ends, start=1.0):
    """A result whose fresh runs end at these errors, by numbers of passes."""
    rows, tuned = [], []
    for passes, errors in ends.items():
        common = {
            "calibration": "tight",
            "passes": passes,
            "step": 1.0,
            "clip": 1.0,
        }
        known = {
            "status": "ok",
            "objective": errors[0],
            "relative_error": errors[0],
        }
        tuned += [{**common, "replicate": r, **known} for r in range(2)]
        for at, values in ((0.0, [start] * len(errors)), (passes, errors)):
            rows += [{**common, "checkpoint": at, "seconds": at, "true_epsilon": 0.5,
                      "relative_error": value} for value in values]  # fmt: skip
    return Result("one", "a", "A", pd.DataFrame(tuned), pd.DataFrame(rows), "")


SPREAD = [0.10, 0.14, 0.12, 0.13]


def test_numbers_of_passes_that_end_as_well_are_drawn_thin_and_named(shown):
    found = ended(
        {2.0: SPREAD, 5.0: [0.11, 0.13, 0.15], 9.0: [0.5, 0.51, 0.52]}
    )
    assert figures.as_good(found, "tight") == [5.0]
    rows = shown(found, ties=True).rows
    thin = rows[rows["role"] == "thin"]
    assert set(thin["algorithm"]) == {"A, 5 passes"} and [*thin["x"]] == [
        0.0,
        5.0,
    ]
    assert "thin" not in set(shown(found).rows["role"])


def test_apart_or_nothing_learnt_is_no_tie():
    apart = ended({2.0: [0.10, 0.11, 0.12], 5.0: [0.2, 0.21, 0.22]})
    assert figures.as_good(apart, "tight") == []
    stuck = ended({2.0: SPREAD, 5.0: SPREAD}, start=0.12)
    assert figures.as_good(stuck, "tight") == []


def test_titles_follow_the_overrides():
    stored = inputs.Inputs(schema.Data(), ["problem.privacy.epsilon=7"])
    assert inputs.titles(stored, ["red_wine"])["red_wine"].privacy.epsilon == 7


def test_short_runs_are_put_apart_from_the_start(shown):
    picture = shown(result("a"), stretched=["one", "elsewhere"])
    assert [*picture.own] == ["one"]
    assert picture.own["one"]["xscale"].linthresh == 2.0  # where the run ends
    assert picture.note.endswith(f"One: {figures.STRETCHED}")
    figure = drawing.draw(picture)
    assert figure.axes[0].get_xscale() == "symlog"
    drawing.plt.close(figure)
