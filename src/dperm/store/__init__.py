"""Files that appear whole or not at all, and where a result came from."""
