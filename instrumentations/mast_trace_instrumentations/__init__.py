"""Instrumentations of agent frameworks, each a table of patches."""
