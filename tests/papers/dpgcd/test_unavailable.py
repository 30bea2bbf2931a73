"""Data that cannot be had are said so in words, without what a source answered."""

from types import SimpleNamespace

from dperm.core.experiment.config import compose
from dperm.papers.dpgcd import figures, tables
from dperm.pipeline import inputs
from dperm.present import drawing


def test_table_1_and_figure_2_have_no_trace(monkeypatch):
    record = {"status": "unavailable", "reason": "NameResolutionError: host"}
    monkeypatch.setattr(inputs, "load_problem", lambda config: None)
    monkeypatch.setattr(inputs, "load_optimum_record", lambda *given: record)
    monkeypatch.setattr(inputs, "unavailable_reason", lambda config: record["reason"])
    config = compose(["paper=dpgcd"])
    made = tables.sizes(config, SimpleNamespace(), ["mtp"])
    assert made.data.to_dict("records") == [
        {"problem": "mtp", "status": "not available"}
    ]
    figure, rows = figures.histograms(config, SimpleNamespace(options={}), ["mtp"])
    (text,) = figure.axes[0].texts
    assert text.get_text().replace("\n", " ") == drawing.UNAVAILABLE
    assert rows == []
    drawing.plt.close(figure)
