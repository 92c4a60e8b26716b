"""Sets up a replay in the program's own process: answers from a tape, no network, spans in a file.

`mast_trace.instrument` starts it if the variable `mast_trace.replay.plan_variable.PLAN_VARIABLE` names the folder of
a plan, which the process that started the program has written. Spans are written to a file beside the
plan and never sent to a collector, because a replay is not a run of the service.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from mast_trace import semconv
from mast_trace.delivery.provider import make_provider
from mast_trace.exceptions import ConfigurationError
from mast_trace.replay.canonical import normalize
from mast_trace.replay.intervention import Intervention
from mast_trace.replay.live import LiveCalls
from mast_trace.replay.network import Network
from mast_trace.replay.plan_variable import PLAN_VARIABLE
from mast_trace.replay.player import Divergence, Player, ReplayReport
from mast_trace.replay.tape import Tape

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import TracerProvider

_PAUSE: Final = 1.0

REPLAY_GROUP = "mast_trace_replay"
_SERVED = re.compile(r"(chatcmpl|resp|msg)[-_]replayed[-_]")
"""Beginning of the ids of answers from a tape."""


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


class Interceptor(Protocol):
    """Patches of HTTP clients and frameworks, implemented in `mast_trace_instrumentations.replay`."""

    def start(self) -> None:
        """Put the patches in place."""

    def stop(self) -> None:
        """Remove the patches."""


def interception(player: Player) -> Interceptor:
    """Return the patches that answer a program's calls from ``player``.

    Raises:
        ConfigurationError: the instrumentations are not installed.
    """
    for point in entry_points(group=REPLAY_GROUP):
        made: Interceptor = point.load()(player)
        return made
    raise ConfigurationError("The instrumentations are not installed; reinstall mast-trace.")


@dataclass(frozen=True)
class ReplayFolder:
    """The files by which a replayed program and the process that started it communicate.

    Attributes:
        path: the folder, which only its owner can read.
    """

    path: Path

    @property
    def plan(self) -> Path:
        """Path of the plan: tape, intervention, live tools, allowed hosts and limits, as JSON."""
        return self.path / "plan.json"

    @property
    def spans(self) -> Path:
        """Path of the file of ended spans, one JSON object per line."""
        return self.path / "spans.jsonl"

    @property
    def answered(self) -> Path:
        """Path of a file with the id of the process that is answered: the first to make a call."""
        return self.path / "answered"

    @property
    def live(self) -> Path:
        """Path of the log of live model calls; see `mast_trace.replay.live`."""
        return self.path / "live.jsonl"

    def write_plan(
        self,
        tape: Tape,
        live_tools: Sequence[str],
        hosts: Sequence[str],
        intervention: Intervention | None = None,
        max_calls: int | None = None,
        runs: int | None = None,
        clock: int | None = None,
        lenient: float | None = None,
    ) -> None:
        """Write the plan, which only its owner can read.

        Args:
            tape: the record that calls are answered from.
            live_tools: names of tools that may be executed; ``*`` for all.
            hosts: addresses to which the program may connect.
            intervention: the change of the run; without one, no request is live.
            max_calls: number of live model calls that may be sent; None for any number.
            runs: see `mast_trace.replay.player.Player`.
            clock: nanoseconds since the epoch at which the program's clock starts; None for the time of today.
            lenient: seconds that each answer takes where the player is lenient; None where it is not.
        """
        shape = {
            "tape": tape.to_json(),
            "live_tools": [*live_tools],
            "hosts": [*hosts],
            "intervention": intervention.to_plain() if intervention else None,
            "max_calls": max_calls,
            "runs": runs,
            "clock": clock,
            "lenient": lenient,
            "starter": os.getpid(),
        }
        self.plan.touch(0o600)
        self.plan.write_text(json.dumps(shape), "utf-8")

    def claim(self) -> str:
        """Claim the tape for this process; return the reason why another one has it, if so."""
        own = str(os.getpid())
        written = self.path / f"answered-{own}"
        written.write_text(own, "utf-8")
        try:
            os.link(written, self.answered)  # with its content, and only if there is none
        except FileExistsError:
            other = self.answered.read_text("utf-8")
            if other != own:
                return (
                    f"Two processes of the program ({other} and {own}) make calls, and the record answers "
                    "one. Replay it with all agents in one process."
                )
        finally:
            written.unlink()
        return ""

    def write_report(self, report: ReplayReport) -> None:
        """Replace the report of this process."""
        file = self.path / f"report-{os.getpid()}.json"
        partly = file.with_suffix(".part")
        partly.write_text(json.dumps(dataclasses.asdict(report)), "utf-8")
        partly.replace(file)

    def read_report(self) -> ReplayReport | None:
        """Return the report of the process that was answered, with a divergence of any other one.

        None if the program did not call `mast_trace.instrument`.
        """
        reports = {file.stem: _report(file) for file in sorted(self.path.glob("report-*.json"))}
        if not reports:
            return None
        answered = self.answered.read_text("utf-8") if self.answered.exists() else ""
        own = reports.get(f"report-{answered}", next(iter(reports.values())))
        divergences = [each.divergence for each in reports.values() if each.divergence]
        return dataclasses.replace(
            own,
            divergence=own.divergence or next(iter(divergences), None),
            over_budget=any(each.over_budget for each in reports.values()),
        )


def _report(file: Path) -> ReplayReport:
    shape = json.loads(file.read_text("utf-8"))
    divergence = shape.pop("divergence")
    return ReplayReport(**shape, divergence=Divergence(**divergence) if divergence else None)


def play(folder: str) -> TracerProvider:
    """Start to answer this process's calls from the plan in ``folder``; return its tracer provider.

    Raises:
        ConfigurationError: the folder has no plan, or the plan cannot be read.
    """
    replay = ReplayFolder(Path(folder))
    try:
        plan = json.loads(replay.plan.read_text("utf-8"))
        tape = Tape.from_json(plan["tape"])
        change = plan["intervention"]
        intervention = Intervention.from_plain(change) if change else None
        live = LiveCalls(replay.live, plan["max_calls"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{PLAN_VARIABLE} names {folder}, which holds no plan of a replay ({error}). "
            "Unset it, or start the program by `mast-trace replay`."
        ) from error
    slow = plan["lenient"]

    def changed(report: ReplayReport) -> None:
        time.sleep(slow or 0)  # so that the times that a program takes and tells differ
        replay.write_report(report)

    for pattern, name in tape.masks:
        normalize(pattern, name)
    player = Player(
        tape,
        plan["live_tools"],
        changed,
        intervention,
        live,
        claim=replay.claim,
        runs=plan["runs"],
        lenient=slow is not None,
    )
    replay.write_report(player.report())
    player.network = Network(player.refuse, plan["hosts"])
    player.network.close()
    interception(player).start()
    clock_from(plan["clock"]).__enter__()  # until the process ends
    end_with(plan["starter"], replay.path)
    provider = make_provider("", SimpleSpanProcessor(FileExporter(replay.spans)))
    provider.add_span_processor(player.branches)
    return provider


def clock_from(start: int | None) -> AbstractContextManager[object]:
    """Return a block in which this program's clock starts at a time and ticks, where time-machine is installed."""
    if start is None or not find_spec("time_machine"):
        return nullcontext()
    begun = datetime.fromtimestamp(start / 1e9, timezone.utc)
    made: AbstractContextManager[object] = import_module("time_machine").travel(begun, tick=True)
    return made


class FileExporter(SpanExporter):
    """Appends each span to a file as it ends, so that a killed program loses none of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write each span as one line with one write, so that forked processes may share the file."""
        from mast_trace.trajectory.from_sdk import span_record

        with self._lock, self._path.open("a", encoding="utf-8") as file:
            for span in spans:
                shape = dataclasses.asdict(span_record(span))
                shape.pop("operation")
                if _SERVED.match(str(shape["attributes"].get(semconv.RESPONSE_ID, ""))):
                    # Where a framework reports its calls by events, the span is not at hand when
                    # the call is answered.
                    shape["attributes"] = {**shape["attributes"], semconv.REPLAY_SERVED: True}
                file.write(json.dumps(shape, default=list) + "\n")
        return SpanExportResult.SUCCESS
