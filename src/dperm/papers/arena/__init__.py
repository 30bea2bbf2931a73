"""The arena: every private method on every problem, at one true epsilon."""
