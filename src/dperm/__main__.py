"""Run the pipeline in the current folder: ``python -m dperm dpcd -j 2``.

Whatever follows is given to Snakemake, with the Snakefile and the profile that came
with the package. The configuration is ``./conf`` if there is one, else the package's;
``python -m dperm --copy-conf`` puts a copy here to be edited.
"""

import os
import shutil
import sys
from pathlib import Path

from dperm.config import conf_dir, home


def main() -> None:
    """Call Snakemake, or copy the configuration."""
    arguments = sys.argv[1:]
    if arguments == ["--copy-conf"]:
        shutil.copytree(conf_dir(), "conf")
        return
    root = home()
    here = Path(sys.executable).parent  # jobs must find the same Python
    os.environ["PATH"] = f"{here}{os.pathsep}{os.environ.get('PATH', '')}"
    from snakemake.cli import main as snakemake

    profile = str(root / "profiles" / "default")
    given = ["--snakefile", str(root / "Snakefile"), "--workflow-profile", profile]
    sys.argv[0] = "snakemake"
    snakemake([*given, *arguments])


if __name__ == "__main__":
    main()
