"""Writes the tables of the injection benchmark from its results: ``python benchmarks/injection/injection_page.py``."""

from pathlib import Path

RESULTS = Path(__file__).with_name("results.json")


def write(found): ...
