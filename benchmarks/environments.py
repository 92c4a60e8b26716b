"""Virtual environments for programs and instrumentations that contradict each other.

They are made once, under the user's cache folder, and made anew when what they should hold changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "mast-trace"


def environment(name: str, requirements: Sequence[str]) -> Path:
    """Make, or find, an environment.

    Args:
        name: a folder's name, or several with slashes.
        requirements: arguments of ``pip install``.

    Returns:
        The path of its Python.

    Raises:
        subprocess.CalledProcessError: the requirements cannot be installed together; what the
            installer said is on standard error.
    """
    folder = CACHE / name
    python = folder / "bin" / "python"
    wanted = "\n".join(requirements)
    noted = folder / "requirements.txt"
    if not noted.exists() or noted.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        uv = shutil.which("uv")
        make = [uv, "venv", "-q"] if uv else [sys.executable, "-m", "venv"]
        pip = [uv, "pip"] if uv else [str(python), "-m", "pip"]
        into = ["-p", str(python)] if uv else []
        subprocess.run([*make, str(folder)], check=True)
        subprocess.run([*pip, "install", "-q", *into, *requirements], check=True)
        noted.write_text(wanted)
    return python
