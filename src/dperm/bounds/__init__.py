"""Right-hand sides of utility theorems, one file per paper; they solve nothing."""
