"""From an agent's process to a verdict, through kills and restarts."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from code_blocks import PAGES, blocks_of
from program_runs import run_program
from up_process import MAST_TRACE, UpProcess, wait_for

from mast_trace_dashboards.found_run import find_run, nearest_good
from mast_trace_dashboards.local import demo as demo_runs

if TYPE_CHECKING:
    from mast_trace_dashboards.local.all_in_one import AllInOne

# Generous: the machine that tests may be busy with much else.
pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(400)]

HERE = Path(__file__).parent
LONG_JOB = HERE / "long_job.py"


def test_acknowledged_spans_survive_a_kill_exactly_once(up: UpProcess) -> None:
    up.start()
    agent = subprocess.Popen(
        [sys.executable, str(LONG_JOB)], env=up.environment(), stdout=subprocess.PIPE, text=True
    )
    with agent:
        assert agent.stdout is not None
        acknowledged = [agent.stdout.readline().strip() for _ in range(10)]
        assert up.end(signal.SIGKILL) == -signal.SIGKILL
        up.start()
        acknowledged += agent.stdout.read().split()
    assert agent.returncode == 0
    assert len(set(acknowledged)) == 40

    [run] = wait_for(lambda: [row for row in up.runs() if row["State"] == "judged"])
    assert run["Outcome"] == "success"
    with up.store() as store:
        rows = store.query(
            "SELECT SpanId, count() AS times FROM otel_traces WHERE TraceId = {run:String} "
            "GROUP BY SpanId",
            {"run": run["TraceId"]},
        )
    times = {row["SpanId"]: row["times"] for row in rows}
    assert set(acknowledged) <= times.keys()
    assert {span: n for span, n in times.items() if n != 1} == {}
    # The run, 40 turns, 40 tool calls and the message; the outcome may be a span of its own.
    assert len(times) in {82, 83}
    assert up.end(signal.SIGTERM) == 0


def test_a_stop_by_signal_drains(up: UpProcess) -> None:
    up.start()
    agent = run_program(sys.executable, str(LONG_JOB), status=0, env=up.environment())
    assert up.end(signal.SIGTERM) == 0
    assert not (up.folder / "up.json").exists()
    # Nothing runs: the commands open the folder by themselves.
    [run] = up.runs()
    assert run["Spans"] >= len(agent.stdout.split())
    up.start()
    assert up.end(signal.SIGINT) == 0


EXPECTED = {
    # story: framework, outcome, a mode that must be found, where to look first and why
    "reads all pages, checks the sum": ("langgraph", "success", "-", "-"),
    "asks for the same page four times": (
        "langgraph",
        "failure",
        "1.3",
        "analyst, step 1 (the record shows it)",
    ),
    "stops a page early, skips the review": (
        "langgraph",
        "failure",
        "-",
        "analyst, step 2 (by a rule)",
    ),
    "finds the prices, checks the sum": ("ag2", "success", "-", "-"),
    "reads 118 as 181; all others accept it": (
        "ag2",
        "failure",
        "2.6",
        "DECISIVE: researcher, step 3 (confirmed by replay)",
    ),
    "ends the chat before the hotel is known": (
        "ag2",
        "failure",
        "-",
        "planner, step 3 (by a rule)",
    ),
}


@pytest.fixture(scope="module")
def demo() -> str:
    """The output of `mast-trace demo`, which names each step on standard error when it is done."""
    pytest.importorskip("ag2", reason="the demo's programs need AG2 and LangGraph")
    pytest.importorskip("langgraph_supervisor", reason="the demo's programs need LangGraph")
    ended = run_program(*MAST_TRACE, "demo", status=0, timeout=300)
    begin, *ran, judged, replayed = ended.stderr.splitlines()
    assert begin == "Receivers, database and judge have started."
    assert len(ran) == len(EXPECTED)
    assert all(
        re.fullmatch(rf"\w+\.py [\w-]+ has run \({number} of 6\)\.", line)
        for number, line in enumerate(ran, 1)
    )
    assert judged == "All 6 runs are judged."
    assert replayed == "ag2_group_chat.py misread-price has been replayed."
    return ended.stdout


def test_the_page_on_decisive_errors_shows_lines_of_the_demo(demo: str) -> None:
    page = blocks_of(PAGES / "understand" / "decisive-error.md")
    shown = next(block for block in page if block.language == "text")
    printed = [line.split() for line in demo.splitlines()]
    assert [line for line in shown.text.splitlines() if line.split() not in printed] == []


@pytest.mark.parametrize("story", EXPECTED)
def test_the_demo_finds_what_its_agents_do_wrong(demo: str, story: str) -> None:
    framework, outcome, mode, look_first = EXPECTED[story]
    [line] = [line for line in demo.splitlines() if story in line]
    cells = re.split(r"\s{2,}", line.strip())
    assert cells[1:4] == [framework, story, outcome]
    assert mode in cells[4].split()
    assert cells[5] == look_first


def test_the_demo_shows_a_run_and_what_to_do_next(demo: str) -> None:
    """Below the table are one run step by step, its decisive step marked, and the next commands."""
    [decisive] = [line for line in demo.splitlines() if "DECISIVE, confirmed" in line]
    assert re.match(r"\s+3\s+DECISIVE, confirmed\s+researcher\s+message", decisive)
    assert "Decisive error: researcher, step 3 (confirmed by replay)" in demo
    assert "mast-trace demo --keep" in demo


def test_an_assistant_finds_the_cause_of_each_failure(tmp_path: Path) -> None:
    """In three calls and 6,000 tokens, of which each has four characters: the list, the run, and the step that is named."""
    pytest.importorskip("ag2", reason="the demo's programs need AG2 and LangGraph")
    pytest.importorskip("langgraph_supervisor", reason="the demo's programs need LangGraph")
    pytest.importorskip("mcp.server.mcpserver", reason="needs the extra mcp")
    found = asyncio.run(_ask_an_assistant(demo_runs.demo_up(tmp_path)))
    assert len(found) == 4
    for act, (place, text) in found.items():
        expected = EXPECTED[act.story][3]
        assert place == expected.removeprefix("DECISIVE: ").split(" (")[0]
        assert len(text) < 4 * 6000
        assert f'"agent": "{place.split(",")[0]}"' in text


async def _ask_an_assistant(up: AllInOne) -> dict[demo_runs.Act, tuple[str, str]]:
    """Run the programs, and return the place that is named in each run, with all that was read for it."""
    from mcp import Client

    from mast_trace_dashboards.mcp_server.server import server_on

    try:
        await demo_runs.play(await up.start(), demo_runs.ACTS)
        read = {}
        done = await demo_runs.verdicts(up, demo_runs.ACTS)
        failed = {one.row["TraceId"]: one.act for one in done if one.act.scenario != "verified"}
        async with Client(server_on(up.store, writes=False)) as client:
            for trace_id, act in failed.items():
                # Its program has succeeded once: there is something to compare it with.
                found = find_run(up.store, trace_id)
                assert found is not None
                assert nearest_good(up.store, found) is not None
                texts: list[str] = []

                async def ask(name: str, texts: list[str] = texts, **given: Any) -> Any:
                    answer = await client.call_tool(name, given)
                    texts.append(answer.content[0].text)
                    return answer.structured_content["answer"]

                rows = (await ask("list_runs", outcome="failure", service=act.service))["runs"]
                row = next(each for each in rows if each["run"] == trace_id)
                first = (await ask("get_run", run=row["run"]))["verdict"]["look_first"][0]
                await ask("get_step", run=row["run"], step=first["step"])
                read[act] = f"{first['agent']}, step {first['step']}", "".join(texts)
        return read
    finally:
        await up.stop()


def test_the_demo_says_which_packages_are_missing(tmp_path: Path) -> None:
    """Without the frameworks the demo names what to install instead of failing inside an agent."""
    blocked = tmp_path / "blocked.py"
    blocked.write_text(
        "import sys\n"
        "from importlib.machinery import PathFinder\n"
        "class WithoutAG2(PathFinder):\n"
        "    @classmethod\n"
        "    def find_spec(cls, name, path=None, target=None):\n"
        "        return None if name == 'ag2' else PathFinder.find_spec(name, path, target)\n"
        "sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutAG2\n"
        "from mast_trace_dashboards.cli import main\n"
        "sys.argv = ['mast-trace', 'demo']\n"
        "main()\n",
        encoding="utf-8",
    )
    ended = run_program(sys.executable, str(blocked), status=2, timeout=60)
    assert "needs ag2" in ended.stderr
    assert "pip install 'mast-trace[all,demo]'" in ended.stderr
