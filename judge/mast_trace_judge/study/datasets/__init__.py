"""Labelled runs, and the sets of them that `mast-trace dataset build` writes."""
