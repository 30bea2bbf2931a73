"""Functions for papers that compare methods over data sets; any paper may name them."""
