"""Download of one OpenML data set; run as a process of its own.

The openml library waits for ever on a silent host and reads its settings from the
environment when it is imported: a child process bounds the one and holds the other.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from dperm.data.errors import SourceError, explain

SERVER = "DPERM_OPENML_SERVER"
PATIENCE = 10  # the whole download may take this many time-outs


def download_openml(
    identifier: int, folder: Path, timeout: float, retries: int
) -> tuple[Path, str | None]:
    """Download an OpenML data set as ARFF through the openml library.

    Parameters
    ----------
    identifier : int
        Number of the data set.
    folder : Path
        Cache and settings of the library are kept below it.
    timeout : float
        Seconds without an answer before it is given up.
    retries : int
        How often the library asks.

    Returns
    -------
    path : Path
        The ARFF file.
    target : str or None
        The column that OpenML takes as the target.

    Raises
    ------
    SourceError
        If the server does not answer or does not know the data set.
    """
    folder.mkdir(parents=True, exist_ok=True)
    request = {"id": identifier, "timeout": timeout, "retries": max(1, retries)}
    command = [sys.executable, "-P", "-m", __name__, json.dumps(request)]
    try:
        done = subprocess.run(
            command,
            env=_environment(folder),
            capture_output=True,
            text=True,
            timeout=PATIENCE * timeout,
        )
    except subprocess.TimeoutExpired:
        limit = PATIENCE * timeout
        raise SourceError(f"time-out: not complete after {limit:g} s") from None
    if done.returncode:
        raise SourceError(_last_line(done.stderr) or f"exit code {done.returncode}")
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    return Path(answer["path"]), answer["target"]


def _environment(folder: Path) -> dict[str, str]:
    kept = str(folder.resolve())
    return {
        **os.environ,
        "OPENML_CACHE_DIR": kept,
        "XDG_CONFIG_HOME": kept,
        "XDG_CACHE_HOME": kept,
        # Parquet lies on another host, which would be asked first.
        "OPENML_SKIP_PARQUET": "true",
        "PYTHONWARNINGS": "ignore",
    }


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _download(request: dict[str, Any]) -> dict[str, Any]:
    import openml
    import requests

    requests.Session.request = functools.partialmethod(  # type: ignore[method-assign, assignment]
        requests.Session.request, timeout=request["timeout"]
    )
    if os.environ.get(SERVER):
        openml.config.server = os.environ[SERVER]
    openml.config.set_retry_policy("human", request["retries"])
    found = openml.datasets.get_dataset(
        request["id"],
        download_data=True,
        download_qualities=False,
        download_features_meta_data=False,
    )
    return {"path": str(found.data_file), "target": found.default_target_attribute}


def _main() -> int:
    try:
        print(json.dumps(_download(json.loads(sys.argv[1]))))
    # The parent turns whatever goes wrong here into the reason it records.
    except Exception as error:
        print(explain(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
