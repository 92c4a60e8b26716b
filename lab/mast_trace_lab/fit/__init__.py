"""Fits a profile to labels."""
