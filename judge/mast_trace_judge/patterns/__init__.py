"""Patterns: failures that recur over runs, found without a model, named with one."""
