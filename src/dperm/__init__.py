"""dperm: reproduction of papers on differentially private convex optimisation.

The package imports nothing heavy. It only tells Numba where to cache its machine code:
a folder named by a digest of the rooms that hold kernels, because Numba does not notice
an edit in a helper of another file and would run the old code on.
"""

import hashlib
import os
from pathlib import Path

from platformdirs import user_cache_dir

__version__ = "0.1.0"


KERNELS = ("compiled.py", "erm", "solvers")  # where compiled functions are written


def source_digest(*rooms: str) -> str:
    """SHA-256 of the Python files of these rooms, or of all, in the order of names."""
    here, digest = Path(__file__).parent, hashlib.sha256()
    for path in sorted(here.rglob("*.py")):
        name = path.relative_to(here)
        if not rooms or name.parts[0] in rooms:
            digest.update(f"{name}\n".encode() + path.read_bytes())
    return digest.hexdigest()


os.environ.setdefault(
    "NUMBA_CACHE_DIR",
    str(Path(user_cache_dir("dperm")) / source_digest(*KERNELS)[:16]),
)
