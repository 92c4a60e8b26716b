"""Compares teams, and measures how multi-agent a service is."""
