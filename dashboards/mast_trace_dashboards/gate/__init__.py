"""The gate: counts of new runs and of a baseline, and the report of their comparison."""
