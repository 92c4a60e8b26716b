"""The patches of a replay: HTTP clients, frameworks' tools and decorated functions."""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import wrapt

from mast_trace.fork_safe import lock
from mast_trace_instrumentations.replay.http_clients import HTTPClients
from mast_trace_instrumentations.replay.other_clients import OtherClients
from mast_trace_instrumentations.replay.tools import ROWS, HandMadeTools, ToolRow, put_back

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


class Interception:
    """The patches of HTTP clients and tools.

    Start it before the instrumentations, so that their spans enclose the answers.
    """

    def __init__(self, player: Player) -> None:
        self._player = player
        self._parts = (
            HTTPClients(player),
            HandMadeTools(player),
            HumanInput(player),
            OtherClients(player),
        )
        self._undo: list[Callable[[], None]] = []
        self._on = False

    def start(self) -> None:
        """Patch the modules that are imported, and the others when the program imports them."""
        self._on = True
        for part in self._parts:
            part.start()
        for row in ROWS:
            wrapt.register_post_import_hook(partial(self._patch, row), row.module)

    def stop(self) -> None:
        """Remove the patches."""
        self._on = False
        for part in self._parts:
            part.stop()
        while self._undo:
            self._undo.pop()()
        put_back()

    def _patch(self, row: ToolRow, module: Any) -> None:
        if not self._on:
            return
        try:
            owner, attribute, original = wrapt.resolve_path(module, row.target)
        except AttributeError:
            return
        answer = partial(row.answer, self._player)
        setattr(owner, attribute, wrapt.FunctionWrapper(original, answer))
        self._undo.append(partial(setattr, owner, attribute, original))
