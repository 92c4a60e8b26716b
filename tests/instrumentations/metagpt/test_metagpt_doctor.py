"""`mast-trace doctor` where MetaGPT is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT", allow_module_level=True)

from doctor_process import diagnosed

from mast_trace_instrumentations.metagpt import MetaGPTInstrumentor

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.framework("metagpt")


def test_every_target_is_there_without_a_configuration(tmp_path: Path) -> None:
    """MetaGPT cannot be imported without one; it is checked all the same, and leaves no files."""
    report = diagnosed("metagpt", tmp_path)
    assert len(report["patched"]) == len(MetaGPTInstrumentor.patches)
    assert list(tmp_path.iterdir()) == []
