"""Runs a user's program under a limit: its process, what judges it, and what restores the state outside of it."""
