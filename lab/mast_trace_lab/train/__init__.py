"""Trains a model on labels."""
