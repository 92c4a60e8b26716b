"""One model's reading of a run: whole in one call, or by notes on its parts where it is too long."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mast_trace.exceptions import JudgeError, VerdictUnreadable
from mast_trace_judge.llm.answers import Correction, Reading, SegmentNotes
from mast_trace_judge.llm.endpoint import ModelEndpoint, PromptTooLong
from mast_trace_judge.llm.interview import Interview, RunContext
from mast_trace_judge.llm.prompts import prompt
from mast_trace_judge.llm.quotes import QuoteCheck
from mast_trace_judge.llm.retry import together
from mast_trace_judge.llm.segments import ReadingPlan, digest_of, plan_reading
from mast_trace_judge.llm.transcript import Renderer, estimate_tokens, nonce
from mast_trace_judge.llm.verification import (
    UNDECIDED,
    ModelReading,
    Suggestion,
    Verifier,
    corrected,
    plain,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.config import JudgeConfig
    from mast_trace_judge.llm.budget import Price
    from mast_trace_judge.local.layers import LocalFindings
    from mast_trace_judge.local.outcome import Outcome

_SMALLER_WINDOWS = 4
_LEAST_WINDOW = 500
_ANSWERED = 2
"""Number of steps before one that are shown with it, such as the question that it answers."""


@dataclass
class RunReader:
    """Asks one model about one run.

    Attributes:
        price: of the model; None if unknown.
        sample: number of the model's reading, from 1 on.
    """

    endpoint: ModelEndpoint
    config: JudgeConfig
    context: RunContext
    price: Price | None
    sample: int = 1

    async def read(self, trajectory: Trajectory, local: LocalFindings) -> ModelReading:
        """Read the run, in a smaller window where the model's is smaller than assumed.

        Raises:
            JudgeError: there is no reading; the text has the reason.
        """
        window = min(self.config.judge_window_tokens, await self.endpoint.window())
        for _ in range(1 + _SMALLER_WINDOWS):
            if window < _LEAST_WINDOW:
                break
            session = _Session(self, trajectory, local, window)
            try:
                return await session.read()
            except PromptTooLong:
                window = min(window, session.longest_record) // 2
        raise JudgeError("the model's context window is too small for this run")


class _Session:
    """The questions about one run, in a window of one size.

    Attributes:
        longest_record: tokens of the longest record that was asked about so far.
    """

    def __init__(
        self, reader: RunReader, trajectory: Trajectory, local: LocalFindings, window: int
    ) -> None:
        self._reader = reader
        self._trajectory = trajectory
        self._window = window
        self._verifier = Verifier(QuoteCheck(trajectory), len(trajectory.steps))
        self._problems: list[str] = []
        self.longest_record = 0
        mark = nonce(reader.context.trace_id, reader.context.version)
        # As many characters as the window has tokens: about a quarter of it.
        self._renderer = replace(renderer_of(trajectory, local, mark=mark), fact=window)

    async def read(self) -> ModelReading:
        plan = await asyncio.to_thread(
            plan_reading,
            self._renderer,
            window=self._window,
            budget=self._reader.context.budget.left,
            question=estimate_tokens(self._renderer.task() + whole_question()),
        )
        self._renderer = plan.renderer
        record = self._renderer.record() if plan.at_once else await self._digest(plan)
        text = marked(self._renderer, record)
        reading = await self._interview(text).ask("read", whole_question(), Reading)
        if reading.marks is not None and not all(m in reading.marks for m in self._renderer.marks):
            raise JudgeError(
                "the model did not see the whole record: its answer lacks the mark at the beginning or at the end; "
                "set the context length of its server, or judge_window_tokens, to what it can read"
            )
        outcome, probability = self._consistent(reading)
        suggestions = () if outcome == "success" else self._verifier.suggestions(reading)
        suggestions = await self._what_if(self._interview(text), suggestions)
        modes = self._verifier.modes(reading.modes)
        self._problems.extend(self._verifier.notes())
        return ModelReading(
            outcome=outcome,
            failure_probability=probability,
            suggestions=suggestions,
            undecided=UNDECIDED.get(reading.decisive.kind, "") if outcome == "failure" else "",
            confidence=reading.confidence,
            modes=modes,
            problems=tuple(self._problems),
            models=(self._reader.endpoint.model,),
        )

    def _consistent(self, reading: Reading) -> tuple[Outcome, float]:
        """A recorded outcome overrides the model's; an outcome that contradicts its own probability is none."""
        recorded, probability = self._trajectory.outcome, reading.failure_probability
        if recorded == "success":
            return "success", 0.0
        if recorded == "failure":
            return "failure", 1.0
        if reading.outcome == "unclear":
            return "unknown", probability
        # One that was left out, or could not be read, contradicts nothing.
        told = "failure_probability" in reading.model_fields_set
        if told and (reading.outcome == "failure") != (probability > 0.5):
            self._problems.append(
                f"the model says {reading.outcome} and a failure probability of {probability:g}"
            )
            return "unknown", probability
        return reading.outcome, probability

    async def _what_if(
        self, interview: Interview, suggestions: tuple[Suggestion, ...]
    ) -> tuple[Suggestion, ...]:
        """Let the model write the first suggested steps as they should have been, all concurrently."""

        async def ask(one: Suggestion) -> Suggestion:
            try:
                answer = await interview.ask(
                    f"counterfactual {one.step}",
                    prompt("counterfactual").fill(step=one.step, full=self._in_full(one.step)),
                    Correction,
                )
            except JudgeError as error:
                self._problems.append(f"step {one.step} was not tried: {error}")
                return one
            fix = plain(answer.minimal_fix) or one.minimal_fix
            return replace(one, minimal_fix=fix, corrected=corrected(answer))

        most = self._reader.config.judge_candidates
        tried = await together(ask(one) for one in suggestions[:most])
        return (*tried, *suggestions[most:])

    async def _digest(self, plan: ReadingPlan) -> str:
        """Let the parts of a long run be read concurrently, and write the notes."""
        task, parts = self._renderer.task(), len(plan.segments)

        async def read_part(number: int, steps: Sequence[Step]) -> SegmentNotes:
            record = await asyncio.to_thread(replace(self._renderer).record, steps)
            asked = prompt("segment").fill(
                part=number, parts=parts, first=steps[0].index, last=steps[-1].index
            )
            try:
                interview = self._interview(f"{task}\n\n{record}")
                return await interview.ask(f"segment {number}", asked, SegmentNotes)
            except VerdictUnreadable as error:
                self._problems.append(f"part {number} of {parts} was not read: {error}")
                return SegmentNotes(summary="(this part could not be read)", errors=[])

        notes = await together(
            read_part(number, steps) for number, steps in enumerate(plan.segments, start=1)
        )
        points = [self._verifier.points(note.errors) for note in notes]
        found = {point.step for several in points for point in several}
        return digest_of(
            replace(self._renderer, in_full=found | set(self._renderer.in_full)),
            list(zip(plan.segments, [plain(note.summary) for note in notes], points, strict=True)),
            window=self._window,
        )

    def _interview(self, text: str) -> Interview:
        self.longest_record = max(self.longest_record, estimate_tokens(text))
        reader = self._reader
        return Interview(reader.endpoint, reader.context, reader.price, text, reader.sample)

    def _in_full(self, step: int) -> str:
        """Return a step and those that it answers, at the length that they have in the record or more."""
        steps = self._trajectory.steps[max(0, step - _ANSWERED) : step + 1]
        shown = {each.index for each in steps}
        full = max(self._renderer.full, self._window)
        writer = replace(self._renderer, full=full, in_full=shown)
        return writer.fenced("step", "\n".join(map(writer.step, steps)))


def renderer_of(trajectory: Trajectory, local: LocalFindings, *, mark: str) -> Renderer:
    """Return the writer of a run's record; steps with findings of the rules are the last to be shortened."""
    found = frozenset(step for mode in local.modes for step in mode.steps)
    return Renderer(trajectory, mark, in_full=found)


def marked(renderer: Renderer, record: str) -> str:
    """Return task and record between two marks, which a reader of the whole has seen."""
    begin, end = renderer.marks
    return f"Mark: {begin}\n\n{renderer.task()}\n\n{record}\n\nMark: {end}"


def whole_question() -> str:
    """Return the question of the one reading of a whole run."""
    return prompt("read").fill(modes=prompt("modes").text)
