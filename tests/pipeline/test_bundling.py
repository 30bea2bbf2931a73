"""A bundle holds what its list says, after an edit of the data too."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np

from dperm.core.experiment.config import compose
from dperm.core.experiment.schema import Dataset, Reader, Source
from dperm.data import digest_arrays
from dperm.pipeline import inputs


def test_a_bundle_is_what_its_digests_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = Dataset("own", sources=[Source(kind="file", files=["own.csv"])],
                  reader=Reader(format="csv"))  # fmt: skip
    monkeypatch.setattr(inputs, "_datasets", lambda config: {"own": own})
    config = compose([])
    for y in ([3.0, 6.0], [9.0, 6.0]):
        Path("own.csv").write_text(f"a,b,y\n1,2,{y[0]}\n4,5,{y[1]}\n")
        with zipfile.ZipFile(inputs.bundle(config)) as archive:
            said = json.loads(archive.read("SOURCES.json"))["own"]["digest"]
            arrays = [
                np.load(io.BytesIO(archive.read(f"fetched/own/{name}.npy")))
                for name in ("X", "y")
            ]
        assert arrays[1].tolist() == y and digest_arrays(*arrays) == said
