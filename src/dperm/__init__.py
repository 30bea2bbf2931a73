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


def _source_digest() -> str:
    """SHA-256 of all Python files of the package, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(Path(user_cache_dir("dperm")) / _source_digest()[:16])
)
