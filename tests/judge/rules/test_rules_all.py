"""Properties of every rule and of their merging."""

import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge.builders import RunBuilder

from mast_trace.messages import Message
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory
from mast_trace_judge.local.rules import RULES, find_modes
from mast_trace_judge.verdict import Evidence

DEEP = '{"a":' + "[" * 100_000
NAMES = st.sampled_from(["", "user", "writer", "reviewer", "planner", "Computer_terminal"])
TEXTS = st.one_of(
    st.text(max_size=200),
    st.sampled_from(
        [
            "TERMINATE",
            "I called `search` and it returned 12,345.",
            "exitcode: 1 (execution failed)",
            "```python\nx = 1\ny = 2\n",
            '{"page": 1, "pages": 3}',
            "The total is 1e999, or 99999999999999999999999999999999.",
            "I was unable to find it. Let me check",
            "That is wrong. Approved! The answer is **12,345**.",
            "\ud800 lone surrogate",
        ]
    ),
)


@st.composite
def steps(draw, index):
    kind = draw(st.sampled_from(StepKind))
    return Step(
        index=index,
        kind=kind,
        agent=draw(NAMES),
        text=draw(TEXTS),
        span_id=draw(st.sampled_from(["", f"s{index}"])),
        message_id=draw(st.sampled_from(["", "m0", "m1", f"m{index}"])),
        recipients=tuple(draw(st.lists(NAMES, max_size=3))),
        role=draw(st.sampled_from(["", "user", "assistant", "tool"])),
        tool=draw(st.sampled_from(["", "search", "write_file", "finish"])),
        arguments=draw(st.sampled_from(["", "{}", "{bad", '{"q": [1, {"a": NaN}]}'])),
        error=draw(st.sampled_from([None, "", "Timeout\nat line 3"])),
        handoff_to=draw(NAMES),
        synthetic=draw(st.booleans()),
        start=draw(st.integers(-1, 50)),
        end=draw(st.integers(-1, 50)),
    )


@st.composite
def trajectories(draw):
    count = draw(st.integers(0, 14))
    return Trajectory(
        trace_id="1",
        steps=tuple(draw(steps(index)) for index in range(count)),
        invocations=tuple(
            Invocation(
                kind=draw(st.sampled_from(["agent", "model"])),
                agent=draw(NAMES),
                span_id="i",
                parent_span_id=draw(st.sampled_from(["i", "root", ""])),
                start=draw(st.integers(0, 50)),
                end=0,
                input_ids=tuple(
                    draw(st.lists(st.sampled_from(["m0", "m1", "m2", "x"]), max_size=4))
                ),
                input_length=draw(st.sampled_from([None, 0, 10, 1000])),
            )
            for _ in range(draw(st.integers(0, 5)))
        ),
        texts={"m0": Message("what was said"), "m1": Message("")},
        task=draw(TEXTS),
        outcome=draw(st.sampled_from(["", "success", "failure"])),
        termination_reason=draw(st.sampled_from(["", "max_turns", "interrupted"])),
        open_items=tuple(draw(st.lists(TEXTS, max_size=1))),
        error=draw(st.sampled_from([None, "", "ValueError"])),
        finished=draw(st.booleans()),
    )


def test_json_that_is_nested_too_deeply_is_text():
    """Python's reader gives up on it with a RecursionError, which is no ValueError."""
    run = RunBuilder().asks()
    for _ in range(6):
        run.calls("writer", "list_files", {}, DEEP)
    built = run.says("writer", "These are all files.").build()
    steps = tuple(replace(step, arguments=step.tool and DEEP) for step in built.steps)
    assert find_modes(replace(built, steps=steps))


@given(trajectories())
@settings(max_examples=200, deadline=None)
def test_findings_are_sound_on_any_run(trajectory):
    """No rule raises; codes are known, steps exist, and every quote occurs in a step it names."""
    for rule in RULES:
        for found in rule(trajectory):
            assert found.code in FAILURE_MODES
            assert 0 < found.probability <= 1
            assert found.evidence is not Evidence.MODEL
            assert all(0 <= step < len(trajectory.steps) for step in found.steps)
            texts = [trajectory.steps[step].text for step in found.steps]
            assert all(any(quote in text for text in texts) for quote in found.quotes)


@given(trajectories())
@settings(max_examples=50, deadline=None)
def test_merged_findings_are_one_per_mode_and_sorted(trajectory):
    modes = find_modes(trajectory)
    assert len({mode.code for mode in modes}) == len(modes)
    assert list(modes) == sorted(modes, key=lambda mode: -mode.probability)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_rule_names_its_mode_and_source(rule):
    assert "Definition: MAST" in rule.__doc__
    assert rule(Trajectory(trace_id="1", steps=())) == []


def test_memory_stays_bounded_on_long_texts():
    """Similarity looks at a bounded part of each text."""
    run = RunBuilder()
    for number in range(30):
        run.says("a", f"{number} " + "word " * 40_000)
    trajectory = run.build()
    tracemalloc.start()
    find_modes(trajectory)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60_000_000
