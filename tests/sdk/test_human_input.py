"""Texts that a person types are noted on the root of their run, and on nothing else."""

from __future__ import annotations

import builtins
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import mast_trace
from mast_trace import semconv
from mast_trace.spans import carried
from mast_trace.testing import capture_spans


@pytest.fixture(autouse=True)
def typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who types the prompt."""
    monkeypatch.setattr(builtins, "input", lambda prompt="": str(prompt))


def inputs(captured: Any) -> list[Any]:
    """Return the noted texts of each run, the first run first."""
    roots = captured.named(semconv.INVOKE_WORKFLOW)
    return [(root.attributes or {}).get(semconv.HUMAN_INPUTS) for root in roots]


def test_texts_belong_to_the_run_or_to_the_next_one() -> None:
    """A text before a run belongs to it; one in a run inside of another belongs to the outer one."""
    with capture_spans([]) as captured:
        assert input("before") == "before"
        with mast_trace.run("outer"), mast_trace.agent("a"):
            input("in the agent")
            with mast_trace.run("inner"):
                input("inside")
        with mast_trace.run("silent"):
            pass
        input("after")
    assert inputs(captured) == [("before", "in the agent", "inside"), None, None]


def test_a_thread_that_does_not_know_the_run() -> None:
    """The only open run has asked; among several none is guessed, and the next one has the text."""

    def elsewhere() -> None:
        with mast_trace.run("other"):
            other.submit(input, "to whom?").result()

    with capture_spans([]) as captured, ThreadPoolExecutor() as pool, ThreadPoolExecutor() as other:
        carried.carry_no_runs()
        with mast_trace.run("team"):
            pool.submit(input, "in a thread").result()
            pool.submit(elsewhere).result()
        with mast_trace.run("next"):
            pass
    assert inputs(captured) == [("in a thread",), None, ("to whom?",)]


def test_content_that_is_not_captured_leaves_input_alone() -> None:
    """Nothing is noted, and Python's function is not even replaced."""
    own = builtins.input
    with capture_spans([], capture_content=False) as captured, mast_trace.run("team"):
        assert builtins.input is own
        input("secret")
    assert inputs(captured) == [None]


def test_texts_are_redacted_and_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """They pass the rules of all other texts: no part of what is redacted is left by the cut."""
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "1000")
    hidden = capture_spans([], redact=lambda text: text.replace("my pin is 1234", "[pin]"))
    with hidden as captured, mast_trace.run("team"):
        for shift in (0, 7):
            input("." * shift + "my pin is 1234" * 1000)
    (root,) = captured.named(semconv.INVOKE_WORKFLOW)
    attributes = root.attributes or {}
    for mark in (semconv.CONTENT_TRUNCATED, semconv.CONTENT_REDACTED):
        assert attributes[mark] == (semconv.HUMAN_INPUTS,)
    for text in attributes[semconv.HUMAN_INPUTS]:  # type: ignore[union-attr]
        assert len(str(text)) <= 1000
        assert not re.search("my |123|234", str(text).replace("[... ", ""))


def test_commands_for_a_debugger_are_not_noted() -> None:
    """They are no part of the program."""
    with capture_spans([]) as captured, mast_trace.run("team"):
        exec("input('next')", {"__name__": "pdb"})  # a module of that name
    assert inputs(captured) == [None]


def test_afterwards_input_is_python_s_own() -> None:
    own = builtins.input
    with capture_spans([]):
        assert builtins.input is not own
        with capture_spans([]) as inner, mast_trace.run("team"):
            input("once")
        assert builtins.input is not own
    assert builtins.input is own
    assert inputs(inner) == [("once",)]
