"""Fixtures that run stages on the bundled data sets."""

import pytest

from dperm.config.config import compose
from dperm.experiments import inputs as dataset


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    """The bundled data sets, fetched, prepared and solved once."""
    folder = tmp_path_factory.mktemp("data")
    for problem in ("diabetes", "breast_cancer", "sparse_small"):
        config = compose([f"problem={problem}", f"data.dir={folder}"])
        for stage in (dataset.fetch, dataset.prepare, dataset.optimum):
            stage(config)
    return folder


@pytest.fixture
def configured(data_dir, tmp_path):
    """Compose a configuration that writes below a folder of its own."""

    def make(*overrides, results="results"):
        return compose(
            [
                f"data.dir={data_dir}",
                f"output.results={tmp_path / results}",
                f"output.figures={tmp_path / 'figures'}",
                "scale=smoke",
                "problem=diabetes",
                *overrides,
            ]
        )

    return make
