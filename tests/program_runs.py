"""Programs that tests run to their end, in processes of their own."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def run_program(
    *command: str | Path, status: int | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end and returns what it wrote; its exit status is checked if one is given."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert status in {None, ended.returncode}, f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended
