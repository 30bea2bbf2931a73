"""What the wheel does in an environment without extras; run by ``make wheel``."""

import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import numpy as np

import dperm

BIN = Path(sys.executable).parent
EXTRA = "pip install 'dperm[pipeline]'"


def said(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        [BIN / "dperm", *words], capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def main() -> None:
    names = {one.metadata["Name"].lower() for one in distributions()}
    assert not names & {"snakemake", "matplotlib", "pyarrow", "dask"}

    rng = np.random.default_rng(0)
    X = rng.uniform(20.0, 90.0, (2000, 2))
    y = X @ [1.0, -2.0] + rng.normal(0.0, 1.0, 2000)
    model = dperm.fit(X, y, bounds=(20, 90), label_bounds=(-160, 50))
    assert model.score(X, y) > 0.9 and model.epsilon_.given[0] == "n"
    print(f"dperm.fit: {model.solver_}, {model.epsilon_}")

    code, text = said("try", "problem=yields.csv", "target=yield", "fresh=5")
    assert code == 0 and "take " in text and EXTRA in text, text
    assert Path("results/try/yields/try.csv").is_file()
    print(text)

    for words in (("dpcd",), ("figures/dpcd/figure1.png",)):
        code, text = said(*words)
        assert code == 1 and EXTRA in text and "Traceback" not in text, text
    try:
        __import__("dperm.papers")
    except ModuleNotFoundError as error:
        assert EXTRA in str(error)
    else:
        raise AssertionError("dperm.papers")
    print("what needs an extra says which")


if __name__ == "__main__":
    main()
