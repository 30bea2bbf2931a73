"""Drawing: legends, ticks and styles; intervals and verdicts; tables as files."""

import dataclasses
import itertools
import math
import pkgutil
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from scipy import stats

import legible
from dperm import plotting
from dperm.config.config import read
from dperm.numerics import intervals
from dperm.numerics.intervals import (
    LEVEL,
    Measured,
    compared,
    measured,
    tuning_luck,
)
from dperm.plotting import drawing, styles
from dperm.plotting.tables import in_markdown
from dperm.storage.files import write_csv


def test_drawing_wakes_neither_numba_nor_the_statistics_of_scipy():
    names = ", ".join(
        f"dperm.plotting.{one.name}"
        for one in pkgutil.iter_modules(plotting.__path__)
    )
    code = f"import sys, {names}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert not {"numba", "scipy.stats"} & {*done.stdout.split()}


# --- legends, ticks, styles ----------------------------------------------------------


@pytest.mark.parametrize(("panels", "rows"), [(1, 5), (4, 1)])
def test_a_shared_legend_fits_the_figure(panels, rows):
    figure, axes = plt.subplots(
        1, panels, figsize=(3.1 * panels, 2.7), squeeze=False
    )
    axes = axes.flat
    for number in range(5):
        axes[0].plot([0, 1], label=f"a method with a long name, no. {number}")
    drawing.shared_legend(figure, 5)
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.width <= figure.bbox.width
    assert legend._ncols == 5 // rows


@pytest.mark.parametrize("is_named", [False, True])
def test_without_data_a_figure_says_why_in_place_of_its_panels(is_named):
    picture = drawing.Picture(
        drawing.frame([]),
        {"mtp": "MTP"},
        {},
        is_named=is_named,
        note="mtp: no source",
    )
    figure = drawing.draw(picture)
    (axes,) = figure.axes
    assert "mtp: no source" in [text.get_text() for text in axes.texts]
    plt.close(figure)


def test_names_at_the_ends_of_curves_do_not_overlap():
    ends = {f"m {k}": [3, 1 + k / 1e3] for k in range(5)}
    rows = [
        row
        for name, y in ends.items()
        for row in drawing.values("one", name, [1, 2], y, "curve")
    ]
    picture = drawing.Picture(
        drawing.frame(rows), {"one": "One"}, {"ylabel": "y"}, is_named=True
    )
    figure = drawing.draw(picture)
    heights = sorted(text.get_position()[1] for text in figure.axes[0].texts)
    assert (
        len(heights) == 5
        and np.diff(heights).min() >= drawing.LABEL_DISTANCE - 1e-9
    )
    assert heights[0] >= 0 and not figure.legends
    many = dataclasses.replace(picture, is_named=False)
    assert len(drawing.draw(many).legends[0].get_texts()) == 5
    plt.close("all")


def panel(rows, **axes):
    """The only panel of a picture."""
    shown = drawing.Picture(
        drawing.frame(rows), {"one": "One"}, axes, is_named=True
    )
    figure = drawing.draw(shown)
    figure.canvas.draw()
    return figure.axes[0]


def test_a_method_has_a_line_of_its_own_with_its_number():
    runs = {"first": [0.02, 0.04], "second": [0.5, 0.5], "w = 0": [0.9]}
    rows = [
        drawing.summary("one", name, 1.0, np.array(values))
        | {"role": "method"}
        for name, values in runs.items()
    ]
    at = panel(rows, xscale="log")
    assert [label.get_text() for label in at.get_yticklabels()] == list(runs)
    assert at.get_ylim()[0] > at.get_ylim()[1], "the first is at the top"
    assert [text.get_text() for text in at.texts] == ["0.030", "0.50", "0.90"]
    plt.close("all")


@pytest.mark.parametrize(
    "ends", [(3e-4, 1.8e-3), (1e-3, 2e-2), (0.4, 0.7), (1, 1e4)]
)
def test_a_logarithmic_axis_has_two_numbers_that_do_not_overlap(ends):
    at = panel(drawing.values("one", "a", ends, ends, "dots"), xscale="log")
    low, high = at.get_window_extent().intervalx
    labels = [
        one for one in at.get_xticklabels(which="both") if one.get_text()
    ]
    boxes = sorted(tuple(one.get_window_extent().intervalx) for one in labels)
    places = [box for box in boxes if low <= np.mean(box) <= high]
    assert len(places) >= 2
    assert all(one[1] < two[0] for one, two in itertools.pairwise(places))
    plt.close("all")


DRAWN = [
    path
    for path in sorted((Path(__file__).parents[2] / "figures").glob("*/*.csv"))
    if {*drawing.CURVE_COLUMNS, drawing.ROLE} <= {*pd.read_csv(path, nrows=0)}
]


SCALES = ("log", "weekly", "linear", "weekly")  # of one figure after the other
BOTH = [
    pytest.param(
        path, scale, id=f"{scale}-{'-'.join(path.parts[-2:])}",
        marks=() if scale == by_day else pytest.mark.long,
    )
    for path, by_day in zip(DRAWN, itertools.cycle(SCALES), strict=False)
    for scale in ("log", "linear")
]  # fmt: skip


@pytest.mark.parametrize(("path", "scale"), BOTH)
def test_every_figure_can_be_read_when_it_is_drawn_from_its_data(path, scale):
    """In the widest form that a figure may have: each panel with its own scales."""
    rows = pd.read_csv(path)
    titles = {
        name: f"panel {k}" for k, name in enumerate(rows["panel"].unique()[:9])
    }
    shown = rows[rows["panel"].isin(titles)]
    names = {
        name: f"curve {k}"
        for k, name in enumerate(shown["algorithm"].unique())
    }
    labels = dict.fromkeys(((panel, "") for panel in titles), "")
    labels = {
        (panel, name): names[name] for panel, _ in labels for name in names
    }
    # a line a method, without numbers of y
    is_named = "method" in {*shown["role"]}
    axes = {"xlabel": "x", "ylabel": "y", "xscale": scale}
    axes["yscale"] = "linear" if is_named else "log"
    picture = drawing.Picture(
        shown, titles, axes, labels=labels, is_named=is_named
    )
    figure = drawing.draw(picture)
    faults = [*legible.faults(figure)]
    plt.close(figure)
    assert not faults


def test_a_figure_that_no_journal_prints_has_its_faults_named():
    figure, axes = plt.subplots(figsize=(8, 2))
    axes.plot([1, 2], color="#ffff00")
    axes.text(0.5, 0.5, "first", fontsize=5, transform=axes.transAxes)
    axes.text(0.5, 0.5, "second", color="0.8", transform=axes.transAxes)
    figure.text(1.2, 0.5, "third").set_in_layout(False)
    words = " ".join(legible.faults(figure))
    plt.close(figure)
    for fault in ("wider than a page", "small: 'first', 5", "pale: 'second'",
                  "overlap: 'first' and 'second'", "cut off: 'third'",
                  "pale: a stroke of [1. 1. 0.]"):  # fmt: skip
        assert fault in words


def test_methods_look_different_can_be_seen_and_keep_their_looks():
    names = [*styles.METHODS, *(f"new {k}" for k in range(24))]
    found = styles.styles_of(names)
    assert len({str(look) for look in found.values()}) == len(names)
    families = [drawing.family(names[:count]) for count in (2, 5, 10)]
    for look in (
        look for each in (found, *families) for look in each.values()
    ):
        assert legible.contrast(to_rgb(look["color"]), (1, 1, 1)) >= 3
    grey = to_rgb("#777777")
    assert legible.contrast(grey, (1, 1, 1)) == pytest.approx(4.48, abs=0.01)
    two = styles.styles_of(["abc", "DP-SGD", "cba", "abc"])  # of anagrams too
    assert two["abc"] == found["new 0"] and two["cba"] == found["new 1"]
    assert two["DP-SGD"] == found["DP-SGD"]
    solvers = {*read("paper", "arena").sweeps["race"].grid["solver"]}
    for name in ("dpcd", "dpgcd", "dpskgd"):
        solvers |= {*read("paper", name).runs}
    assert {read("solver", solver).label for solver in solvers} <= {
        *styles.METHODS
    }


# --- intervals are those of scipy.stats -----------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_intervals_of_student(level):
    for freedom in (1, 2, 4, 9, 3.7, 61.3, 1e4):
        expected = stats.t.ppf((1 + level) / 2, freedom)
        found = intervals.t_quantile(freedom, level)
        assert found == pytest.approx(expected, rel=1e-9)
    values = np.array([1.0, 2.0, 4.0])
    expected = stats.t.interval(level, 2, values.mean(), stats.sem(values))
    np.testing.assert_allclose(intervals.student(values, level), expected)
    assert intervals.student(np.array([3.0]), level) == (3.0, 3.0)


@pytest.mark.parametrize(
    ("hits", "runs"), [(0, 10), (3, 10), (10, 10), (1, 1), (0, 1)]
)
def test_the_interval_of_a_probability(hits, runs):
    found = stats.binomtest(hits, runs).proportion_ci(0.95, "exact")
    np.testing.assert_allclose(
        intervals.clopper_pearson(hits, runs),
        (found.low, found.high),
        atol=1e-12,
    )


def test_the_interval_of_an_exponent():
    rng = np.random.default_rng(0)
    x = np.geomspace(1, 100, 7)
    y = 3 * x**-0.6 * rng.lognormal(0, 0.2, 7)
    fit = stats.linregress(np.log(x), np.log(y))
    half = stats.t.ppf(0.975, 5) * fit.stderr
    expected = fit.slope, fit.slope - half, fit.slope + half
    np.testing.assert_allclose(intervals.power(x, y), expected, rtol=1e-9)


# --- verdicts on tuned methods --------------------------------------------------------

# noise of a setting's own, noise common to a seed, width of the valley in the step
LAWS = [(0.3, 0.2, 1.0), (0.05, 0.3, 1.0), (0.5, 0.1, 0.3), (0.2, 0.2, 0.1)]


def tuned_once(rng, law, shift=0.0, replicates=5, fresh=12):
    """A method tuned on a valley of 120 settings and run on fresh seeds."""
    own, common, width = law
    steps, passes = np.linspace(-3, 3, 40), np.linspace(-1, 1, 3)
    p, s = (grid.ravel() for grid in np.meshgrid(passes, steps, indexing="ij"))
    level = shift + 0.5 * (s / width) ** 2 + 0.1 * p * p

    def seeds(count):
        noise = own * rng.standard_normal((len(s), count))
        return np.exp(
            level[:, None] + noise + common * rng.standard_normal(count)
        )

    errors, later = seeds(replicates), seeds(fresh)
    settings = {"passes": p, "step": s, "clip": np.ones(len(s))}
    rows = {
        name: np.repeat(values, replicates)
        for name, values in settings.items()
    }
    rows |= {"replicate": np.tile(np.arange(replicates), len(s)), "status": "ok",
             "objective": errors.ravel(), "relative_error": errors.ravel()}  # fmt: skip
    return measured(later[errors.mean(axis=1).argmin()], pd.DataFrame(rows))


def apart(found):
    return found["ci_high"] < 1 or found["ci_low"] > 1


@pytest.mark.parametrize("law", LAWS)
def test_one_law_under_two_names_is_decided_at_the_stated_rate(law):
    rng, trials = np.random.default_rng(1), 150
    decided = sum(
        apart(compared(tuned_once(rng, law), tuned_once(rng, law)))
        for _ in range(trials)
    )
    # as many as a rate of 5 % gives in all but one of a thousand tests
    assert decided <= stats.binom.ppf(0.999, trials, 1 - LEVEL)


@pytest.mark.parametrize("law", LAWS[:2])
def test_a_factor_of_three_is_called(law):
    rng = np.random.default_rng(3)
    for _ in range(20):
        better, worse = tuned_once(rng, law), tuned_once(rng, law, math.log(3))
        assert compared(better, worse)["ci_high"] < 1
        assert compared(worse, better)["ci_low"] > 1


def test_choices_that_agree_have_no_luck_and_few_replicates_no_verdict():
    law = (1e-9, 0.3, 0.2)
    assert tuned_once(np.random.default_rng(4), law).luck < 1e-12
    found = compared(*(tuned_once(np.random.default_rng(k), law, k, replicates=2)
                       for k in (0, 2)))  # fmt: skip
    assert found["ci_low"] == 0 and found["ci_high"] == math.inf


def test_the_luck_is_the_variance_of_choices():
    """Two settings without noise, apart by a factor e, chosen 2 and 3 times of 5."""
    errors = {1.0: [1.0, 1.0, 1.0, 1.0, 1.0], 2.0: [math.e] * 5}
    objective = {1.0: [0, 0, 1, 1, 1], 2.0: [1, 1, 0, 0, 0]}
    rows = [
        (1.0, step, 1.0, r, "ok", objective[step][r], errors[step][r])
        for step in errors for r in range(5)
    ]  # fmt: skip
    columns = ["passes", "step", "clip", "replicate", "status", "objective"]
    table = pd.DataFrame(rows, columns=[*columns, "relative_error"])
    luck, count = tuning_luck(table)
    assert count == 5
    assert luck == pytest.approx(np.var([0, 0, 1, 1, 1], ddof=1))


def test_the_interval_is_welchs_where_tuning_had_no_luck():
    a, b = np.random.default_rng(5).lognormal(size=(2, 9))
    first, second = (
        Measured(np.log(x).mean(), np.log(x).var(ddof=1) / 9, 0.0, 9, 5)
        for x in (a, b)
    )
    welch = stats.ttest_ind(np.log(a), np.log(b), equal_var=False)
    found, known = compared(first, second), welch.confidence_interval(0.95)
    assert found["ci_low"] == pytest.approx(math.exp(known.low))
    assert found["ci_high"] == pytest.approx(math.exp(known.high))


# --- tables as files ------------------------------------------------------------------


def test_a_reason_of_several_lines_stays_one_row_of_markdown():
    data = pd.DataFrame(
        {"problem": ["mtp", "log1"], "status": ["gone:\n- here", None]}
    )
    rows = in_markdown(data, "Both.").splitlines()
    assert len(rows) == 6 and "| gone: - here |" in rows[4]


def test_a_table_is_read_again_as_it_was_and_last_bits_do_not_reach_the_file(
    tmp_path,
):
    data = pd.DataFrame({
        "mean": [np.inf, np.nan], "cell": ["no", np.nan], "passes": [2.0, 5.0],
        "runs": [10**12, 3], "held": [True, False], "status": ["gone:\n- here", "ok"],
    })  # fmt: skip
    csv = tmp_path / "table.csv"
    write_csv(csv, data)
    pd.testing.assert_frame_equal(pd.read_csv(csv), data, check_dtype=False)
    assert 0.1 + 0.2 != 0.3 and 2 / 3 - 1e-16 != 2 / 3
    for third, mixed in ((0.1 + 0.2, 2 / 3), (0.3, 2 / 3 - 1e-16)):
        write_csv(
            csv,
            pd.DataFrame({"error": [third, 1 / 3], "mixed": [mixed, "no"]}),
        )
        rows = csv.read_text().splitlines()[1:]
        assert rows == ["0.3,0.6666666667", "0.3333333333,no"]
