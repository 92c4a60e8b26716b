"""Every run of these tests is pinned as a whole."""

from judge.pinned import pinned

__all__ = ["pinned"]
