"""``dperm.fit``, the estimators, and what a fit promises."""
