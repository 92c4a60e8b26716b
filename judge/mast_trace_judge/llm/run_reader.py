"""One model's reading of a run: first without the taxonomy, then what-if, then the failure modes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mast_trace.exceptions import JudgeError, VerdictUnreadable
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.llm.answers import Counterfactual, Mapping, Reading, SegmentNotes
from mast_trace_judge.llm.endpoint import PromptTooLong
from mast_trace_judge.llm.interview import Interview, RunContext
from mast_trace_judge.llm.prompts import prompt
from mast_trace_judge.llm.quotes import QuoteCheck
from mast_trace_judge.llm.retry import together
from mast_trace_judge.llm.segments import ReadingPlan, digest_of, plan_reading
from mast_trace_judge.llm.transcript import Renderer, RenderOptions, estimate_tokens, nonce
from mast_trace_judge.llm.verification import Flip, ModelReading, Point, Verifier, plain
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.config import JudgeConfig
    from mast_trace_judge.llm.budget import Price
    from mast_trace_judge.llm.endpoint import ModelEndpoint
    from mast_trace_judge.local.layers import LocalFindings
    from mast_trace_judge.local.outcome import Outcome
    from mast_trace_judge.verdict import ModeFinding

_SEVERITIES = ("decisive", "major", "minor")
_SMALLER_WINDOWS = 3
_CONDENSED = 90
"""Characters of an ordinary step in the questions that follow the reading."""
_OF_POINT = 600
"""Characters of a step there with an error."""
_CONDENSED_FROM = 2500
"""Tokens from which a record is condensed; a shorter one stays unchanged, so that caches hit."""
_ANSWERED = 2
"""Number of steps before one that are shown with it, such as the question that it answers."""
_WHOLE = 24_000
"""Characters of a step that a question is about."""
_FROM_LOCAL = 2
"""Number of candidates of the local attribution that are tried even where the model saw no error."""


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
        window = self.config.judge_window_tokens
        for _ in range(1 + _SMALLER_WINDOWS):
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
        self._local = local
        self._window = window
        self._verifier = Verifier(QuoteCheck(trajectory), len(trajectory.steps))
        self._problems: list[str] = []
        self.longest_record = 0
        mark = nonce(reader.context.trace_id, reader.context.version)
        clip = reader.config.judge_clip_characters
        self._renderer = renderer_of(trajectory, local, mark=mark, clip=clip)

    async def read(self) -> ModelReading:
        plan = await asyncio.to_thread(
            plan_reading,
            self._renderer,
            window=self._window,
            budget=self._reader.context.budget.left,
            questions=2 + self._reader.config.judge_candidates,
        )
        self._renderer = replace(self._renderer, options=plan.options)
        record = self._renderer.record() if plan.at_once else await self._digest(plan)
        interview = self._interview(self._renderer.task(), record)
        reading = await interview.ask("read", prompt("read").text, Reading)
        points = self._verifier.points(reading.points)
        outcome, probability = self._consistent(reading)
        # A reader all of whose quotes are invented is asked no further questions.
        asked = outcome != "success" and (points or not reading.points)
        if plan.at_once:
            interview = self._interview(self._renderer.task(), self._condensed(record, points))
        flips = await self._what_if(interview, self._candidates(points) if asked else ())
        modes = await self._modes(interview, points)
        self._problems.extend(self._verifier.notes())
        return ModelReading(
            outcome=outcome,
            failure_probability=probability,
            reason=plain(reading.reason),
            flips=flips,
            modes=modes,
            problems=tuple(self._problems),
            dropped=self._verifier.dropped,
            models=(self._reader.endpoint.model,),
            grounded=frozenset(point.step for point in points if point.repaired_at is None),
            addressed=bool(self._local.addressed),
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
        if (reading.outcome == "failure") != (probability > 0.5):
            self._problems.append(
                f"the model says {reading.outcome} and a failure probability of {probability:g}"
            )
            return "unknown", probability
        return reading.outcome, probability

    def _candidates(self, points: Sequence[Point]) -> list[int]:
        """Choose the steps to try: those with an error by the model, and the local layer's."""
        attribution = self._local.attribution
        noted = sorted(
            (point for point in points if point.repaired_at is None),
            key=lambda point: (_SEVERITIES.index(point.severity), point.step),
        )
        most = self._reader.config.judge_candidates
        first = attribution.candidates[:_FROM_LOCAL]
        # The model is not asked again about a step for which it had only invented quotes.
        own = [each.step for each in first if each.step not in self._verifier.ungrounded]
        seen = [point.step for point in noted if point.step in attribution.probabilities]
        # The local layer keeps a slot, however many points the model has noted.
        return list(dict.fromkeys([*seen[: max(1, most - 1)], *own, *seen]))[:most]

    async def _what_if(self, interview: Interview, steps: Sequence[int]) -> dict[int, Flip]:
        """Ask for each step how its correction would have changed the run, all concurrently."""

        async def ask(step: int) -> tuple[int, Flip] | None:
            try:
                answer = await interview.ask(
                    f"counterfactual {step}",
                    prompt("counterfactual").fill(step=step, full=self._in_full(step)),
                    Counterfactual,
                )
            except JudgeError as error:
                self._problems.append(f"step {step} was not tried: {error}")
                return None
            return step, self._verifier.flip(answer, step)

        answers = await together(ask(step) for step in steps)
        return dict(answer for answer in answers if answer is not None)

    async def _modes(
        self, interview: Interview, points: Sequence[Point]
    ) -> tuple[ModeFinding, ...]:
        """Ask for the failure modes that the points amount to; nothing is asked where there are no points."""
        exact = [mode for mode in self._local.modes if mode.evidence is Evidence.EXACT]
        if not points and not exact:
            return ()
        lines = [*map(_point_line, points), *map(_mode_line, exact)]
        question = prompt("map").fill(
            points=self._renderer.fenced("points", "\n".join(self._sanitised(lines))),
            modes="\n".join(
                f"{mode.code} {mode.name}: {mode.definition}" for mode in FAILURE_MODES.values()
            ),
        )
        try:
            answer = await interview.ask("map", question, Mapping)
        except JudgeError as error:
            self._problems.append(f"failure modes were not mapped: {error}")
            return ()
        return self._verifier.modes(answer.modes)

    async def _digest(self, plan: ReadingPlan) -> str:
        """Let the parts of a long run be read concurrently, and write the notes."""
        task, parts = self._renderer.task(), len(plan.segments)

        async def read_part(number: int, steps: Sequence[Step]) -> SegmentNotes:
            record = await asyncio.to_thread(replace(self._renderer).record, steps)
            question = prompt("segment").fill(
                part=number, parts=parts, first=steps[0].index, last=steps[-1].index
            )
            interview = self._interview(task, record)
            try:
                return await interview.ask(f"segment {number}", question, SegmentNotes)
            except VerdictUnreadable as error:
                self._problems.append(f"part {number} of {parts} was not read: {error}")
                return SegmentNotes(summary="(this part could not be read)", points=[])

        notes = await together(
            read_part(number, steps) for number, steps in enumerate(plan.segments, start=1)
        )
        points = [self._verifier.points(note.points) for note in notes]
        return digest_of(
            self._renderer,
            list(zip(plan.segments, [plain(note.summary) for note in notes], points, strict=True)),
            window=self._window,
        )

    def _interview(self, task: str, record: str) -> Interview:
        text = f"{task}\n\n{record}"
        self.longest_record = max(self.longest_record, estimate_tokens(text))
        reader = self._reader
        return Interview(reader.endpoint, reader.context, reader.price, text, reader.sample)

    def _condensed(self, record: str, points: Sequence[Point]) -> str:
        """Return the record for the questions after the reading: mostly the points' steps.

        Each such question costs as much as its record, and shows in full what it asks about.
        """
        if estimate_tokens(record) < _CONDENSED_FROM:
            return record
        options = self._renderer.options
        shorter = replace(
            options, clip=min(options.clip, _CONDENSED), full=min(options.full, _OF_POINT)
        )
        shown = {point.step for point in points}
        return replace(self._renderer, options=shorter, in_full=shown).record()

    def _in_full(self, step: int) -> str:
        """Return a step and those that it answers, at their full length."""
        steps = self._trajectory.steps[max(0, step - _ANSWERED) : step + 1]
        shown = {each.index for each in steps}
        longer = replace(self._renderer.options, full=min(_WHOLE, self._window))
        # With the texts themselves: a repeated text is written out here.
        writer = replace(self._renderer, options=longer, in_full=shown, _texts={})
        return writer.fenced("step", "\n".join(map(writer.step, steps)))

    def _sanitised(self, lines: Iterable[str]) -> Iterable[str]:
        limit = self._renderer.options.full
        return (line for text in lines for line in self._renderer.quoted(text, limit))


def renderer_of(trajectory: Trajectory, local: LocalFindings, *, mark: str, clip: int) -> Renderer:
    """Return the writer of a run's record for its first reading.

    Args:
        trajectory: the run.
        local: the findings of the local layers; steps that they suspect are shown in full.
        mark: of the fences.
        clip: characters of an ordinary step.
    """
    shown = _around(local, len(trajectory.steps))
    return Renderer(trajectory, mark, RenderOptions(clip=clip), in_full=shown)


def _around(local: LocalFindings, steps: int) -> frozenset[int]:
    """Return the local candidates and their neighbours, which are shown in full."""
    found = [candidate.step for candidate in local.attribution.candidates]
    return frozenset(
        near for step in found for near in (step - 1, step, step + 1) if 0 <= near < steps
    )


def _point_line(point: Point) -> str:
    notes: list[str] = [point.severity]
    if point.caused_by is not None:
        notes.append(f"caused by step {point.caused_by}")
    if point.repaired_at is not None:
        notes.append(f"repaired at step {point.repaired_at}")
    quoted = "".join(f' "{text}"' for text in point.quotes)
    return f"[{point.step}] {point.what} ({', '.join(notes)}){quoted}"


def _mode_line(mode: ModeFinding) -> str:
    steps = ", ".join(map(str, mode.steps))
    return f"[{steps}] recorded by the tracer, failure mode {mode.code}: {mode.reason}"
