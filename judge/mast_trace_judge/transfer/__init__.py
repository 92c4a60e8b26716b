"""Imports runs from files of other programs, and exports runs with verdicts and labels."""
