"""`mast-trace doctor` where AG2 1.x is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from installed import installed

if not installed("ag2.network"):
    pytest.skip("needs AG2 1.x", allow_module_level=True)

from doctor_process import diagnosed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.framework("ag2")


def test_every_target_is_there(tmp_path: Path) -> None:
    """Nothing is reported as missing, and nothing is left unlooked at."""
    assert diagnosed("ag2", tmp_path)["reason"] == ""
