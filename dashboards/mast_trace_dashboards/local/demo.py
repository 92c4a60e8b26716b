"""The demo: real agent programs on a scripted model, recorded, stored and judged on this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import ConfigurationError, MastTraceError
from mast_trace_collector.config import CollectorConfig
from mast_trace_dashboards.local.announcement import RunningInstance, UpConfig
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.config import WebConfig
from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.llm.retry import together

if TYPE_CHECKING:
    from mast_trace_dashboards.local.all_in_one import AllInOne

_PACKAGES = ("ag2", "langchain", "langchain_openai", "langgraph", "langgraph_supervisor", "openai")
_PROGRAM_SECONDS = 120
_VERDICT_SECONDS = 120
_LOOK_SECONDS = 0.3
_NEEDED_BYTES = 64 * 1024 * 1024
_PLAYED: Final = """
SELECT TraceId, any(ServiceName) AS Service FROM otel_traces GROUP BY TraceId ORDER BY min(Timestamp)"""
OTHERS_MODEL: Final = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
)
"""Variables by which the programs would ask the user's own model."""


@dataclass(frozen=True)
class Act:
    """One run of the demo: a program of `examples/` and one of its scenarios.

    Attributes:
        program: file name.
        scenario: its name in `examples/scenarios.py`.
        story: the agents' work, in a few words.
    """

    program: str
    scenario: str
    story: str

    @property
    def service(self) -> str:
        """The service name under which the runs of the program are recorded, good and bad."""
        return f"demo/{Path(self.program).stem}"

    def __str__(self) -> str:
        """Return the program and its scenario, which messages name."""
        return f"{self.program} {self.scenario}"


ACTS: Final = (
    Act("langgraph_team.py", "verified", "reads all pages, checks the sum"),
    Act("langgraph_team.py", "repeated-call", "asks for the same page four times"),
    Act("langgraph_team.py", "unverified", "stops a page early, skips the review"),
    Act("ag2_group_chat.py", "verified", "finds the prices, checks the sum"),
    Act("ag2_group_chat.py", "misread-price", "reads 118 as 181; all others accept it"),
    Act("ag2_group_chat.py", "early-end", "ends the chat before the hotel is known"),
)


@dataclass(frozen=True)
class FinishedAct:
    """An act that was played and judged, with its run as a row of the query `runs`."""

    act: Act
    row: dict[str, Any]


def examples() -> Path:
    """Return the folder of the example programs: of the installed package, or of the checkout.

    Raises:
        ConfigurationError: they are in neither place.
    """
    package = Path(str(resources.files("mast_trace_dashboards")))
    for folder in (package / "examples", package.parent.parent / "examples"):
        if (folder / ACTS[0].program).exists():
            return folder
    raise ConfigurationError("the example programs are missing from this installation")


def check_packages() -> None:
    """Check that the frameworks of the example programs are installed.

    Raises:
        ConfigurationError: one is not; the text names the packages to install.
    """
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"the demo runs real agents and needs {', '.join(missing)}: "
            "pip install 'mast-trace[all,demo]'"
        )


def check_room() -> None:
    """Check that the disk of temporary files has room for the demo: the collector refuses what would fill it.

    Raises:
        ConfigurationError: it has not; the text says how much it needs.
    """
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    needed = CollectorConfig.load().spool_min_free_bytes + _NEEDED_BYTES
    if free < needed:
        raise ConfigurationError(
            f"{folder} has {free >> 20} MiB free, and the demo needs {needed >> 20}: make room, or name "
            "another folder by TMPDIR"
        )


def demo_up(data_dir: Path) -> AllInOne:
    """Return a mast-trace on free ports of this machine, without a model as judge."""
    from mast_trace_dashboards.local.all_in_one import AllInOne

    return AllInOne(
        UpConfig.load(clickhouse_port=0),
        CollectorConfig.load(
            data_dir=data_dir,
            database_url=f"chdb://{data_dir.absolute() / 'clickhouse'}",
            host="127.0.0.1",
            http_port=0,
            grpc_port=0,
        ),
        JudgeConfig.load(judge_model=""),
        WorkerConfig.load(run_quiet_seconds=1.0),
        WebConfig.load(web_port=0, web_host="127.0.0.1"),
    )


async def play(
    running: RunningInstance,
    acts: Sequence[Act],
    on_done: Callable[[Act], None] = lambda _act: None,
) -> None:
    """Run the programs together, each in a process that plays its scenarios one after the other.

    Raises:
        MastTraceError: one failed; the text ends with its output.
    """

    async def one(service: str, own: list[Act]) -> None:
        await _run(service, own, running.otlp_http)
        for act in own:
            on_done(act)

    await together(one(*each) for each in _by_service(acts).items())


def _by_service(acts: Sequence[Act]) -> dict[str, list[Act]]:
    own: dict[str, list[Act]] = {}
    for act in acts:
        own.setdefault(act.service, []).append(act)
    return own


async def _run(service: str, acts: list[Act], endpoint: str) -> None:
    program = acts[0].program
    inherited = {name: value for name, value in os.environ.items() if name not in OTHERS_MODEL}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(examples() / program),
        *(act.scenario for act in acts),
        env={
            **inherited,
            "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
            "OTEL_SERVICE_NAME": service,
            "LANGSMITH_TRACING": "false",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        printed, _ = await asyncio.wait_for(process.communicate(), _PROGRAM_SECONDS)
    except asyncio.TimeoutError:
        raise MastTraceError(f"{program} did not end in {_PROGRAM_SECONDS} s") from None
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        tail = printed.decode(errors="replace")[-2000:].strip()
        raise MastTraceError(f"{program} ended with status {process.returncode}:\n{tail}")


async def verdicts(
    up: AllInOne, acts: Sequence[Act], on_progress: Callable[[int], None] = lambda _judged: None
) -> list[FinishedAct]:
    """Wait until every act's run is judged, and return them in the order of the acts.

    Raises:
        MastTraceError: one was not judged, or not in time; the text names it.
    """
    rows: dict[str, dict[str, Any]] = {}
    for _ in range(int(_VERDICT_SECONDS / _LOOK_SECONDS)):
        played = await asyncio.to_thread(up.store.query, _PLAYED)
        runs: dict[Act, str] = {}
        for service, own in _by_service(acts).items():
            traces = [each["TraceId"] for each in played if each["Service"] == service]
            if len(traces) == len(own):  # a program plays its acts in their order
                runs.update(zip(own, traces, strict=True))
        found = await asyncio.to_thread(
            QUERIES["runs"].run, up.store, states=["judged", "unscored"]
        )
        for row in found:
            if row["State"] == "unscored":
                raise MastTraceError(f"{row['ServiceName']}: no verdict: {row['StateReason']}")
        rows = {row["TraceId"]: row for row in found}
        ended = [FinishedAct(act, rows[runs[act]]) for act in acts if runs.get(act, "") in rows]
        on_progress(len(ended))
        if len(ended) == len(acts):
            return ended
        await asyncio.sleep(_LOOK_SECONDS)
    missing = ", ".join(str(act) for act in acts if act not in [each.act for each in ended])
    problem = up.worker.status.problem if up.worker else "nothing judges"
    raise MastTraceError(f"no verdict after {_VERDICT_SECONDS} s on: {missing} {problem}".rstrip())


def featured(finished: Sequence[FinishedAct]) -> FinishedAct:
    """Return the run that the demo shows step by step: an error that all others accept."""
    return next(one for one in finished if one.act.scenario == "misread-price")
