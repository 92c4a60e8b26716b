"""Every run of these tests is pinned as a whole."""

from judge.pinned import pytest_runtest_call

__all__ = ["pytest_runtest_call"]
