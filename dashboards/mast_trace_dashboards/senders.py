"""The instrumentation that sent a run, and the facts that its telemetry lacks for the judge.

A fact is absent if no span of the run holds it, by the same reading as the judge's; nothing is concluded
from the instrumentation's name. The name chooses the remedy alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace.trajectory import StepKind, Trajectory

if TYPE_CHECKING:
    from mast_trace_dashboards.stored_run import StoredRun

_SOME_STEPS = 200
"""Steps that are looked at in a run that is too long to be held."""
_OPENINFERENCE = "leave `OPENINFERENCE_HIDE_INPUTS` and `OPENINFERENCE_HIDE_OUTPUTS` unset"
_STATED = "texts are read from `gen_ai.input.messages`, `gen_ai.output.messages` and `gen_ai.tool.call.result`"
_STANDARD = "set `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY`"
_OPENAI_AGENTS = "set `OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA=true`"
_CLIENT = "instrument the framework beside the model's client"

LACKS: Final[Mapping[str, str]] = {
    "agents": "no agent is named",
    "inputs": "no model call tells what the model was shown",
    "answers": "no answer of a model was recorded",
    "tools": "models asked for tools, and no run of a tool was recorded",
    "results": "no result of a tool was recorded",
    "tokens": "no tokens of input and output were reported",
}
"""Fact that the judge or the costs need -> words for its absence."""


@dataclass(frozen=True)
class Emitter:
    """An instrumentation, and the settings that make it tell more; each is empty where there is none.

    Attributes:
        scope: beginning of its spans' scope, or of that and the run's framework after a slash.
        content: brings inputs, answers and results.
        tokens: brings the tokens.
        agents: brings the names of agents.
        tools: brings the runs of tools.
    """

    scope: str
    content: str = ""
    tokens: str = ""
    agents: str = ""
    tools: str = ""

    def remedy(self, fact: str) -> str:
        """Return the setting that brings a fact of `LACKS`; empty where none is known."""
        names = {"tokens": self.tokens, "agents": self.agents, "tools": self.tools}
        return names.get(fact, self.content)


EMITTERS: Final = (
    Emitter("", _STATED),
    Emitter("mast_trace", "call `mast_trace.instrument(capture_content=True)`", tools=_CLIENT),
    Emitter("mast_trace.import", "the file does not hold them"),
    Emitter(
        "mast_trace.import/claude-code-events",
        "set `OTEL_LOG_USER_PROMPTS=1`, `OTEL_LOG_TOOL_DETAILS=1` and `OTEL_LOG_RAW_API_BODIES=1`; results of "
        "tools are in the session's file under `~/.claude/projects`",
    ),
    Emitter("agent_framework", "set `ENABLE_SENSITIVE_DATA=true`"),
    Emitter(
        "ai",
        "leave `recordInputs` and `recordOutputs` of `experimental_telemetry` on",
        agents="give each call `experimental_telemetry: { functionId: NAME }`",
    ),
    Emitter(
        "com.anthropic.claude_code",
        "set `OTEL_LOG_USER_PROMPTS=1`, `OTEL_LOG_TOOL_DETAILS=1`, `OTEL_LOG_TOOL_CONTENT=1` and "
        "`ENABLE_BETA_TRACING_DETAILED=1` with `BETA_TRACING_ENDPOINT`",
    ),
    Emitter("gcp.vertex.agent", _STANDARD),
    Emitter("@arizeai/openinference", _OPENINFERENCE, agents="give each agent a `name`"),
    Emitter("openinference.", _OPENINFERENCE, tools=_CLIENT),
    Emitter(
        "openinference.instrumentation.dspy",
        _OPENINFERENCE,
        tokens="add `openinference-instrumentation-litellm`",
        agents="make a `dspy.Module` of each agent",
    ),
    Emitter(
        "openinference.instrumentation.llama_index",
        _OPENINFERENCE,
        tokens='give the model `additional_kwargs={"stream_options": {"include_usage": True}}`',
    ),
    Emitter(
        "openinference.instrumentation.openai_agents",
        _OPENAI_AGENTS,
        tokens=_OPENAI_AGENTS,
    ),
    Emitter("openlit.", "call `openlit.init(capture_message_content=True)`"),
    Emitter("opentelemetry.instrumentation.", "set `TRACELOOP_TRACE_CONTENT=true`", tools=_CLIENT),
    Emitter("opentelemetry.instrumentation.openai_v2", _STANDARD, tools=_CLIENT),
    Emitter("pydantic-ai", "leave `InstrumentationSettings(include_content=True)`"),
    Emitter("strands.", "keep the events of spans, which hold its texts, on their way here"),
)
"""Instrumentations with remedies of their own; the longest beginning of a scope that fits counts."""


@dataclass(frozen=True)
class RunTelemetry:
    """The origin of a run's telemetry, and its gaps.

    Attributes:
        senders: scopes of its spans with their versions, as far as these are known.
        lacks: a sentence for each fact that no span holds, with its remedy.
    """

    senders: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


def held(run: Trajectory) -> dict[str, bool | None]:
    """Return for each fact of `LACKS` whether a run holds it; None where the run has no place for it."""
    calls = [each for each in run.invocations if each.kind == "model"]
    said = [each for each in run.texts.values() if each.role == "assistant"]
    tools = [step for step in run.steps if step.kind is StepKind.TOOL]
    spoken = [step for step in run.steps if step.kind is not StepKind.TOOL and step.role != "user"]
    asks = any(each.tool_calls for each in said)
    passes_on = any(step.handoff_to for step in run.steps)
    results = [bool(step.text) for step in tools if step.error is None and not step.handoff_to]
    # An answer that is a call of a tool has no text; one that is neither was not recorded.
    answers = any(step.text for step in spoken) or any(each.content for each in said)
    if not answers:
        answers = (
            all(each.tool_calls for each in said) if said else any(s.arguments for s in spoken)
        )
    return {
        "agents": bool(run.agents) if run.steps else None,
        "inputs": any(m.content for call in calls for m in run.seen_by(call)) if calls else None,
        "answers": answers if spoken or calls else None,
        "tools": True if tools else None if passes_on or not asks else False,
        "results": any(results) if results else None,
        "tokens": run.input_tokens + run.output_tokens > 0 if calls else None,
    }


def lacking(run: Trajectory, scopes: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence for each fact that a run lacks, with its remedy.

    Args:
        run: the run.
        scopes: of its spans.
    """
    emitters = [_emitter(f"{scope}/{run.framework}") for scope in scopes]
    absent = [fact for fact, is_held in held(run).items() if is_held is False]
    told: dict[str, list[str]] = {}
    for fact in absent:
        remedies = dict.fromkeys(filter(None, (each.remedy(fact) for each in emitters)))
        told.setdefault("; ".join(remedies), []).append(LACKS[fact])
    return tuple(
        f"{facts[0].upper()}{facts[1:]}" + (f": {remedy}." if remedy else ".")
        for remedy, words in told.items()
        for facts in [", ".join(words)]
    )


def _emitter(scope: str) -> Emitter:
    return max(
        (each for each in EMITTERS if scope.startswith(each.scope)),
        key=lambda each: len(each.scope),
    )


def telemetry_of(stored: StoredRun) -> RunTelemetry:
    """Return the origin of a stored run and its gaps.

    The first steps stand for a run that is too long to be held; the gaps of one whose steps are not counted yet
    are unknown.

    Raises:
        StorageError: the database does not answer.
    """
    scopes = stored.scopes()
    senders = tuple(f"{scope} {version}".rstrip() for scope, version in scopes.items())
    if not scopes or not stored.is_ready:
        return RunTelemetry(senders)
    run = stored.trajectory()
    if run is None:
        some = stored.steps(range(min(stored.count, _SOME_STEPS)), clip=100)
        run = dataclasses.replace(stored.outline.run, steps=tuple(some))
    return RunTelemetry(senders, lacking(run, scopes))
