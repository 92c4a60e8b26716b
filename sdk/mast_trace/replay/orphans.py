"""Ends a replayed program whose starter was killed, so that it does not go on with live calls."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_PAUSE: Final = 1.0


def end_with(starter: int, folder: Path) -> None:
    """End this program, its child processes and its folder after the process ``starter`` has ended.

    Nothing is done in a program that does not lead a session of its own: its process group may hold
    other programs.

    Args:
        starter: id of the process that wrote the plan.
        folder: the replay's folder.
    """
    if os.getsid(0) != os.getpgrp():
        return

    def watch() -> None:
        while _is_there(starter):
            time.sleep(_PAUSE)
        shutil.rmtree(folder, ignore_errors=True)
        os.killpg(os.getpgrp(), signal.SIGKILL)

    threading.Thread(target=watch, name="mast-trace-replay", daemon=True).start()


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
