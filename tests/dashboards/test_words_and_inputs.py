"""The inputs of tool steps, the sentences on an experiment, and the size of an uploaded file."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from mast_trace.messages import Message, ToolCall
from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory
from mast_trace_dashboards.certainty import suspicion_of
from mast_trace_dashboards.document import (
    CommandLine,
    DataTable,
    Folded,
    Heading,
    Part,
    Quote,
    Quotes,
    Replaced,
    Sentence,
    Words,
    markdown,
)
from mast_trace_dashboards.run_outcome import PROVISIONAL, READING, outcome_words
from mast_trace_dashboards.step_input import SeenInput, SeenMessage, input_of
from mast_trace_dashboards.web.finding.seen_view import seen_view
from mast_trace_dashboards.web.loaded_run import read_upload
from mast_trace_judge.verdict import Place, Verdict
from mast_trace_lab.feedback.words import notes


@pytest.mark.parametrize(
    ("tool", "arguments", "call_id", "found"),
    [
        ("search", '{"q": 1}', "", True),
        ("book", '{"n": 2}', "", True),
        ("book", '{"n": 3}', "", False),
        ("search", '{"n": 2}', "", False),
        ("other", '{"q": 1}', "", False),
        ("other", "{}", "c2", True),
        ("book", '{"n": 2}', "c3", False),
    ],
)
@pytest.mark.parametrize("begun", [9, 10])
def test_a_tools_input_is_that_of_the_call_which_asks_for_it(
    tool: str, arguments: str, call_id: str, found: bool, begun: int
) -> None:
    """Any call of an answer is found, by its id or by tool and arguments; an answer that came later asks for nothing."""
    calls = (ToolCall("search", '{"q":1}', "c1"), ToolCall("book", {"n": 2}, "c2"))
    asked = Invocation("model", "a", "1" * 16, "", 0, 10, ("m0",), ("user",), output_id="m1")
    step = Step(
        0, StepKind.TOOL, "a", "", tool=tool, arguments=arguments, call_id=call_id, start=begun
    )
    texts = {"m0": Message("Go.", "user"), "m1": Message("", tool_calls=calls)}
    shown = input_of(Trajectory("a" * 32, (step,), (asked,), texts), 0)
    assert bool(shown) is (found and (begun == 10 or bool(call_id)))
    assert shown is None or [each.content for each in shown.messages] == ["Go."]


@pytest.mark.parametrize(
    ("part", "lines"),
    [
        (Heading("The gate: worse"), ["### The gate: worse"]),
        (Sentence("So it is."), ["So it is."]),
        (Sentence("So it is.", "item"), ["* So it is."]),
        (Quotes([Quote("one", 1), Quote("two")]), ["> one", "> two"]),
        (
            DataTable("t", ["a", "b"], [["1", [Words("2", "code")]]]),
            ["| a | b |", "|---|---|", "| 1 | `2` |"],
        ),
        (Replaced("Its new text", "x", "y"), ["Its new text: y"]),
        (CommandLine("It goes on", "mast-trace up"), ["It goes on: `mast-trace up`"]),
        (Folded("More", [Heading("In it")]), ["More:", "### In it"]),
    ],
)
def test_markdown_holds_every_part(part: Part, lines: list[str]) -> None:
    assert [line for line in markdown([part], str).splitlines() if line] == lines


def test_notes_tell_all_that_does_not_count() -> None:
    found = SimpleNamespace(objections=("One.", "Two."), without_task=3, beyond=0)
    look: Any = SimpleNamespace(
        conclusion=found, warnings=("Four.",), plan=SimpleNamespace(repeats=2)
    )
    assert list(notes(look)) == [
        "One.",
        "Two.",
        "Four.",
        "3 runs have no usable key and do not count.",
    ]
    found.without_task, found.beyond = 0, 5
    *_, last = notes(look)
    assert last.startswith("5 runs are beyond the planned 2 of their task")


@pytest.mark.parametrize(("size", "status"), [(8 * 2**20 + 4096, 400), (8 * 2**20 + 4097, 413)])
def test_an_upload_has_a_largest_size(size: int, status: int) -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x" * size}

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(HTTPException) as refused:
        asyncio.run(read_upload(request))
    assert refused.value.status_code == status


@pytest.mark.parametrize(
    ("before", "after", "states"),
    [
        ("Be brief.", "Be very brief.", ["changed"]),
        ("Be brief.", "12345", ["gone", "new"]),
        ("", "12345", ["gone", "new"]),
        ("Be brief.", None, ["gone"]),
        (None, "12345", ["new"]),
    ],
)
def test_a_message_that_is_not_like_the_one_in_its_place_hides_none(
    before: str | None, after: str | None, states: list[str]
) -> None:
    given: list[tuple[str | None, Literal["gone", "new"]]] = [(before, "gone"), (after, "new")]
    messages = tuple(
        SeenMessage(state, "system", Message(text, "system"), state, None)
        for text, state in given
        if text is not None
    )
    (block,) = seen_view(SeenInput(1, "a", "m", (), False, 0, messages)).blocks
    assert [each.state for each in block.messages] == states
    assert [each.text for each in block.messages][-1] == (before if after is None else after)


@pytest.mark.parametrize(
    ("reason", "state", "shown"),
    [
        ("time_limit", "judged", "time limit"),
        ("recursion_limit", "judged", "recursion limit"),
        ("time_limit", "unscored", "unscored"),
        ("completed", "judged", ""),
    ],
)
def test_the_limit_that_broke_a_run_off_stands_beside_its_outcome(
    reason: str, state: str, shown: str
) -> None:
    row = {"Outcome": "failure", "State": state, "LookStep": None, "TerminationReason": reason}
    assert outcome_words({**row, "Method": "local"}) == ("failure", shown, "")


@pytest.mark.parametrize(
    ("outcome", "state", "step", "words"),
    [
        ("success", "judged", 3, ("success", "suspect")),
        ("unknown", "judged", 0, ("unknown", "suspect")),
        ("failure", "judged", 3, ("failure", "")),
        ("success", "judged", None, ("success", "")),
        ("success", "unscored", 3, ("success", "unscored")),
        ("", "judged", None, ("unknown", "")),
        ("", "waiting", None, ("unknown", "waiting")),
        ("", "running", None, ("", "running")),
        ("success", "running", 3, ("success", "running")),
    ],
)
@pytest.mark.parametrize("method", ["local", "reading", "provisional"])
def test_a_run_is_suspect_where_a_step_is_shown_without_a_failure(
    outcome: str, state: str, step: int | None, words: tuple[str, str], method: str
) -> None:
    row = {"Outcome": outcome, "State": state, "LookStep": step, "TerminationReason": ""}
    reading = {"reading": READING, "provisional": PROVISIONAL}.get(method, "")
    assert outcome_words({**row, "Method": method}) == (*words, reading)


@pytest.mark.parametrize(
    ("basis", "shows"), [("record", True), ("confirmed", True), ("rule", False)]
)
def test_the_record_contradicts_itself_only_where_it_shows_that(basis: str, shows: bool) -> None:
    place = Place.model_construct(basis=basis)
    verdict = Verdict.model_construct(outcome="success", look_first=(place,))
    assert ("record contradicts itself" in suspicion_of(verdict)) == shows
    assert ("may be wrong" in suspicion_of(verdict)) != shows
