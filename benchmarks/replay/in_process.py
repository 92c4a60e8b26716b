"""Replays in this process: what `mast_trace.instrument` does in a program that is replayed, and undone afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from mast_trace._session import current_session, paused
from mast_trace.replay.intervention import Intervention
from mast_trace.replay.live import LiveCalls
from mast_trace.replay.plan_variable import PLAN_VARIABLE
from mast_trace.replay.player import Player
from mast_trace.replay.program import FileExporter, ReplayFolder, interception
from mast_trace.replay.tape import Tape
from mast_trace.testing import capture_spans

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class InProcess:
    """An origin of replays (`mast_trace_lab.program.forking.Forking`) that calls a function instead.

    Neither a time limit nor the refusal of network connections holds here.

    Args:
        program: runs the program once.
        frameworks: those to record; all that are installed if absent.
    """

    def __init__(
        self, program: Callable[[], object], frameworks: Sequence[str] | None = None
    ) -> None:
        self._program = program
        self._frameworks = frameworks

    is_unasked = False

    def give_up(self) -> None:
        """Change nothing: a person has asked for it."""

    def run(
        self, command: object, environment: Mapping[str, str], output: str, timeout: float
    ) -> int:
        """Run the program once on the plan that the environment names, and return its exit status."""
        del command, output, timeout
        folder = ReplayFolder(Path(environment[PLAN_VARIABLE]))
        plan = json.loads(folder.plan.read_text("utf-8"))
        change = plan["intervention"]
        player = Player(
            Tape.from_json(plan["tape"]),
            plan["live_tools"],
            folder.write_report,
            Intervention.from_plain(change) if change else None,
            LiveCalls(folder.live, plan["max_calls"]),
            claim=folder.claim,
        )
        folder.write_report(player.report())
        patches = interception(player)
        with paused():
            patches.start()
            try:
                with capture_spans(self._frameworks) as captured:
                    session = current_session()
                    assert session is not None
                    session.provider.add_span_processor(player.branches)
                    self._program()
            finally:
                patches.stop()
        FileExporter(folder.spans).export(captured.spans)
        return 0
