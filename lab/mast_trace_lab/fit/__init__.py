"""Fits a profile to labels of several sources, and measures what it is worth on faults that it has not seen.

Entry: `mast_trace_lab.fit.fit_on.fit_on`.
"""
