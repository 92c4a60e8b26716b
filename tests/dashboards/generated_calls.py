"""Generated runs with priced model calls, and their costs by a second implementation in fractions.

Times, lengths and prices lie at both sides of every border: midnight, the hours and the length of input from which
another price applies, the beginning of the range, the time of the decisive step.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from verdict_rows import verdict_row

from mast_trace_judge.confirmation import Confirmation
from mast_trace_judge.pricing.prices import COLUMNS
from mast_trace_judge.store.confirmations import row_of, show
from mast_trace_judge.store.replay_plans import ReplayPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mast_trace_collector.storage import Store

DAY: Final = datetime(2026, 3, 2, tzinfo=timezone.utc)
"""The midnight in the middle of every run."""
EDGES: Final = [
    *(-10_800, -7201, -7200, -7199, -1, 0, 1, 3 * 3600, 6 * 3600 - 1, 6 * 3600),
    *(43_200, 43_201),
]
"""Seconds from that midnight at which calls begin, or a few milliseconds after."""
BANDS: Final[dict[str, list[Any]]] = {
    "flat": [(date(1970, 1, 1), 0, 86_400, -1, "3", "0.3", "3.75", "15", "10")],
    "dated": [
        (date(1970, 1, 1), 0, 86_400, -1, "2", "0.5", "2.5", "8", "0"),
        (date(2026, 3, 2), 0, 86_400, -1, "1.1", "0.11", "1.375", "4.4", "0"),
    ],
    "nightly": [
        (date(1970, 1, 1), 0, 86_400, -1, "0.27", "0.07", "0.27", "1.1", "0"),
        (date(1970, 1, 1), 22 * 3600, 6 * 3600, -1, "0.135", "0.035", "0.135", "0.55", "0"),
        (date(1970, 1, 1), 43_200, 43_201, -1, "9", "8", "7", "6", "5"),
    ],
    "long": [
        (date(1970, 1, 1), 0, 86_400, -1, "1.25", "0.125", "1.25", "10", "0"),
        (date(1970, 1, 1), 0, 86_400, 1000, "2.5", "0.25", "2.6", "15", "0"),
    ],
    "new": [(date(2026, 3, 2), 0, 86_400, -1, "4", "1", "5", "9", "0")],
    "unknown": [],
}
"""Prices by model: since, begin, end, above, input, cache read, cache write, output, a million calls."""
FACTORS: Final = {("one", "x"): 1, ("two", "x"): 2, ("one", "y"): 5, ("two", "y"): 7}
"""Prices differ by project and provider."""
AGENTS: Final = ("writer", "critic", "")


@dataclass(frozen=True)
class Call:
    """A model call as a span records it."""

    project: str
    trace: str
    number: int
    at: datetime
    model: str
    provider: str
    sent: int
    output: int
    read: int
    written: int
    agent: str
    turn: int
    request: str
    ours: bool = True
    around: int = 0
    decided: datetime | None = None
    again: bool = False
    resent: int = 0

    @property
    def cost(self) -> Fraction | None:
        """Millionths of a dollar: the last band that applies, by the definition of `Band`."""
        second = self.at.hour * 3600 + self.at.minute * 60 + self.at.second
        found = None
        for since, begin, end, above, *prices in BANDS[self.model]:
            inside = begin <= second < end if begin <= end else not end <= second < begin
            if self.at.date() >= since and inside and self.sent > above:
                fresh = max(0, self.sent - self.read - self.written)
                parts = (fresh, self.read, self.written, self.output, 1)
                found = sum(n * Fraction(price) for n, price in zip(parts, prices, strict=True))
        return None if found is None else found * FACTORS[self.project, self.provider]

    @property
    def after(self) -> bool:
        return self.decided is not None and self.at > self.decided


@dataclass(frozen=True)
class Tool:
    """An execution of a tool."""

    project: str
    trace: str
    number: int
    at: datetime
    agent: str
    name: str


@dataclass
class Run:
    """A run: its spans as stored, and the time of the step by which it was decided."""

    project: str
    trace: str
    start: datetime
    turn: str
    calls: list[Call]
    tools: list[Tool]
    decision: str
    step: int
    modes: tuple[tuple[str, float], ...]

    @property
    def shown(self) -> set[str]:
        return {code for code, probability in self.modes if probability >= 0.5}

    def counted(self) -> list[Call]:
        """Each call once, with its agent, the time of the decision, and what the agent sent before."""
        largest: dict[int, Call] = {}
        for call in self.calls:
            known = largest.get(call.number)
            if (call.sent or call.output) and (
                known is None or (call.sent, call.output) > (known.sent, known.output)
            ):
                largest[call.number] = call
        by_tool: dict[tuple[int, int], tuple[list[Call], list[Call]]] = defaultdict(
            lambda: ([], [])
        )
        within = {call.around for call in largest.values()}
        for call in sorted(largest.values(), key=lambda each: (each.at, each.number)):
            if not call.ours and call.number in within:
                continue
            by_tool[call.sent, call.output][not call.ours].append(call)
        once = [call for ours, theirs in by_tool.values() for call in ours + theirs[len(ours) :]]
        spans = {each.number: each.at for each in (*self.calls, *self.tools)}
        wanted = {"judge": 0, "proved": 10, "other refuted": 0, "outdated": 0}.get(self.decision)
        decided = None if wanted is None else spans[self.step + wanted]
        last: dict[str, Call] = {}
        found = []
        for call in sorted(once, key=lambda each: (each.at, each.number)):
            agent = call.agent or (self.turn if call.turn else "")
            before = last.get(agent)
            last[agent] = replace(
                call,
                agent=agent,
                decided=decided,
                again=before is not None and call.request != "" and call.request == before.request,
                resent=min(call.sent, before.sent + before.output) if before else 0,
            )
            found.append(last[agent])
        return found

    def asked_by(self) -> list[tuple[Tool, Call, Fraction]]:
        """Each tool's execution with the latest call of its agent, and its share of it."""
        calls = self.counted()
        found = []
        for tool in self.tools:
            before = [call for call in calls if call.agent == tool.agent and call.at <= tool.at]
            if before:
                found.append((tool, max(before, key=lambda each: each.at)))
        return [
            (tool, call, Fraction(1, sum(call is each for _, each in found)))
            for tool, call in found
        ]


def runs() -> list[Run]:
    """Runs of two projects, some with the id of a run of the other project."""
    dice = random.Random(20260302)
    decisions = (
        *("", "judge", "proved", "refuted", "other refuted", "overdetermined"),
        *("outdated", "success"),
    )
    return [
        _run(dice, project, f"{number + shift:032x}", decisions[number % len(decisions)])
        for project, shift in (("one", 1), ("two", 8))
        for number in range(16)
    ]


def _run(dice: random.Random, project: str, trace: str, decision: str) -> Run:
    start = DAY - timedelta(hours=4) + timedelta(seconds=int(trace, 16))
    # No two spans of a run begin at the same time but a tool and the call before it.
    moments = iter(
        sorted(
            DAY + timedelta(seconds=second, milliseconds=dice.choice((0, 1, 7))) for second in EDGES
        )
    )
    calls: list[Call] = []
    tools: list[Tool] = []
    for number, at in enumerate(moments, 1):
        sent = dice.choice((0, 1, 999, 1000, 1001, 1001, 5000))
        read = dice.choice((0, sent // 3, sent))
        call = Call(
            project=project,
            trace=trace,
            number=10 * number,
            at=at,
            model=dice.choice(list(BANDS)),
            provider=dice.choice("xxy"),
            sent=sent,
            output=dice.choice((0, 1, 70)),
            read=read,
            written=dice.choice((0, sent // 4, sent - read)),
            agent=(agent := dice.choice(AGENTS)),
            turn=0 if agent else dice.choice((0, 1)),
            request=dice.choice(("", "a", "a", "b")),
        )
        calls.append(call)
        if dice.random() < 0.3:  # as it was while it was being written
            calls.insert(-1, replace(call, sent=call.sent // 2, output=0))
        if dice.random() < 0.4:  # as another tool has recorded it, which may see more calls
            for more in range(1, dice.randint(2, 3)):
                late = at + timedelta(microseconds=more)
                calls.append(replace(call, number=call.number + more, at=late, ours=False))
            if dice.random() < 0.5:  # in whose span lies another of the same call
                late, sent = at + timedelta(microseconds=9), call.sent + dice.choice((0, 1))
                inner = replace(call, number=call.number + 9, at=late, ours=False, sent=sent)
                calls.append(replace(inner, around=calls[-1].number))
        for more in range(dice.choice((0, 0, 1, 3))):
            late = at + timedelta(milliseconds=dice.choice((0, 50)) + more)
            name, agent = dice.choice(("look", "buy")), dice.choice(AGENTS)
            tools.append(Tool(project, trace, call.number + 5 + more, late, agent, name))
    modes = tuple((dice.choice(("1.3", "2.6")), dice.choice((0.49, 0.5, 0.9))) for _ in range(3))
    turn = dice.choice(("writer", "helper"))
    return Run(project, trace, start, turn, calls, tools, decision, 10 * dice.randint(3, 8), modes)


def store_runs(store: Store, generated: Sequence[Run]) -> None:
    """Write runs, verdicts, conclusions of replays, and prices of now and of before."""
    rows = [row for run in generated for row in spans_of(run)]
    store.insert("otel_traces", rows)
    store.insert("otel_traces", rows[::3])  # a batch that comes again
    known = store.query("SELECT Project, TraceId, Fingerprint FROM mast_runs")
    prints = {(row["Project"], row["TraceId"]): row["Fingerprint"] for row in known}
    store.insert("mast_verdicts", [v for run in generated for v in _verdicts(run, prints)])
    told = [row for run in generated if (row := _confirmation(run, prints))]
    store.insert("mast_confirmations", told)
    show(store, [(run.project, run.trace) for run in generated])
    for year, wrong in ((2101, 3), (2102, 1), (2100, 4)):
        store.insert("mast_prices", list(_prices(datetime(year, 1, 1, tzinfo=timezone.utc), wrong)))


def _prices(at: datetime, wrong: int) -> Iterable[dict[str, Any]]:
    """Prices as they were at a time; the latest count."""
    for (project, provider), factor in FACTORS.items():
        for model, bands in BANDS.items():
            told = [
                (*band[:4], *(Decimal(price) * factor * wrong for price in band[4:]))
                for band in bands
            ]
            columns = zip(
                COLUMNS.values(), zip(*told, strict=True) if told else [()] * 9, strict=True
            )
            named = {"Project": project, "Model": model, "Provider": provider, "PricedAt": at}
            yield {**named, **{column: list(values) for column, values in columns}}


def _span(run: Run, number: int, at: datetime, parent: int, **attributes: object) -> dict[str, Any]:
    return {
        "TraceId": run.trace,
        "SpanId": f"{number:016x}",
        "ParentSpanId": f"{parent:016x}" if parent >= 0 else "",
        "Timestamp": at,
        "Duration": 1000,
        "ServiceName": "shop",
        "ScopeName": "mast_trace.ag2",
        "ResourceAttributes": {"mast.project": run.project},
        "SpanAttributes": {name: str(value) for name, value in attributes.items() if value != ""},
    }


def spans_of(run: Run) -> Iterable[dict[str, Any]]:
    """The rows of a run's spans; those of model calls in the order of the calls."""
    kind, agent = "gen_ai.operation.name", "gen_ai.agent.name"
    yield _span(run, 0, run.start, -1, **{kind: "invoke_workflow"})
    yield _span(run, 1, run.start, 0, **{kind: "invoke_agent", agent: run.turn})
    for tool in run.tools:
        named = {"gen_ai.tool.name": tool.name, agent: tool.agent}
        yield _span(run, tool.number, tool.at, 0, **{kind: "execute_tool"}, **named)
    for call in run.calls:
        tokens = {
            "gen_ai.usage.input_tokens": call.sent,
            "gen_ai.usage.output_tokens": call.output,
            "gen_ai.usage.cache_read.input_tokens": call.read,
            "gen_ai.usage.cache_write.input_tokens": call.written,
            "gen_ai.request.model": call.model,
            "gen_ai.provider.name": call.provider,
            "mast.input.message_ids": call.request,
            agent: call.agent,
        }
        row = _span(run, call.number, call.at, call.around or call.turn, **{kind: "chat"}, **tokens)
        yield row if call.ours else {**row, "ScopeName": "other"}


def _verdicts(run: Run, prints: dict[tuple[str, str], str]) -> Iterable[dict[str, Any]]:
    """The newest verdict, and an earlier one with another decisive step that counts no more."""
    row = verdict_row(
        int(run.trace, 16),
        run.start,
        [(code, probability, "exact") for code, probability in run.modes],
        Project=run.project,
        Fingerprint=prints[run.project, run.trace],
        JudgeVersion="v2",
        JudgedAt=DAY + timedelta(days=2),
        Method="local",
        ServiceName="shop",
        Outcome="success" if run.decision == "success" else "failure",
        DecisiveStep=3 if run.decision else None,
        DecisiveSpanId=f"{run.step:016x}" if run.decision else "",
    )
    yield row
    former = {"JudgeVersion": "v1", "JudgedAt": DAY + timedelta(days=1), "Outcome": "failure"}
    yield {**row, **former, "DecisiveStep": 1, "DecisiveSpanId": f"{10:016x}"}


def _confirmation(run: Run, prints: dict[tuple[str, str], str]) -> dict[str, Any] | None:
    told: dict[str, dict[str, Any]] = {
        "proved": {"status": "confirmed", "origin": 5, "origin_span_id": f"{run.step + 10:016x}"},
        "refuted": {"status": "refuted", "refuted": (2, 3)},
        "other refuted": {"status": "refuted", "refuted": (2,)},
        "overdetermined": {"status": "overdetermined"},
        "outdated": {"status": "refuted", "refuted": (3,)},
        "success": {"status": "confirmed", "origin": 5, "origin_span_id": f"{run.step:016x}"},
    }
    if run.decision not in told:
        return None
    now = prints[run.project, run.trace]
    plan = ReplayPlan(
        project=run.project,
        trace_id=run.trace,
        plan_id="plan",
        name="",
        fingerprint="earlier" if run.decision == "outdated" else now,
        service="shop",
        run_end=run.start + timedelta(days=1),
    )
    return row_of(Confirmation(text="told", **told[run.decision]), plan)


def dollars(costs: Iterable[Fraction | None]) -> float | None:
    """The sum of the known ones; None if there is none."""
    known = [each for each in costs if each is not None]
    return float(sum(known) / 10**6) if known else None


def sums(calls: Sequence[Call]) -> dict[str, Any]:
    """The columns that all queries of costs share."""
    after, again = [c for c in calls if c.after], [c for c in calls if c.again]
    unpriced = [c for c in calls if c.cost is None]
    return {
        "Calls": len(calls),
        "Runs": len({(c.project, c.trace) for c in calls}),
        "InputTokens": sum(c.sent for c in calls),
        "CacheReadTokens": sum(c.read for c in calls),
        "CacheWriteTokens": sum(c.written for c in calls),
        "OutputTokens": sum(c.output for c in calls),
        "Cost": dollars(c.cost for c in calls),
        "UnpricedCalls": len(unpriced),
        "UnpricedModels": sorted({c.model for c in unpriced}),
        "TokensAfter": sum(c.sent + c.output for c in after),
        "CostAfter": dollars(c.cost for c in after),
        "UnpricedAfter": sum(c.cost is None for c in after),
        "Retries": len(again),
        "RetryCost": dollars(c.cost for c in again),
        "ResentTokens": sum(c.resent for c in calls),
    }


def grouped(calls: Iterable[Call], key: Callable[[Call], Iterable[str]]) -> dict[str, list[Call]]:
    """Calls by each of their keys."""
    found: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        for each in key(call):
            found[each].append(call)
    return found
