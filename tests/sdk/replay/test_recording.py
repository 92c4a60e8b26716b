"""A tape holds all that a replay needs, also of the interrupted runs that a run continues."""

from __future__ import annotations

from dataclasses import asdict

from mast_trace.messages import Message
from mast_trace.replay.recording import tape_of
from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory


def run_of(name: str) -> Trajectory:
    """Return a run that has something for each part of a tape, all of it under a name of its own."""
    called = Step(0, StepKind.TOOL, agent=name, text="59", tool="price", arguments="{}")
    handed = Step(1, StepKind.TOOL, agent=name, text="", tool=f"to_{name}", handoff_to="boss")
    call = Invocation(
        kind="model",
        agent=name,
        span_id=f"call of {name}",
        parent_span_id="",
        start=1,
        end=2,
        input_ids=("m",),
        output_text="Yes.",
    )
    return Trajectory(
        trace_id=name,
        steps=(called, handed),
        invocations=(call,),
        texts={"m": Message("Which price?", role="user")},
        human_inputs=(f"typed in {name}",),
        given_lessons=(f"learnt in {name}",),
    )


def test_the_tape_of_several_runs_is_theirs_one_after_the_other() -> None:
    runs = [run_of(name) for name in "abc"]
    parts = [asdict(tape_of(run)) for run in runs]
    joint = asdict(tape_of(runs[-1], *runs[:-1]))
    # Masks are given for a replay.
    alone = ("run", "start", "plain_functions", "blocks", "environment", "masks")
    assert [joint.pop(name) for name in alone] == ["c", None, (), (), {}, ()]
    assert joint == {name: sum((part[name] for part in parts), ()) for name in joint}
    assert {name: len(held) for name, held in joint.items()} == dict.fromkeys(joint, 3)
