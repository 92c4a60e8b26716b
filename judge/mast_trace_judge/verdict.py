"""Verdicts: the judge's findings on a run, and their stored form."""

from __future__ import annotations

import json
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mast_trace.messages import parsed
from mast_trace_judge.confirmation import Confirmation

if TYPE_CHECKING:
    from collections.abc import Sequence

WRITTEN_FROM: Final = 3
"""Version of the prompt from which on a model writes the corrected step itself."""
_LONGEST: Final = 8000
"""Characters beyond which a corrected step is not taken: a part of it would be another step."""

SHOWN_FROM = 0.5
"""The probability from which a failure mode counts as shown, everywhere; below it is possible."""
MOST_PLACES: Final = 3
"""Places to look at first that a verdict names: as many as a person reads before the run itself."""
Rank = Literal["confirmed by replay", "exact", "model", "calibrated guess", "guess"]
"""The kind of evidence for a decisive error, the strongest first.

``confirmed by replay``: replays of the run have shown it; ``exact``: an exact finding contains the step;
``model``: a finding of a model with verified quotes contains it, or it
is the step of a model that was right often enough on blind labels; ``calibrated guess``: a profile named it,
whose steps were right often enough on labelled natural failures; ``guess``: it was not. No rank is silence: no step is named.
"""


Basis = Literal["confirmed", "record", "rule", "model", "contrast"]
"""The kind of evidence for a place to look at. It is a label and no degree.

``confirmed``: replays have shown it; ``record``: the record contradicts itself there, which proves the
slip, and not that the slip caused this failure; ``rule``: a rule that was measured on labelled failures;
``model``: a model suggests the step, and has quoted an error there; ``contrast``: the first difference
from all good runs of the program that tells anything.
"""


class CorrectedCall(BaseModel):
    """A tool call of a corrected step; ``arguments`` are a JSON object as text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    arguments: str


class CorrectedStep(BaseModel):
    """A step as a model would have it.

    Attributes:
        prompt: version of the prompt that the model has answered.
        text: the step's text; empty for one of tool calls alone.
        tool_calls: tool calls of the step.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: int
    text: str = ""
    tool_calls: tuple[CorrectedCall, ...] = ()

    @property
    def is_answer(self) -> bool:
        """True if it can stand in place of a recorded answer."""
        named = all(
            each.name.strip() and isinstance(parsed(each.arguments), dict)
            for each in self.tool_calls
        )
        size = len(self.text) + sum(
            len(each.name) + len(each.arguments) for each in self.tool_calls
        )
        something = bool(self.text.strip() or self.tool_calls)
        return self.prompt >= WRITTEN_FROM and named and something and size <= _LONGEST


def as_fix(text: str, calls: Sequence[CorrectedCall]) -> str:
    """Return an answer of text and calls in the form in which people give fixes."""
    listed = [{"name": each.name, "arguments": parsed(each.arguments)} for each in calls]
    return json.dumps({"text": text, "tool_calls": listed}, ensure_ascii=False)


def packed(description: str, corrected: CorrectedStep | None) -> str:
    """Return a description and a corrected step as the text of one column, each in a line of its own."""
    return f"{description}\n{corrected.model_dump_json()}" if corrected else description


def unpacked(stored: str) -> tuple[str, CorrectedStep | None]:
    """Return description and corrected step of a column; None in verdicts of earlier versions."""
    description, line, rest = stored.rpartition("\n")
    try:
        return (description, CorrectedStep.model_validate_json(rest)) if line else (stored, None)
    except ValidationError:
        return stored, None


class Evidence(str, Enum):
    """The kind of evidence of a finding. Only `EXACT` ones and modes 1.3 and 2.1 may alert without a model."""

    EXACT = "exact"
    """Follows from ids, arguments, results and states that the spans record."""
    HEURISTIC = "heuristic"
    """Found by a rule in the texts."""
    MODEL = "model"
    """Claimed by a language model, with a quote that was found in the run."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModeFinding(_Record):
    """A failure mode that a run shows.

    Attributes:
        code: such as "1.3", of `mast_trace.taxonomy.FAILURE_MODES`.
        probability: from 0 to 1.
        steps: indices of the steps that show it, earliest first.
        quotes: passages that occur word for word in those steps.
        reason: one sentence.
        span_ids: of the steps, in their order; filled in when the verdict is assembled.
    """

    code: str
    probability: float
    evidence: Evidence
    reason: str = ""
    steps: tuple[int, ...] = ()
    quotes: tuple[str, ...] = ()
    span_ids: tuple[str, ...] = ()

    @property
    def is_shown(self) -> bool:
        """True if it counts as shown by the run; otherwise it is possible."""
        return self.probability >= SHOWN_FROM


class Candidate(_Record):
    """A step that may have decided the failure; ``rule`` is the evidence for it."""

    step: int
    agent: str
    probability: float
    rule: str = ""
    span_id: str = ""


class DecisiveError(_Record):
    """The earliest step whose correction would have turned the failure into success.

    The definition follows arXiv 2509.03312. ``agent`` is always the agent of ``step``.
    ``minimal_fix`` describes the change, and ``corrected`` is the step itself as a model would have it.
    """

    step: int
    agent: str
    probability: float
    rule: str = ""
    reason: str = ""
    minimal_fix: str = ""
    span_id: str = ""
    corrected: CorrectedStep | None = None


class Place(_Record):
    """A step of a failed run that is worth a look, and the evidence for it.

    Attributes:
        why: one sentence of cause.
        quotes: passages that show it, word for word.
        reaches_answer: a figure that the step brought in stands in the run's answer, or went into it.
        heirs: indices of the later steps that hold the wrong value, or what was made of it, in order.
        possible_heirs: those of them in which it may be another value.
        right: labelled natural failures in which such a place was the decisive step.
        cases: labelled natural failures with such a place; 0 where it was not measured on any.
        planted_right: as ``right``, of failures into which somebody planted the error.
        planted_cases: as ``cases``, of these.
        corrected: the step as a model would have it, where one was asked for it.
        good_run: id of the good run whose step shows the contrast; empty where none does.
        good_step: index of that step.
    """

    step: int
    agent: str
    basis: Basis
    why: str
    quotes: tuple[str, ...] = ()
    span_id: str = ""
    reaches_answer: bool = False
    heirs: tuple[int, ...] = ()
    possible_heirs: tuple[int, ...] = ()
    right: int = 0
    cases: int = 0
    planted_right: int = 0
    planted_cases: int = 0
    corrected: CorrectedStep | None = None
    good_run: str = ""
    good_step: int = 0

    @property
    def measured(self) -> str:
        """The counts of such places in words; empty where nobody has counted."""
        if self.cases:
            return f"right in {self.right} of {self.cases} labelled failures"
        if self.planted_cases:
            return f"right in {self.planted_right} of {self.planted_cases} planted faults"
        return ""


class RunFacts(_Record):
    """Run metadata at judging time, from ``mast_runs``; stored beside the verdict.

    Attributes:
        seen: arrival time of its newest span; a later arrival means that the run may have changed.
        outcome: the recorded outcome; empty when none was recorded.
        kind: empty for a program's own run.
    """

    seen: datetime
    spans: int = 0
    errors: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    agents: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    outcome: str = ""
    outcome_reason: str = ""
    termination_reason: str = ""
    kind: str = ""


class Verdict(_Record):
    """The judge's findings on one run.

    Attributes:
        status: ``unscored`` where no verdict could be reached; never a pass or a fail.
        status_reason: the reason why, then; otherwise why a layer did not contribute.
        method: ``local``, ``llm`` or ``fused``; ``reading`` of a local verdict that a model's reading is to replace.
        outcome: ``success``, ``failure`` or ``unknown``.
        failure_probability: from 0 to 1.
        modes: findings, most probable first.
        decisive: None where the run succeeded or the judge abstains.
        abstained: the best candidate is below the threshold; ``candidates`` still list it.
        candidates: the three likeliest steps, likeliest first.
        look_first: up to three places to look at first, where the run failed or its record
            contradicts itself; empty where there is no evidence for any. See
            `mast_trace_judge.look_first`.
        examined: codes of the failure modes that were looked for in this run; the others are
            unknown. Empty in verdicts of earlier versions, whose examined modes are unknown.
        rank: the kind of evidence for ``decisive``; filled in when a verdict is read to be shown.
        confirmation: the conclusion of the run's replays; joined to a verdict when it is read to be
            shown, and then in effect: see `mast_trace_judge.proof`.
        calibrated: whether the probabilities of ``decisive`` and ``candidates`` were measured on
            runs like this one; otherwise only their order is meaningful.
        model: names of the models that have read the run.
        prompt: digest of the questions that they were asked.
        model_step: the step that they suggest first, whatever the verdict says; None if they suggest none.
        readings: number of times that models have read the run, all models together.
        agreeing: number of these readings that suggest ``model_step`` first; where it is None, no step.
        run: run metadata at judging time; excluded from JSON; None in verdicts stored by earlier
            versions.
    """

    trace_id: str
    fingerprint: str
    judge_version: str
    judged_at: datetime
    status: Literal["ok", "unscored"] = "ok"
    status_reason: str = ""
    method: Literal["local", "llm", "fused", "reading", "provisional"] = "local"
    project: str = ""
    service: str = ""
    framework: str = ""
    name: str = ""
    run_start: datetime
    run_end: datetime
    steps: int
    outcome: Literal["success", "failure", "unknown"] = "unknown"
    failure_probability: float = 0.0
    modes: tuple[ModeFinding, ...] = ()
    decisive: DecisiveError | None = None
    abstained: bool = False
    candidates: tuple[Candidate, ...] = Field(default=())
    look_first: tuple[Place, ...] = ()
    examined: tuple[str, ...] = ()
    calibrated: bool = False
    rank: Rank | None = None
    confirmation: Confirmation | None = None
    model: str = ""
    prompt: str = ""
    model_step: int | None = None
    readings: int = 0
    agreeing: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    run: RunFacts | None = Field(None, exclude=True, repr=False)

    @property
    def shown(self) -> tuple[ModeFinding, ...]:
        """The failure modes that are as probable as `SHOWN_FROM`."""
        return tuple(mode for mode in self.modes if mode.is_shown)

    @property
    def is_provisional(self) -> bool:
        """True if another verdict is to replace it, of the run once it is quiet or after a model's reading."""
        return self.method in {"reading", "provisional"}

    @property
    def is_suspect(self) -> bool:
        """True if the run did not fail as far as is known, and its record contradicts a good end."""
        return self.outcome != "failure" and bool(self.look_first)

    @property
    def named_candidates(self) -> tuple[Candidate, ...]:
        """The candidates that are shown to people.

        There are none where nothing shows that the run failed: its outcome is unknown, and it shows
        no failure mode.
        """
        healthy = self.outcome != "failure" and self.decisive is None and not self.shown
        return () if self.outcome == "success" or healthy else self.candidates

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as plain JSON types."""
        return self.model_dump(mode="json")
