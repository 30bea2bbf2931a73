"""Frank-Wolfe methods, on all data or on distributed features."""
