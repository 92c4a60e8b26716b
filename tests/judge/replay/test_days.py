"""Prompts that differ from day to day: the clock of the record, masks of the program, and what would help."""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

import openai
import pytest
import time_machine
from replays import NOWHERE, parents, record
from scripted_llm import ScriptedLLM, last_text

import mast_trace
from mast_trace.replay import replayed
from mast_trace.replay.canonical import remedy
from mast_trace.testing import capture_spans
from mast_trace.trajectory import to_dict
from mast_trace_judge.gate.case_files import write_case
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay import replay
from mast_trace_lab.replay.masks import NotMaskable, propose

DATED = Path(__file__).parent / "dated.py"


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("way", "clock", "status", "said", "masked", "proposed"),
    [
        ("date", True, "identical", "", 0, 0),
        ("date", False, "diverged", "time-machine", 0, "two replays do not differ in it"),
        ("session", True, "diverged", "normalize(PATTERN, NAME)", 0, 1),
        ("quoted", True, "diverged", "normalize(PATTERN, NAME)", 0, "reaches an answer or a tool"),
        ("late", True, "diverged", "normalize(PATTERN, NAME)", 0, 2),
        ("masked", True, "identical", "", 1, 1),
        ("drawn", True, "diverged", "mast_trace.seed()", 0, 1),
        ("seeded", True, "identical", "", 0, 0),
        ("set", True, "identical", "", 0, 0),
        ("else", True, "diverged", "+user: Be rude.", 0, "two replays do not differ in it"),
    ],
)
def test_a_run_of_another_day(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    clock: bool,
    status: str,
    said: str,
    masked: int,
    proposed: int | str,
) -> None:
    """Masks are proposed for what differs between two replays as well, and for nothing that an answer holds."""
    answer = last_text if way == "quoted" else lambda _: "Done."
    with ScriptedLLM(answer) as server, monkeypatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "scripted")
        patch.setenv("DAY", "2025-11-03 10:11")
        patch.setenv("PYTHONHASHSEED", "1")
        recorded = record(DATED, way, folder=tmp_path, keep="OPENAI_")
    monkeypatch.setenv("OPENAI_BASE_URL", NOWHERE)
    monkeypatch.setenv("OPENAI_API_KEY", "scripted")
    monkeypatch.setenv("PYTHONHASHSEED", "2")
    # Forked from a process of its own, which has the hash seed of these records.
    setup = Setup((sys.executable, str(DATED), way), clock=clock, parent=parents("uuid"))
    done = replay(recorded, setup)
    assert done.status == status, done.text
    assert said in done.text
    assert done.report is not None
    assert done.report.masked_places == masked
    assert ("They differ" in done.text) == (way != "else" and status == "diverged")
    if isinstance(proposed, str):
        with pytest.raises(NotMaskable, match=proposed):
            propose(recorded, setup)
    elif status == "diverged":
        masks, again = propose(recorded, setup)
        assert (again.status, len(masks)) == ("identical", proposed)


@pytest.mark.parametrize(
    ("question", "masks", "clock", "same"),
    [
        ("Today is {now:%d %B %Y}.", [], True, True),
        ("Today is {now:%d %B %Y}.", [], False, False),
        ("Session {drawn}.", [], True, False),
        ("Session {drawn}.", [(r"(?<=Session )\w+", "mask 1")], True, True),
    ],
)
def test_a_case_does_not_break_overnight(
    tmp_path: Path, question: str, masks: list[tuple[str, str]], clock: bool, same: bool
) -> None:
    """A test that replays it has the clock of the run, and the masks that were kept with it."""

    def program(drawn: str) -> None:
        asked = question.format(now=datetime.now(timezone.utc), drawn=drawn)
        with mast_trace.run("desk"), mast_trace.agent("clerk"):
            openai.OpenAI().chat.completions.create(
                model="m", messages=[{"role": "user", "content": asked}]
            )

    with (
        ScriptedLLM(lambda _: "Done.") as server,
        pytest.MonkeyPatch.context() as patch,
        time_machine.travel("2025-11-03 10:11", tick=True),
        capture_spans(frameworks=["openai"]) as captured,
    ):
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "scripted")
        program("one")
    case = tmp_path / "case.json.gz"
    shape = {"trajectory": to_dict(captured.trajectories()[0]), "masks": masks}
    write_case(case, [shape], added="", note="")
    with (
        pytest.MonkeyPatch.context() as patch,
        replayed(case, clock=clock, frameworks=["openai"]) as replay_,
        suppress(openai.APIError),
    ):
        patch.setenv("OPENAI_BASE_URL", NOWHERE)
        patch.setenv("OPENAI_API_KEY", "scripted")
        program("two")
    if same:
        replay_.assert_identical()
        return
    with pytest.raises(AssertionError, match="has diverged"):
        replay_.assert_identical()


@pytest.mark.parametrize(
    ("recorded", "asked", "helps"),
    [
        ("26 November 2026, 13:10:50", "1 December 2026, 09:00:01", True),
        ("took 0.02 s", "took 1.7 s", True),
        ("session 4421d21b", "session b38a081a", True),
        ("session fcfbeeba", "session e2f38d2f", True),
        ("a decade", "a facade", False),
        ("in /tmp/tmp4x9ab1", "in /tmp/tmp7b2cd0", False),
        ("price 120 EUR", "price 120 USD", False),
        ("red, green", "green, red", True),
        ("red, green", "green, blue", False),
    ],
)
def test_a_remedy_is_named_only_where_it_would_help(recorded: str, asked: str, helps: bool) -> None:
    assert bool(remedy([("user", recorded)], [("user", asked)])) == helps
