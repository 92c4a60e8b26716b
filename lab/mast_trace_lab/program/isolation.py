"""Signs that replays of one run are not comparable: state outside the process, or another model."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.arms import ArmResult
    from mast_trace_lab.program.setup import Setup


def not_isolated(recorded: Trajectory, result: ArmResult, setup: Setup) -> str:
    """Return the reason why a replay cannot be compared with the others; empty if there is none.

    Tools of a replay are executed only where the person allows it. An executed tool may have changed
    the world, so that without a reset the next replay begins in another state. A provider may answer with
    another model than on the day of the recording, which changes the success rates of all arms.
    """
    if result.live_tools and not setup.reset:
        tools = "1 tool was" if result.live_tools == 1 else f"{result.live_tools} tools were"
        return (
            f"{tools} executed, and nothing restored the state afterwards; "
            "--reset names a command that does"
        )
    known = recorded_models(recorded)
    asked = result.arm.fix.model if result.arm.fix else ""
    other = [model for model in result.models if model not in known and not _is(model, asked)]
    if known and other:
        return (
            f"the run was made with {', '.join(sorted(known))}, and {', '.join(other)} answered now"
        )
    return ""


def recorded_models(recorded: Trajectory) -> frozenset[str]:
    """Return the names of the models that answered in the recorded run."""
    return frozenset(
        call.model for call in recorded.invocations if call.kind == "model" and call.model
    )


def _is(model: str, asked: str) -> bool:
    """Return whether a model is the one that was asked for: providers append dates to names."""
    return bool(asked) and model.startswith(asked)
