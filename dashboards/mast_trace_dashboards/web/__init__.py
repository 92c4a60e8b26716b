"""The web view: run list, run page, comparison, labels, the judge's health."""
