"""Lessons of earlier runs, and experiments that measure their effect."""
