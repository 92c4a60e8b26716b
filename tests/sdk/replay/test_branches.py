"""Paths of branches: equal for a program that runs again, and empty outside of parallel branches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import mast_trace
from mast_trace import semconv
from mast_trace._session import current_session
from mast_trace.replay.live import LiveBranches
from mast_trace.spans.run_state import innermost_span
from mast_trace.testing import capture_spans
from mast_trace.trajectory import SpanRecord
from mast_trace.trajectory.span_tree import parallel_branches


def span(
    number: int, parent: int, name: str, start: int, end: int, branch: int | None = None
) -> SpanRecord:
    """Return the span of an agent."""
    attributes = {semconv.OPERATION_NAME: semconv.INVOKE_AGENT, semconv.AGENT_NAME: name}
    if branch is not None:
        attributes[semconv.BRANCH] = branch
    return SpanRecord("t", str(number), str(parent or ""), name, start, end, attributes)


def test_agents_in_turn_have_no_branch() -> None:
    """Agents of one name that act one after the other are told apart by their order."""
    assert parallel_branches([span(1, 0, "run", 0, 99), span(2, 1, "a", 1, 5)]) == {}
    turns = [span(1, 0, "run", 0, 99), span(2, 1, "a", 1, 5), span(3, 1, "a", 5, 9)]
    assert parallel_branches(turns) == {}


def test_agents_at_the_same_time_have_branches() -> None:
    """Each has a path with its place, and what is below it has the path, too."""
    spans = [
        span(1, 0, "run", 0, 99),
        span(2, 1, "a", 1, 50),
        span(3, 1, "a", 2, 60),
        span(4, 3, "b", 3, 4),
        span(5, 1, "a", 70, 80),
    ]
    assert parallel_branches(spans) == {
        "2": "/run#0/a#0",
        "3": "/run#0/a#1",
        "4": "/run#0/a#1/b#0",
    }


def test_a_number_of_the_framework_takes_the_place_of_the_order() -> None:
    """Threads may begin in another order than the framework has sent them off."""
    spans = [span(1, 0, "run", 0, 99), span(2, 1, "a", 1, 50, 1), span(3, 1, "a", 2, 60, 0)]
    assert parallel_branches(spans) == {"2": "/run#0/a#1", "3": "/run#0/a#0"}


def test_parents_in_a_circle_end() -> None:
    """Spans that are each other's parents have paths, too."""
    assert parallel_branches([span(1, 2, "a", 0, 9), span(2, 1, "b", 1, 8)]) == {}


def test_a_live_program_has_the_recorded_paths() -> None:
    """Paths that are noted while spans begin are those that are read from the spans."""
    live = LiveBranches()
    seen: dict[str, str] = {}

    def work(name: str) -> None:
        with mast_trace.agent(name), mast_trace.agent("inner"):
            span = innermost_span()
            assert span is not None
            seen[f"{span.get_span_context().span_id:016x}"] = live.current()

    with capture_spans([]) as captured:
        session = current_session()
        assert session is not None
        session.provider.add_span_processor(live)
        with mast_trace.run("team"), ThreadPoolExecutor(4) as pool:
            list(pool.map(mast_trace.in_context(work), ["a", "b"] * 4))
    records = sorted(captured.records, key=lambda each: each.start)
    paths = parallel_branches(records)
    assert len(seen) == 8
    assert {key: path for key, path in seen.items() if key in paths}.items() <= paths.items()
