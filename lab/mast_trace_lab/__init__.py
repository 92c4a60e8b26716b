"""Experiments on programs: replays, confirmations, planted faults, fits, training, feedback and teams.

Each folder is a feature with a `plugin` that the core finds by an entry point. The core imports nothing
of this package, and works without it.
"""
