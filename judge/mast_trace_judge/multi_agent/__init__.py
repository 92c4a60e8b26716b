"""Measures of how multi-agent a system is, after arXiv 2505.21298: the paper's demands as numbers.

Every measure answers one question, has a null that a team in name only would reach, an interval over
the system's runs, and a sentence on what it does not say. There is no total score. `measured` takes the
runs of one service and returns all of them.
"""
