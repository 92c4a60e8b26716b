"""What the judge says of a run, and how that is stored."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Evidence(str, Enum):
    """How a finding was made. Only `EXACT` ones and modes 1.3 and 2.1 may alert without a model."""

    EXACT = "exact"
    """Follows from ids, arguments, results and states that the spans record."""
    HEURISTIC = "heuristic"
    """Read off the texts by a rule."""
    MODEL = "model"
    """Said by a language model, with a quote that was found in the run."""


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
        span_ids: of the steps, in their order; filled in when the verdict is put together.
    """

    code: str
    probability: float
    evidence: Evidence
    reason: str = ""
    steps: tuple[int, ...] = ()
    quotes: tuple[str, ...] = ()
    span_ids: tuple[str, ...] = ()


class Candidate(_Record):
    """A step that may have decided the failure; ``rule`` is what speaks for it."""

    step: int
    agent: str
    probability: float
    rule: str = ""
    span_id: str = ""


class DecisiveError(_Record):
    """The earliest step whose correction would have turned the failure into success.

    After arXiv 2509.03312. ``agent`` is always the speaker of ``step``.
    """

    step: int
    agent: str
    probability: float
    rule: str = ""
    reason: str = ""
    minimal_fix: str = ""
    span_id: str = ""


class RunFacts(_Record):
    """What a run was when it was judged, as ``mast_runs`` had it; stored beside the verdict.

    Attributes:
        seen: when its newest span had arrived; a later arrival means that the run may have changed.
        outcome: what was said of its end; empty when nobody had said.
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
        status_reason: why, then; otherwise what a layer could not contribute.
        method: ``local``, ``llm`` or ``fused``.
        outcome: ``success``, ``failure`` or ``unknown``.
        failure_probability: from 0 to 1.
        modes: findings, most probable first.
        decisive: None where the run succeeded or the judge abstains.
        abstained: the best candidate is below the threshold; ``candidates`` still list it.
        candidates: the three likeliest steps, likeliest first.
        run: what the run was; no part of what is handed out, None in old verdicts.
    """

    trace_id: str
    fingerprint: str
    judge_version: str
    judged_at: datetime
    status: Literal["ok", "unscored"] = "ok"
    status_reason: str = ""
    method: Literal["local", "llm", "fused"] = "local"
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
    model: str = ""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    run: RunFacts | None = Field(None, exclude=True, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as plain JSON types."""
        return self.model_dump(mode="json")
