"""Types again the texts that a person typed while the recorded run was made."""

from __future__ import annotations

import builtins
from collections import deque
from typing import TYPE_CHECKING

from mast_trace.fork_safe import lock

if TYPE_CHECKING:
    from mast_trace.replay.player import Player


class HumanInput:
    """Answers Python's `input`, through which frameworks ask a person, too."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._texts = deque(player.inputs)
        self._lock = lock()
        self._original = builtins.input

    def start(self) -> None:
        """Start to answer."""
        self._original = builtins.input
        builtins.input = self._answer

    def stop(self) -> None:
        """Stop answering."""
        builtins.input = self._original

    def _answer(self, prompt: object = "", /) -> str:
        """Return the next recorded text.

        Raises:
            EOFError: there is none, as at the end of a standard input that is closed.
        """
        with self._lock:
            while self._texts:
                text, asking = self._texts.popleft()
                if not self._player.has_answered(asking):
                    return text
        report = self._player.report()
        if report.waiting_exchanges or report.waiting_executions:
            asked = str(prompt).strip() or "a prompt without text"
            self._player.refuse(
                f"The program asks a person for input ({asked}), and the record has no text for it. Texts "
                "that are typed are recorded from this version on, with capture_content on."
            )
        raise EOFError("mast-trace: the recorded run has no further input")
