"""Short names for the types of pytest's own fixtures."""

import pytest

Capture = pytest.CaptureFixture[str]
Logs = pytest.LogCaptureFixture
Patch = pytest.MonkeyPatch
