"""`mast-trace doctor` where LangGraph is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from installed import installed

if not installed("langgraph.graph"):
    pytest.skip("needs LangGraph", allow_module_level=True)

from doctor_process import diagnosed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.framework("langgraph")


def test_every_target_is_there(tmp_path: Path) -> None:
    """Nothing is reported as missing, and nothing is left unlooked at."""
    assert diagnosed("langgraph", tmp_path)["reason"] == ""
