"""Assertions on a run's failure modes, outcome and steps; each failure quotes the run.

Budgets of a run: tokens, cost, steps, model calls and the time of its models.

Calls count as in the totals of a run: a call that two tools have recorded counts once.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal, TypeAlias

from mast_trace import semconv
from mast_trace.replay.run_files import runs_of
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace.testing import CapturedSpans, ReplayedRun
from mast_trace.trajectory import SpanRecord, Step, StepKind, Trajectory, vocabulary
from mast_trace.trajectory.copies import without_copies
from mast_trace_judge.gate.case_files import Case
from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.pricing import PriceConfig
from mast_trace_judge.pricing.prices import OwnPrice, bands_of, cost_of
from mast_trace_judge.verdict import SHOWN_FROM, Evidence, ModeFinding

_LONGEST_LINE: Final = 160
_MOST: Final = 5
_HIDDEN: Final = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of characters that control a terminal, or hide and reorder text."""

AnyRun: TypeAlias = Trajectory | CapturedSpans | ReplayedRun | Case | str | Path
"""The forms of a run: captured or replayed spans with one run, a trajectory, a case, or a file of one run."""


def one_line(text: str, longest: int = _LONGEST_LINE) -> str:
    """Return a text on one line of at most so many characters, with control characters as codes."""
    line = re.sub(r"[ \t\r\n]+", " ", text[: 4 * longest]).strip()
    shown = "".join(
        f"<U+{ord(each):04X}>" if unicodedata.category(each) in _HIDDEN else each for each in line
    )
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def step_line(step: Step) -> str:
    """Return a step with its agent, its tool and the beginning of its text."""
    who = one_line(step.agent, 40) or "nobody"
    if step.kind is StepKind.TOOL:
        who = f"{who} called {one_line(step.tool, 40)}({one_line(step.arguments, 80)})"
    said = f" [error: {one_line(step.error, 80)}]" if step.error is not None else ""
    return f"step {step.index}, {who}: {one_line(step.text)!r}{said}"


def evidence_of(run: Trajectory, finding: ModeFinding) -> Iterator[str]:
    """Yield the lines that show a finding: its reason, and its steps with their words."""
    if finding.reason:
        yield f"  {one_line(finding.reason, 300)}"
    texts = {step.index: step for step in run.steps}
    known = [texts[number] for number in finding.steps if number in texts]
    yield from (f"  {step_line(step)}" for step in known[:_MOST])
    if len(known) > _MOST:
        yield f"  and {len(known) - _MOST} more steps"
    told = " ".join(one_line(step.text) for step in known[:_MOST])
    quotes = [quote for each in finding.quotes if (quote := one_line(each)) not in told]
    yield from (f"  quote: {quote!r}" for quote in quotes[:_MOST])


def listed(names: Iterable[str]) -> str:
    """Return names in a row; ``none`` without any."""
    return ", ".join(one_line(name, 60) for name in names) or "none"


@dataclass(frozen=True)
class Subject:
    """One run.

    Attributes:
        run: its steps.
        spans: its spans; None where only the steps are known.
        replayed: whether its models were answered from a record, so that their calls took no time.
    """

    run: Trajectory
    spans: tuple[SpanRecord, ...] | None = None
    replayed: bool = False

    @property
    def title(self) -> str:
        """The name and the beginning of the id, for messages."""
        return f"run {self.run.name or 'without a name'} ({self.run.trace_id[:8]})"


def subject_of(run: AnyRun) -> Subject:
    """Return the run that is meant.

    Raises:
        AssertionError: several runs were recorded, or none.
        TypeError: it is in no form that an assertion reads.
        ValueError: a file holds no run, or several.
        OSError: the file cannot be read.
    """
    if isinstance(run, ReplayedRun):
        return Subject(run.captured.trajectory(), tuple(run.captured.records), replayed=True)
    if isinstance(run, CapturedSpans):
        return Subject(run.trajectory(), tuple(run.records))
    if isinstance(run, Case):
        return Subject(run.trajectory)
    if isinstance(run, Trajectory):
        return Subject(run)
    if isinstance(run, str | Path):
        return Subject(runs_of(run)[-1])
    raise TypeError(
        f"an assertion takes captured spans, a replayed run, a trajectory, a case or a file of one run, "
        f"not {type(run).__name__}"
    )


_LONGEST = 5


@dataclass(frozen=True)
class Priced:
    """A model call with its cost in US dollars; None if its price is unknown."""

    model: str
    agent: str
    input_tokens: int
    output_tokens: int
    cost: Decimal | None


def check_budget(
    run: AnyRun,
    *,
    tokens: int | None = None,
    cost_usd: float | None = None,
    steps: int | None = None,
    model_calls: int | None = None,
    model_seconds: float | None = None,
) -> None:
    """Assert that a run stays within a budget; see `mast_trace_judge.testing.assert_budget`."""
    __tracebackhide__ = True
    if all(each is None for each in (tokens, cost_usd, steps, model_calls, model_seconds)):
        raise TypeError(
            "assert_budget needs a limit: tokens, cost_usd, steps, model_calls or model_seconds"
        )
    subject = subject_of(run)
    problems = []
    if steps is not None and len(subject.run.steps) > steps:
        problems.append(f"{len(subject.run.steps):,} steps, more than {steps:,}")
    calls = sum(each.kind == "model" for each in subject.run.invocations)
    if model_calls is not None and calls > model_calls:
        problems.append(f"{calls:,} model calls, more than {model_calls:,}")
    if tokens is not None:
        problems.extend(_tokens(subject, tokens))
    if cost_usd is not None:
        problems.extend(_cost(subject, Decimal(str(cost_usd))))
    if model_seconds is not None:
        problems.extend(_seconds(subject, model_seconds))
    if problems:
        raise AssertionError(f"{subject.title} is over its budget: {'; '.join(problems)}")


def _tokens(subject: Subject, most: int) -> list[str]:
    __tracebackhide__ = True
    used = subject.run.input_tokens + subject.run.output_tokens
    if not used:
        raise AssertionError(
            f"{subject.title} records no tokens of any model call, so a budget of tokens says nothing"
        )
    if used <= most:
        return []
    parts = f"{subject.run.input_tokens:,} read, {subject.run.output_tokens:,} written"
    return [f"{used:,} tokens ({parts}), more than {most:,}"]


def _cost(subject: Subject, most: Decimal) -> list[str]:
    __tracebackhide__ = True
    if subject.spans is None:
        raise TypeError(
            "a budget of cost needs the spans of the run, which captured_spans has: a file or a "
            "trajectory has no tokens of single calls"
        )
    calls = priced_calls(subject.spans, PriceConfig.load().own_prices)
    if not calls:
        raise AssertionError(
            f"{subject.title} records no tokens of any model call, so a budget of cost says nothing"
        )
    unknown = sorted(
        {call.model or "a call without a model's name" for call in calls if call.cost is None}
    )
    if unknown:
        raise AssertionError(
            f"{subject.title} cannot be priced: no price is known of {listed(unknown)}. "
            "MAST_TRACE_OWN_PRICES gives one."
        )
    total = sum((call.cost for call in calls if call.cost is not None), Decimal(0))
    if total <= most:
        return []
    dearest = sorted(calls, key=lambda call: call.cost or 0, reverse=True)[:_LONGEST]
    named = ", ".join(
        f"{one_line(call.agent, 40) or 'nobody'} on {one_line(call.model, 60)} ${call.cost:f}"
        for call in dearest
    )
    return [f"${total:f}, more than ${most:f} (dearest calls: {named})"]


def priced_calls(spans: Sequence[SpanRecord], own: Mapping[str, OwnPrice]) -> list[Priced]:
    """Return the model calls of a run that record tokens, with their cost.

    Args:
        spans: of the run.
        own: own prices by model, or by provider and model.
    """
    found = []
    for span in without_copies(spans):
        values = {
            field: vocabulary.integer(vocabulary.read(span.attributes, field)) or 0
            for field in (
                "input_tokens",
                "output_tokens",
                "cache_read_tokens",
                "cache_write_tokens",
            )
        }
        if span.operation != semconv.CHAT or not (
            values["input_tokens"] or values["output_tokens"]
        ):
            continue
        model = str(vocabulary.read(span.attributes, "model") or "")
        cost = cost_of(
            bands_of(model, _provider(span.attributes), own),
            datetime.fromtimestamp(span.start / 1e9, timezone.utc),
            input_tokens=values["input_tokens"],
            output_tokens=values["output_tokens"],
            cache_read=values["cache_read_tokens"],
            cache_write=values["cache_write_tokens"],
        )
        agent = vocabulary.agent(span.attributes)
        found.append(Priced(model, agent, values["input_tokens"], values["output_tokens"], cost))
    return found


def _provider(attributes: Mapping[str, object]) -> str:
    names = (semconv.PROVIDER_NAME, "gen_ai.system", "llm.provider")
    return next((str(attributes[name]) for name in names if attributes.get(name)), "")


def _seconds(subject: Subject, most: float) -> list[str]:
    __tracebackhide__ = True
    if subject.replayed:
        raise TypeError(
            "a replayed run asks no model, so that its calls take no time: a budget of model_seconds "
            "needs a live run"
        )
    calls = [call for call in subject.run.invocations if call.kind == "model"]
    if not calls:
        raise AssertionError(
            f"{subject.title} has no model call, so a budget of their time says nothing"
        )
    took = sum(call.end - call.start for call in calls) / 1e9
    if took <= most:
        return []
    slowest = max(calls, key=lambda call: call.end - call.start)
    who = f"{one_line(slowest.agent, 40) or 'nobody'} on {one_line(slowest.model, 60)}"
    longest = f"the slowest: {who}, {(slowest.end - slowest.start) / 1e9:.1f} s"
    return [f"{took:.1f} s of model time in {len(calls)} calls, more than {most:g} s ({longest})"]


_LAST = 3


def check_modes(
    run: AnyRun,
    codes: Sequence[str],
    *,
    at_least: float = SHOWN_FROM,
    exact_only: bool = False,
    unexamined: Literal["fail", "pass"] = "fail",
) -> None:
    """Assert that a run shows none of these failure modes; see `mast_trace_judge.testing.assert_no_mode`."""
    __tracebackhide__ = True
    unknown = [code for code in codes if code not in FAILURE_MODES]
    if unknown:
        raise ValueError(f"MAST has no failure mode {listed(unknown)}: {', '.join(FAILURE_MODES)}")
    subject = _with_steps(run)
    found = judge_by_rules(subject.run)
    wanted = set(codes or FAILURE_MODES)
    shown = [
        mode
        for mode in found.modes
        if mode.code in wanted
        and mode.probability >= at_least
        and (mode.evidence is Evidence.EXACT or not exact_only)
    ]
    if shown:
        raise AssertionError("\n".join(_about_modes(subject, shown)))
    left = [code for code in codes if code not in found.examined]
    if left and unexamined == "fail":
        named = listed(f"{code} {FAILURE_MODES[code].name}" for code in left)
        raise AssertionError(
            f"{subject.title} was not examined for {named}, so nothing shows that it is free of them: "
            "the rules look for some modes only in runs that have ended, or are known to have failed. "
            "Leave these out, or pass unexamined='pass'."
        )


def _about_modes(subject: Subject, shown: Sequence[ModeFinding]) -> Iterator[str]:
    count = "a failure mode" if len(shown) == 1 else f"{len(shown)} failure modes"
    yield f"{subject.title} shows {count}:"
    for mode in shown:
        yield f"{mode.code} {FAILURE_MODES[mode.code].name} ({mode.evidence.value})"
        yield from evidence_of(subject.run, mode)


def check_outcome(run: AnyRun, expected: str) -> None:
    """Assert how a run ended; see `mast_trace_judge.testing.assert_outcome`."""
    __tracebackhide__ = True
    if expected not in {"success", "failure"}:
        raise ValueError(f"an outcome is success or failure, not {expected!r}")
    subject = subject_of(run)
    found = judge_by_rules(subject.run).outcome
    if found.outcome == expected:
        return
    if not found.known:
        raise AssertionError(
            f"{subject.title} has no known outcome, not {expected}: the program recorded none, and it "
            f"ended without an error. mast_trace.record_outcome() records one.\n{_ending(subject.run)}"
        )
    because = {
        "recorded": subject.run.outcome_reason and f": {one_line(subject.run.outcome_reason, 300)}",
        "error": f": {one_line(subject.run.error or '', 300)}",
        "termination": f": {one_line(subject.run.termination_reason, 80)}",
    }.get(found.source, "")
    raise AssertionError(
        f"{subject.title} ended in {found.outcome}, not {expected} ({found.source}{because})\n"
        f"{_ending(subject.run)}"
    )


def check_steps(
    run: AnyRun,
    *,
    at_most: int | None = None,
    at_least: int | None = None,
    agents: Collection[str] | None = None,
    tools: Mapping[str, int] | None = None,
    in_order: Sequence[str] | None = None,
) -> None:
    """Assert which steps a run has; see `mast_trace_judge.testing.assert_steps`."""
    __tracebackhide__ = True
    conditions = (at_most, at_least, agents, tools, in_order)
    if all(each is None for each in conditions):
        raise TypeError(
            "assert_steps needs a condition: at_most, at_least, agents, tools or in_order"
        )
    subject = subject_of(run)
    steps = subject.run.steps
    problems = []
    if at_most is not None and len(steps) > at_most:
        problems.append(f"it has {len(steps)} steps, more than {at_most}")
    if at_least is not None and len(steps) < at_least:
        problems.append(f"it has {len(steps)} steps, fewer than {at_least}")
    if agents is not None and set(agents) != set(subject.run.agents):
        problems.append(f"its agents are {listed(subject.run.agents)}, not {listed(agents)}")
    called = Counter(step.tool for step in steps if step.kind is StepKind.TOOL)
    for tool, times in (tools or {}).items():
        if called[tool] != times:
            known = listed(f"{name} {count}x" for name, count in called.items())
            problems.append(
                f"tool {one_line(tool, 60)} was called {called[tool]} times, not {times} (called: {known})"
            )
    missing = _first_missing(steps, in_order or ())
    if missing is not None:
        problems.append(
            f"no step of {one_line(missing[0], 60)} follows"
            + (f" step {missing[1]}" if missing[1] >= 0 else "")
        )
    if problems:
        raise AssertionError(f"{subject.title}: {'; '.join(problems)}\n{_ending(subject.run)}")


def _first_missing(steps: Sequence[Step], names: Sequence[str]) -> tuple[str, int] | None:
    """Return the first agent or tool that does not follow in order, and the step before; None if all do."""
    place = -1
    for name in names:
        following = (s.index for s in steps if s.index > place and name in {s.agent, s.tool})
        found = next(following, None)
        if found is None:
            return name, place
        place = found
    return None


def _with_steps(run: AnyRun) -> Subject:
    __tracebackhide__ = True
    subject = subject_of(run)
    if not subject.run.steps:
        raise AssertionError(
            f"{subject.title} has no steps, so nothing was judged: no message, tool call or model call "
            "was recorded"
        )
    return subject


def _ending(run: Trajectory) -> str:
    """Return the last steps of a run, for messages."""
    return "\n".join(f"  {step_line(step)}" for step in run.steps[-_LAST:]) or "  no steps"
