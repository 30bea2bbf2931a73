"""What papers say, their numbers, and whether these bear it out."""
