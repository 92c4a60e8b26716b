"""Backups of a data folder and its database, and their restoration."""
