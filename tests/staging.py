"""Fixtures that run stages on the bundled data sets."""

import shutil

import pytest

from dperm.config.config import compose
from dperm.experiments import inputs as dataset


def solve_problems(folder):
    """Fetch, prepare and solve the bundled data sets in a folder."""
    for problem in ("diabetes", "breast_cancer", "sparse_small"):
        config = compose([f"problem={problem}", f"data.dir={folder}"])
        for stage in (dataset.fetch, dataset.prepare, dataset.optimum):
            stage(config)


@pytest.fixture(scope="session")
def data_dir(made_once, tmp_path_factory):
    """The bundled data sets, fetched, prepared and solved once; a worker's own copy."""
    folder = tmp_path_factory.mktemp("data")
    made = made_once("data", solve_problems)
    shutil.copytree(made, folder, dirs_exist_ok=True)
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
