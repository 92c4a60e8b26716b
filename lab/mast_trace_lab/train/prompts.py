"""Writes the prompt of an example, as the judge writes it to its model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import BudgetExhausted
from mast_trace_judge.llm.interview import messages_about
from mast_trace_judge.llm.prompts import prompt
from mast_trace_judge.llm.run_reader import renderer_of
from mast_trace_judge.llm.sanitise import nonce
from mast_trace_judge.llm.segments import plan_reading
from mast_trace_judge.local.layers import judge_by_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.config import JudgeConfig
    from mast_trace_judge.local.attribution.profile import Profile
    from mast_trace_lab.train.examples import Question

_STEP: Final = """\
Read the whole record from its beginning. The run failed. Find the decisive step: the earliest step
without whose error the run would probably have succeeded. It is where the error was made, not where
it was noticed.

Answer with one JSON object that has nothing but the step's id: {"step": 0}"""


def prompt_of(
    trajectory: Trajectory,
    question: Question,
    config: JudgeConfig,
    *,
    version: str,
    profiles: Sequence[Profile] = (),
) -> tuple[dict[str, str], ...] | None:
    """Return the messages about a run; None where the judge would read the run in several parts.

    Args:
        trajectory: the run.
        question: to be asked about it.
        config: has the window and the lengths to which texts are clipped.
        version: of the judge, from which the mark of the fences is derived.
        profiles: the user's own; with the rules they choose the steps that are shown in full.
    """
    local = judge_by_rules(trajectory, profiles)
    mark = nonce(trajectory.trace_id, version)
    writer = renderer_of(trajectory, local, mark=mark, clip=config.judge_clip_characters)
    try:
        plan = plan_reading(
            writer,
            window=config.judge_window_tokens,
            budget=config.judge_max_tokens_per_run,
            questions=2 + config.judge_candidates,
        )
    except BudgetExhausted:
        return None
    if not plan.at_once:
        return None
    writer = replace(writer, options=plan.options)
    record = f"{writer.task()}\n\n{writer.record()}"
    asked = prompt("read").text if question == "read" else _STEP
    return tuple(messages_about(record, asked))
