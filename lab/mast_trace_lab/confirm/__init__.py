"""Confirms the decisive error of a run by replays."""
