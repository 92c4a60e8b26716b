"""Arms of a counterfactual experiment, and the results of their replays.

An arm fixes what of a recorded run is kept, what is changed, and from where the program runs live. Steps
are indices of `Trajectory.steps`; an arm's step is the first step of a recorded model answer, or a tool
step for the operators that change a tool's result.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Final, Literal, get_args

Operator = Literal[
    "verify",
    "score",
    "start",
    "keep",
    "fix",
    "resample",
    "drop",
    "result",
    "arguments",
    "model",
    "request",
    "error",
]
"""The change that an arm makes.

``verify`` replays everything and changes nothing; ``score`` asks the oracle about the recorded answer
again and starts no program. ``start`` runs everything live. ``keep`` serves all up to and including the
step; ``fix`` replaces the answer at the step by a text; ``resample`` asks the model again at the step;
``drop`` removes the tool calls of the answer at the step; ``result`` and ``arguments`` change the tool
call at the step; ``model`` asks another model at the step; ``request`` shows the model other messages at
the step, and ``error`` makes the tool call at the step fail. After the step, all of them run live.
"""

FixSource = Literal["", "person", "resample", "stronger model", "judge", "reference", "injection"]
"""The origin of a fix, in the order in which `mast-trace confirm` tries them; ``injection`` is a planted fault."""
_SOURCES: Final[tuple[FixSource, ...]] = get_args(FixSource)

ReplayStatus = Literal["ok", "diverged", "blocked", "timeout", "error", "crashed", "over budget"]
"""The end of one replay. Only ``ok`` has an outcome; the others are censored, not failures, unless an experiment says so.

``diverged``: a call before the change that the recorded run does not hold; ``blocked``: a tool that was
not recorded and may not be executed; ``error``: the program or the oracle could not be started, a live call
failed, or there was no outcome; ``crashed``: the program reached the change and ended with an error of its own,
without an outcome.
"""

RECOVERY: Final = "recovery"
"""The phase of replays of a stored failure: their steps are that run's, not the recorded one's."""
START: Final = -1
"""The step of the arm ``start``: nothing of the recorded run is kept."""


@dataclass(frozen=True)
class Fix:
    """A correction of one step.

    Attributes:
        source: the origin.
        text: the replacement of the answer, of the tool's result or of its arguments; empty for
            ``resample`` and ``stronger model``.
        model: the model that is asked, for ``stronger model``.
        result: whether the text is a tool's result; a step may be an answer that asks for a tool, and
            that tool's call.
    """

    source: FixSource
    text: str = ""
    model: str = ""
    result: bool = False

    @property
    def rank(self) -> int:
        """Place of the source in the order in which `mast-trace confirm` tries them."""
        return _SOURCES.index(self.source)


@dataclass(frozen=True)
class ReplayArm:
    """One arm of an experiment.

    Attributes:
        operator: the change.
        step: index of the step; `START` for ``start``, ``verify`` and ``score``.
        fix: the correction; None for operators without one.
        hold: serves the recorded answer of every later request that is equal to a recorded one. Such
            replays say nothing about V, so `confirm` never plans them.
        also: corrections at later steps, in the order of completion, for ``fix``, ``model`` and
            ``result``: two errors of which each is enough are only seen when both are fixed. After the
            first correction the program runs live. A later answer meets the call that its agent makes in
            that place (its third, say), whatever the request is; a later result meets the call of its
            tool with the recorded arguments.
    """

    operator: Operator
    step: int = START
    fix: Fix | None = None
    hold: bool = False
    also: tuple[tuple[int, Fix], ...] = ()


@dataclass(frozen=True)
class ArmResult:
    """The result of one replay of an arm.

    Replays of a plan are rows of the table ``mast_replays``; those of `mast-trace replay` are printed alone.

    Attributes:
        arm: the arm.
        status: the end of the replay.
        success: the outcome; None unless ``status`` is ``ok``.
        reason: text that explains status or outcome; empty if there is nothing to say.
        phase: the part of the experiment that planned it: ``verify``, ``score``, ``start``,
            ``screening``, ``pairs``, ``injection`` or `RECOVERY`; empty for one of `mast-trace replay`.
        pair: number of the pair of ``pairs``, from 0; -1 otherwise.
        served_calls: model calls that were answered from the record.
        served_tools: tool calls that were answered from the record.
        live_calls: model calls that were sent to a model.
        live_tools: tools that were executed, hand-offs excluded.
        input_tokens: of live calls.
        output_tokens: of live calls.
        cost_usd: of live calls; None if a price is unknown.
        models: models that answered live calls.
        calls_hash: hash of the canonical live requests in order; equal in replays that did the same.
        answer: the final answer, cut to 4,000 characters.
        started_at: in UTC.
        seconds: duration.
    """

    arm: ReplayArm
    status: ReplayStatus
    success: bool | None = None
    reason: str = ""
    phase: str = ""
    pair: int = -1
    served_calls: int = 0
    served_tools: int = 0
    live_calls: int = 0
    live_tools: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    models: tuple[str, ...] = ()
    calls_hash: str = ""
    answer: str = ""
    started_at: datetime = datetime(1970, 1, 1, tzinfo=timezone.utc)
    seconds: float = 0.0
