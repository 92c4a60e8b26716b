"""`mast-trace doctor` where CrewAI is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from installed import installed

if not installed("crewai.crew"):
    pytest.skip("needs CrewAI", allow_module_level=True)

from doctor_process import diagnosed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.framework("crewai")


def test_every_target_is_there_and_litellm_may_be_absent(tmp_path: Path) -> None:
    """CrewAI works without LiteLLM: its absence is reported, and is no problem."""
    report = diagnosed("crewai", tmp_path)
    assert report["absent"] == ([] if installed("litellm") else ["litellm"])
