"""Files whole or absent, locks, and the digest of code."""

IN_KEYS = "names"
