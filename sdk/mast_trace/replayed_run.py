"""Replays a recorded run in the process that asks for it, such as a test or another program."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mast_trace.captured_spans import CapturedSpans, capture_spans
from mast_trace.trajectory import Trajectory

if TYPE_CHECKING:
    from mast_trace.replay.player import Player, ReplayReport


class ReplayedRun:
    """A run of a program whose model and tool calls are answered from a recorded run.

    Attributes:
        recorded: the recorded run; the last one of those that continue each other.
        captured: the spans of the replayed run.
    """

    def __init__(
        self,
        recorded: Sequence[Trajectory],
        captured: CapturedSpans,
        player: Player,
        masks: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.recorded = recorded[-1]
        self._runs = recorded
        self.captured = captured
        self._player = player
        self._masks = masks

    @property
    def report(self) -> ReplayReport:
        """Counts of the calls that were answered so far, and the first divergence."""
        return self._player.report()

    def assert_identical(self) -> None:
        """Assert that the run is identical to the recorded one.

        Raises:
            AssertionError: the run has diverged, has left out recorded calls, or has a step that
                differs.
        """
        from mast_trace.replay.comparison import first_difference, masked_run

        report = self.report
        if report.divergence is not None:
            raise AssertionError(f"The replay has diverged. {report.divergence.text}")
        if report.waiting_exchanges or report.waiting_executions:
            raise AssertionError(
                f"{report.waiting_exchanges} model calls and {report.waiting_executions} tool calls "
                "of the recorded run were not made again."
            )
        if report.other_parameters:
            raise AssertionError(report.other_parameters)
        runs = self.captured.trajectories()
        if len(runs) != len(self._runs):
            tree = self.captured.tree()
            raise AssertionError(f"{len(runs)} runs were recorded, not {len(self._runs)}:\n{tree}")
        for before, after in zip(self._runs, runs, strict=True):
            difference = first_difference(*(masked_run(e, self._masks) for e in (before, after)))
            if difference is not None:
                raise AssertionError(f"Step {difference.index}: {difference.text}.")


@contextmanager
def replayed(
    run: Trajectory | str | Path,
    *,
    live_tools: Sequence[str] = (),
    clock: bool = True,
    **options: Any,
) -> Iterator[ReplayedRun]:
    """Answer the model calls and tool calls of a code block from a recorded run.

    ::

        with replayed("tests/runs/refund.jsonl") as replay:
            my_team.main()
        replay.assert_identical()

    The masks that a case holds apply. The rest of the program runs for real. Import the agents' framework and your tools as the program
    does; the patches are removed afterwards.

    Args:
        run: a trajectory, or a file of `mast-trace export` or `mast-trace cases add` with one run in it,
            or with an interrupted run and those that continue it; also compressed by gzip.
        live_tools: names of tools that are executed if the run has no result of the
            call; ``*`` for all.
        clock: whether the block's clock starts when the recorded run did, where time-machine is installed.
        options: further arguments of `mast_trace.instrument`.

    Raises:
        ValueError: the file holds no run, or several.
        NotReplayable: the run lacks data that a replay needs.
    """
    # The pytest plugin imports this module, and is loaded in every test run.
    from unittest.mock import patch

    from mast_trace._session import current_session, paused
    from mast_trace.replay.canonical import masking
    from mast_trace.replay.lessons import giving
    from mast_trace.replay.player import Player
    from mast_trace.replay.program import clock_from, interception
    from mast_trace.replay.recording import tape_of
    from mast_trace.replay.run_files import masks_in, runs_of

    recorded = [run] if isinstance(run, Trajectory) else runs_of(run)
    masks = [] if isinstance(run, Trajectory) else masks_in(run)
    tape = tape_of(recorded[-1], *recorded[:-1], live_tools=live_tools)
    player = Player(tape, live_tools)
    patches = interception(player)
    environment = patch.dict(os.environ, tape.environment)
    with paused(), giving(tape.lessons), environment, masking(masks):
        patches.start()  # first, so that the spans of the instrumentations enclose the answers
        try:
            with capture_spans(**options) as captured:
                provider = getattr(current_session(), "provider", None)
                if provider is not None:
                    provider.add_span_processor(player.branches)
                with clock_from(tape.start if clock else None):
                    yield ReplayedRun(recorded, captured, player, masks)
        finally:
            patches.stop()
