"""The judge: claims of papers are numbers read off result tables, with a range each."""
