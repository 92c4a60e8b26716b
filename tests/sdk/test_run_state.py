"""What is remembered of a run, while the user's own code runs in between."""

from __future__ import annotations

import threading

from opentelemetry.trace import INVALID_SPAN

from mast_trace.messages import Message, ToolCall
from mast_trace.run_state import Run


def test_an_argument_that_is_recorded_while_it_is_shown() -> None:
    """A value's `__str__` may itself send messages of the same run; nobody waits for the other."""
    run = Run(INVALID_SPAN)

    class Talking:
        def __str__(self) -> str:
            run.hold([Message("I am asked who I am.")])
            return f"talking in turn {run.next_turn()}"

    call = Message("Look it up.", tool_calls=(ToolCall("look_up", {"who": Talking()}),))
    answers: list[tuple[str, bool]] = []
    thread = threading.Thread(target=lambda: answers.extend(run.hold([call])), daemon=True)
    thread.start()
    thread.join(30)
    assert [new for _, new in answers] == [True]


def test_what_the_garbage_collector_records_meanwhile() -> None:
    """It may end a span of the run in the same thread, while the run is being written to."""
    run = Run(INVALID_SPAN)

    class Collected(str):
        __slots__ = ()

        def __hash__(self) -> int:
            run.once("span ended")
            return str.__hash__(self)

    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(run.once(Collected("a"))), daemon=True)
    thread.start()
    thread.join(30)
    assert seen == [True]
    assert run.marks == {"span ended", "a"}
