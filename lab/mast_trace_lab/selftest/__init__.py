"""Examines the judge on faults in your own system."""
