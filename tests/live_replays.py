"""Replays inside of the test's process that go on live after a change."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mast_trace import semconv
from mast_trace._session import paused
from mast_trace.replay.live import LiveCalls
from mast_trace.replay.player import Player
from mast_trace.replay.program import interception
from mast_trace.replay.recording import tape_of
from mast_trace.testing import CapturedSpans, capture_spans

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mast_trace.replay.intervention import Intervention
    from mast_trace.trajectory import Trajectory


@contextmanager
def going_live(
    run: Trajectory, change: Intervention, folder: Path, *, frameworks: list[str]
) -> Iterator[tuple[Player, LiveCalls, CapturedSpans]]:
    """Answer the calls of a code block from a run up to a change, and send the others to their model."""
    live = LiveCalls(folder / "live.jsonl")
    player = Player(tape_of(run), intervention=change, live=live)
    patches = interception(player)
    with paused():
        patches.start()
        try:
            with capture_spans(frameworks) as captured:
                yield player, live, captured
        finally:
            patches.stop()


def served(captured: CapturedSpans) -> list[bool]:
    """Return for each model call whether it was answered from the record."""
    chats = [span for span in captured.records if span.operation == semconv.CHAT]
    return [bool(span.attributes.get(semconv.REPLAY_SERVED)) for span in chats]


def read_tokens(captured: CapturedSpans) -> list[bool]:
    """Return for each model call whether tokens of its input were recorded."""
    chats = [span for span in captured.records if span.operation == semconv.CHAT]
    return [bool(span.attributes.get(semconv.INPUT_TOKENS)) for span in chats]
