"""Benchmarks: ``python -m bench`` prints ratios measured side by side in one run."""
