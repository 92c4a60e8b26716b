"""Switching MetaGPT's instrumentation on and off, early, late, and where the framework has changed."""

from __future__ import annotations

import inspect
import logging
import subprocess
import sys
import textwrap
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT; `nox -s framework` has an environment", allow_module_level=True)

import metagpt_programs as programs
from recorded_spans import RecordedSpans
from scripted_llm import Reply

from mast_trace_instrumentations.metagpt import MetaGPTInstrumentor

pytestmark = pytest.mark.framework("metagpt")


def targets() -> dict[str, Any]:
    """Every attribute that is replaced, as it is now; all modules are imported."""
    found: dict[str, Any] = {}
    for patch in MetaGPTInstrumentor.patches:
        owner: Any = import_module(patch.module)
        *path, name = patch.target.split(".")
        for step in path:
            owner = getattr(owner, step)
        # Some inherit what is replaced on them.
        found[patch.path] = vars(owner).get(name)
        assert inspect.getattr_static(owner, name) is not None
    return found


def test_off_again_everything_is_as_it_was(server) -> None:
    """Each attribute is the very object that it was before; twice on and off is as good as once."""
    before = targets()
    instrumentor = MetaGPTInstrumentor()
    for _ in range(2):
        RecordedSpans.of(instrumentor)
        assert all(targets()[path] is not original for path, original in before.items())
        assert instrumentor.state.missing == []
        assert instrumentor.state.waiting == []
        instrumentor.uninstrument()
        instrumentor.uninstrument()
        assert all(targets()[path] is original for path, original in before.items())


async def team_of_two() -> Any:
    made = programs.team()
    made.run_project("an adder")
    return await made.run(n_round=4)


async def too_few_rounds() -> Any:
    made = programs.team()
    made.run_project("an adder")
    return await made.run(n_round=1)


async def no_budget() -> Any:
    made = programs.team()
    made.invest(0.0)
    made.run_project("an adder")
    return await made.run(n_round=4)


async def in_order() -> Any:
    made = programs.team(programs.TwoSteps())
    made.run_project("an adder")
    return await made.run(n_round=4)


async def by_itself() -> Any:
    return (await programs.Coder().run("an adder")).content


async def code() -> Any:
    made = programs.team(programs.Runner())
    made.run_project("run it")
    return await made.run(n_round=2)


def failing(_request: Any) -> Reply:
    return Reply(status=400, text="no such model")


PARITY = [
    (team_of_two, programs.script),
    (too_few_rounds, programs.script),
    (no_budget, programs.script),
    (in_order, programs.script),
    (by_itself, programs.script),
    (code, programs.script),
    (team_of_two, failing),
    (by_itself, failing),
]


@pytest.mark.parametrize(
    ("program", "script"), PARITY, ids=[f"{p.__name__}-{s.__name__}" for p, s in PARITY]
)
async def test_a_program_does_the_same_with_and_without(program, script, server) -> None:
    """Same results, same exceptions, and the models are sent the same."""

    async def outcome() -> tuple[Any, str, list[Any]]:
        server.follow(script)
        result, error = None, ""
        try:
            result = await program()
        except Exception as raised:
            error = type(raised).__name__
        return result, error, [request["messages"] for request in server.requests]

    plain = await outcome()
    spans = RecordedSpans.of(MetaGPTInstrumentor())
    try:
        traced = await outcome()
    finally:
        spans.instrumentor.uninstrument()
    assert traced == plain
    spans.check_shape()


def test_the_framework_may_be_imported_afterwards() -> None:
    """Instrumenting imports nothing of MetaGPT; the patches come with the program's own import."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(
                """
                import asyncio, sys
                from recorded_spans import RecordedSpans
                from mast_trace_instrumentations.metagpt import MetaGPTInstrumentor
                instrumentor = MetaGPTInstrumentor()
                assert instrumentor.present()
                spans = RecordedSpans.of(instrumentor)
                assert "metagpt" not in {name.split(".")[0] for name in sys.modules}
                import metagpt_programs as programs

                async def run():
                    made = programs.team()
                    made.run_project("an adder")
                    await made.run(n_round=4)

                with programs.model as server:
                    server.follow(programs.script)
                    asyncio.run(run())
                spans.check_shape()
                print("spans", len(spans.sent_messages()), len(spans.named("chat")))
                print("missing", instrumentor.state.missing)
                """
            ),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert "spans 3 2\nmissing []" in done.stdout


@pytest.mark.parametrize(
    ("vanished", "lost"),
    [
        ("Role._observe", ["invoke_agent"]),
        ("Environment.publish_message", ["send_message"]),
        ("OpenAILLM._achat_completion", ["chat"]),
    ],
)
async def test_a_target_that_vanished_is_one_warning(
    vanished: str, lost: list[str], monkeypatch, caplog, server
) -> None:
    """A version without one of the targets: it is named once, and everything else is recorded."""
    rows = tuple(
        replace(p, target=p.target + "_gone") if p.target == vanished else p
        for p in MetaGPTInstrumentor.patches
    )
    monkeypatch.setattr(MetaGPTInstrumentor, "patches", rows)
    server.follow(programs.script)
    with caplog.at_level(logging.WARNING, logger="mast_trace"):
        spans = RecordedSpans.of(MetaGPTInstrumentor())
    try:
        await team_of_two()
        missing = list(spans.instrumentor.state.missing)
    finally:
        spans.instrumentor.uninstrument()
    warnings = [r.getMessage() for r in caplog.records if r.name == "mast_trace"]
    assert [vanished in warning for warning in warnings] == [True]
    assert len(missing) == 1
    operations = ("send_message", "invoke_agent", "chat")
    assert [operation for operation in operations if not spans.named(operation)] == lost
    spans.check_shape()


async def test_an_error_of_ours_stays_ours(recorded, monkeypatch, caplog, server) -> None:
    """Telemetry that raises everywhere changes nothing in the program, and is logged."""

    def broken(*_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError("telemetry is out of order")

    server.follow(programs.script)
    plain = await team_of_two()
    recorded.exporter.clear()
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    for name in ("run", "agent", "message", "tool", "chat", "inputs"):
        monkeypatch.setattr(recorded.instrumentor.telemetry, name, broken)
    assert await team_of_two() == plain
    assert recorded.all == []
    assert "telemetry is out of order" in caplog.text
