"""Runs, verdicts, labels and spending: rows of ClickHouse as objects."""
