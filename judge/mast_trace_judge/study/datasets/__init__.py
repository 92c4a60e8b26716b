"""Readers of labelled runs. The data itself never ships with the project."""
