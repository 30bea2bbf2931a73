"""dperm: reproduction of papers on differentially private convex optimisation.

The package imports nothing heavy. It only tells Numba where to cache its machine code:
a folder named by a digest of the whole source, because Numba does not notice an edit in
a helper of another file and would run the old code on.
"""

import hashlib
import os
from pathlib import Path

from platformdirs import user_cache_dir

__version__ = "0.1.0"


def source_digest() -> str:
    """SHA-256 of all Python files of the package, in the order of their names."""
    here, digest = Path(__file__).parent, hashlib.sha256()
    for path in sorted(here.rglob("*.py")):
        digest.update(f"{path.relative_to(here)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(Path(user_cache_dir("dperm")) / source_digest()[:16])
)
