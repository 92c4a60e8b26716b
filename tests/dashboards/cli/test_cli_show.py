"""`show` prints a run step by step, and never sends a run's control characters to the terminal."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

import mast_trace
from mast_trace.trajectory import Step, StepKind
from mast_trace_dashboards.cli.commands.show import as_dict, follow, json_pieces
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.render import _shown_text, load
from mast_trace_dashboards.local import announcement
from mast_trace_dashboards.printable import json_text, safe

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CLI

    from mast_trace_dashboards.stored_run import StoredRun


class Begun:
    """A run of which only some steps are stored yet."""

    def __init__(self, run: StoredRun, count: int) -> None:
        self.count, self.steps = count, run.steps


def test_a_run_is_shown_with_its_verdict(cli: CLI) -> None:
    status, out, err = cli("show", cli.recorded.ids["invoices"])
    assert (status, err) == (0, "")
    assert "failure: page 2 is missing" in out
    assert "Task: What does Hartmann owe us?" in out
    assert "DECISIVE" not in out
    [first] = [line for line in out.splitlines() if " look 1 " in line]
    assert "analyst" in first
    assert "Look here first: analyst, step" in out
    for text in ("Step repetition", "exact", "“R-1: 50 EUR”", "Not examined: 2.3."):
        assert text in out


def test_a_message_that_hands_over_is_shown_with_its_text() -> None:
    """LangGraph's `Command(goto=..., update=...)` says and hands over at once."""
    said = Step(
        0, StepKind.MESSAGE, "clerk", text="approved", recipients=("writer",), handoff_to="writer"
    )
    assert _shown_text(said, everyone=True) == "to writer: approved"
    assert _shown_text(dataclasses.replace(said, text=""), everyone=True) == "to writer"


def test_text_of_agents_is_harmless(cli: CLI) -> None:
    for arguments in (("--full",), (), ("--json",)):
        _, out, _ = cli("show", cli.recorded.ids["invoices"], *arguments)
        assert safe(out) == out
    _, out, _ = cli("show", cli.recorded.ids["invoices"], "--full")
    assert "␛[2J␛]0;owned␇ 50 EUR <U+202E>latot[red]" in out


def test_a_run_as_json(cli: CLI) -> None:
    shown = cli.json("show", cli.recorded.ids["invoices"])
    assert shown["run"]["TraceId"] == cli.recorded.ids["invoices"]
    assert shown["agents"] == ["user", "analyst"]
    assert [step["kind"] for step in shown["steps"]] == ["message", *["tool"] * 3, "message"]
    assert shown["steps"][-1]["text"].startswith("They owe \x1b[2J")
    assert shown["verdict"]["candidates"][0]["agent"] == "analyst"
    assert shown["verdict"]["calibrated"] is False
    assert "2.3" not in shown["verdict"]["examined"]
    assert "1.3" in {mode["code"] for mode in shown["verdict"]["modes"]}


@pytest.mark.parametrize("name", ["", "desk"])
def test_a_run_in_which_only_an_agent_failed(empty: CLI, name: str) -> None:
    trace_id = empty.record(lambda: _fails_at_once(name))
    status, out, err = empty("show", trace_id)
    assert (status, err) == (0, "")
    assert out.startswith(f"{name or 'ann'} {trace_id}")
    assert "0 steps, 1 agent, " in out
    assert "unscored" not in out
    assert "ended with an error: no such customer" in out
    shown = empty.json("show", trace_id)
    assert (shown["agents"], shown["run"]["Outcome"]) == (["ann"], "failure")
    assert shown["verdict"]["examined"] == ["3.1"]


def test_a_run_whose_only_agent_failed_and_was_caught_says_so(empty: CLI) -> None:
    def program() -> None:
        with mast_trace.run("desk"), contextlib.suppress(ValueError), mast_trace.agent("ann"):
            raise ValueError("no such customer")

    _, out, _ = empty("show", empty.record(program))
    assert "ann failed before it said or did anything (no such customer)" in out


def _fails_at_once(name: str) -> None:
    around = mast_trace.run(name) if name else contextlib.nullcontext()
    with contextlib.suppress(ValueError), around, mast_trace.agent("ann"):
        raise ValueError("no such customer")


@pytest.mark.parametrize("name", ["last", "prefix"])
def test_a_run_has_short_names(cli: CLI, name: str) -> None:
    run_id = cli.recorded.ids["unjudged"]
    shown = cli.json("show", run_id[:10] if name == "prefix" else name)
    assert shown["run"]["TraceId"] == run_id
    assert shown["verdict"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("last",), "Not judged yet."),
        (("aa02",), "No decisive error: the run succeeded."),
        (("aa02", "--watch"), "the run succeeded"),
    ],
)
def test_a_run_without_a_decisive_error(cli: CLI, arguments: tuple[str, ...], said: str) -> None:
    status, out, _ = cli("show", *arguments)
    assert (status, "DECISIVE" in out) == (0, False)
    assert said in out


def test_a_run_is_followed_to_its_verdict(cli: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store(cli.recorded.url, None) as store:
        whole = load(store, cli.recorded.ids["invoices"])
        begun = dataclasses.replace(
            whole,
            row={**whole.row, "State": "running"},
            stored=Begun(whole.stored, 2),
            verdict=None,
        )
        read = dataclasses.replace(whole, row={**whole.row, "Method": "reading"})
        looks = iter([begun, begun, read, whole])
        follow(lambda: next(looks), every=0.0)
        out = capsys.readouterr().out
        looks = iter([begun, whole])
        follow(lambda: next(looks), every=0.0, as_json=True)
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        count = whole.stored.count
    assert out.count("STEP") == 1 + out.count("STEPS")
    assert out.count("They owe") == 1
    assert out.index("What does Hartmann") < out.index("They owe") < out.index("Look here first")
    assert [line["step"]["index"] for line in lines[:-1]] == list(range(count))
    assert lines[-1]["verdict"]["outcome"] == "failure"


def test_json_is_written_part_by_part_as_it_would_be_whole(cli: CLI) -> None:
    with open_store(cli.recorded.url, None) as store:
        for identity in cli.recorded.ids.values():
            shown = load(store, identity)
            assert "".join(json_pieces(shown)) == json_text(as_dict(shown), indent=2)


@pytest.mark.parametrize(
    ("steps", "shown"), [("1-2", [1, 2]), ("3", [3]), ("2-99", [2, 3, 4]), ("all", [*range(5)])]
)
def test_some_steps_are_chosen(cli: CLI, steps: str, shown: list[int]) -> None:
    run = cli.recorded.ids["invoices"]
    found = cli.json("show", run, "--steps", steps)
    assert [step["index"] for step in found["steps"]] == shown
    _, out, _ = cli("show", run, "--steps", steps)
    assert (f"{len(shown)} of 5 steps are shown" in out) == (len(shown) < 5)


def test_a_step_is_shown_with_its_input(cli: CLI) -> None:
    run = cli.recorded.ids["invoices"]
    status, out, err = cli("show", run, "--step", "4")
    assert (status, err) == (0, "")
    assert "STEP" in out
    shown = cli.json("show", run, "--step", "4")
    assert shown["step"]["index"] == 4
    assert (shown["input"] is None) == bool(shown["reason"])


def test_the_spans_of_a_run_are_a_tree(cli: CLI) -> None:
    run = cli.recorded.ids["invoices"]
    rows = cli.json("show", run, "--tree")
    assert rows[0]["Depth"] == 0
    assert max(row["Depth"] for row in rows) > 0
    out = cli.out("show", run, "--tree")
    assert len(out.splitlines()) == len(rows) + 1
    assert "invoke_workflow invoke_workflow" not in out
    assert "alone" in cli.err("show", run, "--tree", "--open", status=2)


def test_a_page_is_opened_where_one_is_served(
    cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("typer.launch", opened.append)
    run = ("show", cli.recorded.ids["trip"], "--open", "--data-dir", str(tmp_path))
    assert "serves" in cli.err(*run, status=2)
    running = announcement.RunningInstance(1, str(tmp_path), "", "", web="http://here:1")
    monkeypatch.setattr(announcement, "find", lambda _folder: running)
    address = f"http://here:1/runs/{cli.recorded.ids['trip']}"
    assert cli.out(*run).strip() == address
    assert opened == [address]


def test_two_runs_are_compared(cli: CLI) -> None:
    ids = cli.recorded.ids
    out = cli.out("compare", ids["invoices"], ids["trip"])
    assert "They part at step 0" in out
    told = cli.json("compare", ids["invoices"], ids["trip"])
    assert [row["TraceId"] for row in told["runs"]] == [ids["invoices"], ids["trip"]]
    assert told["differences"][0]["number"] == 0
    assert "the same" in cli.out("compare", ids["trip"], ids["trip"])
    assert "succeeded" in cli.err("compare", ids["invoices"], status=1)
