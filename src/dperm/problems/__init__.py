"""Losses, penalties, sets, and problems with their certified optimum."""
