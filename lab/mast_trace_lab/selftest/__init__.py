"""Examines the judge on faults in a system of one's own."""
