"""Replays recorded runs."""
