"""Costs are exact, waste begins after the decisive step, and an unknown price is never 0."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest
from generated_calls import BANDS, DAY, FACTORS, dollars, grouped, runs, spans_of, store_runs, sums
from stores import new_store

from mast_trace.exceptions import StorageError
from mast_trace.trajectory import SpanRecord
from mast_trace_collector.storage.runs import run_summary
from mast_trace_dashboards.cost_words import costs_of, listed_costs
from mast_trace_dashboards.queries import QUERIES, query
from mast_trace_dashboards.queries.query import SummedQuery
from mast_trace_dashboards.queries.sql import BEGINNING, END
from mast_trace_dashboards.stored_run import StoredRun
from mast_trace_dashboards.web.finding.run_costs import run_costs
from mast_trace_judge.confirmation import Confirmation
from mast_trace_judge.gate.assertions import priced_calls
from mast_trace_judge.pricing import (
    Band,
    OwnPrice,
    PriceConfig,
    cost_of,
    prices,
    store_prices,
)
from mast_trace_judge.store.confirmations import record_confirmation
from mast_trace_judge.store.facts import FactsIndexer
from mast_trace_judge.store.replay_plans import plan_of
from mast_trace_judge.store.verdicts import save
from mast_trace_judge.verdict import DecisiveError, Evidence, ModeFinding, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from generated_calls import Call, Run

    from mast_trace_collector.storage import Store

RUN, OTHER, THEIRS = "a" * 32, "b" * 32, "c" * 32
T0 = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
OWN = {
    "small-1": OwnPrice(
        input=Decimal(1), output=Decimal(2), cache_read=Decimal("0.1"), cache_write=Decimal("1.25")
    ),
    "local-1": OwnPrice(input=Decimal(0), output=Decimal(0)),
}


def span(run: str, number: int, operation: str, **attributes: Any) -> dict[str, Any]:
    project = attributes.pop("project", "")
    return {
        "TraceId": run,
        "SpanId": f"{number:016x}",
        "ParentSpanId": attributes.pop("parent", "f" * 16),
        "SpanName": operation,
        "Timestamp": T0 + timedelta(seconds=number),
        "Duration": 1000,
        "ServiceName": "shop",
        "ScopeName": attributes.pop("scope", "mast_trace.ag2"),
        "ResourceAttributes": {"mast.project": project} if project else {},
        "SpanAttributes": {
            "gen_ai.operation.name": operation,
            **{name: str(value) for name, value in attributes.items()},
        },
    }


def call(
    run: str, number: int, agent: str, model: str, read: int, wrote: int, **more: Any
) -> dict[str, Any]:
    names = {
        "cached": "gen_ai.usage.cache_read.input_tokens",
        "written": "gen_ai.usage.cache_write.input_tokens",
        "request": "mast.input.message_ids",
        "provider": "gen_ai.provider.name",
    }
    given = {names.get(name, name): value for name, value in more.items()}
    tokens = {"gen_ai.usage.input_tokens": read, "gen_ai.usage.output_tokens": wrote}
    named = {"gen_ai.agent.name": agent} if agent else {}
    return span(run, number, "chat", **named, **{"gen_ai.request.model": model}, **tokens, **given)


def judged(store: Store, run: str, number: int) -> Verdict:
    summary = run_summary(store, run)
    assert summary
    identity = f"{number:016x}"
    return Verdict(
        trace_id=run,
        fingerprint=summary.fingerprint,
        judge_version="v1",
        judged_at=T0,
        run_start=summary.start,
        run_end=summary.end,
        steps=9,
        outcome="failure",
        modes=(ModeFinding(code="2.6", probability=0.9, evidence=Evidence.EXACT, steps=(1,)),),
        decisive=DecisiveError(step=1, agent="writer", probability=0.7, span_id=identity),
    )


@pytest.fixture(scope="module", params=["of spans", "of facts"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """Two runs; the first one's decisive step is the third second, and its calls are of three models."""
    with new_store(tmp_path_factory.mktemp("costs")) as opened:
        rows = [
            span(RUN, 0, "invoke_workflow", parent=""),
            call(RUN, 1, "writer", "small-1", 1000, 100, cached=400, written=200, request='["m1"]'),
            span(
                RUN,
                2,
                "execute_tool",
                **{"gen_ai.agent.name": "writer", "gen_ai.tool.name": "look"},
            ),
            span(RUN, 3, "send_message", **{"mast.message.sender": "writer"}),
            call(RUN, 4, "writer", "small-1", 1500, 10, request='["m1","m2"]'),
            call(RUN, 5, "writer", "small-1", 1500, 10, request='["m1","m2"]'),
            call(RUN, 6, "critic", "nobody-knows", 500, 50),
            span(RUN, 7, "invoke_agent", **{"gen_ai.agent.name": "helper"}),
            call(RUN, 8, "", "local-1", 70, 7, parent=f"{7:016x}"),
            span(OTHER, 0, "invoke_workflow", parent=""),
            call(OTHER, 1, "writer", "gpt-4o-mini", 2_000_000, 1_000_000, provider="openai"),
        ]
        opened.insert("otel_traces", rows)
        # A batch that comes again, and the same calls as another tool has recorded them.
        opened.insert("otel_traces", [{**row, "ServiceName": "shop "} for row in rows[1:2]])
        theirs = [call(RUN, n, "writer", "small-1", 1500, 10, scope="other") for n in (20, 21)]
        opened.insert("otel_traces", theirs)
        save(opened, [judged(opened, RUN, 3)])
        store_prices(opened, OWN)
        store_runs(opened, GENERATED)
        if request.param == "of facts":
            while FactsIndexer(opened, quiet=0).index():
                pass
            # Nothing is left to be read from spans.
            opened.command(
                "CREATE OR REPLACE VIEW mast_span_facts AS SELECT * FROM mast_run_facts WHERE 0"
            )
        yield opened


def totals(store: Store, *runs: str) -> dict[str, Any]:
    (row,) = costs_of(store, [], only=list(runs))["total"]
    return row


def test_a_run_costs_the_sum_of_its_calls(store: Store) -> None:
    """400 tokens in no cache, 400 from it and 200 to it, 100 of the answer; twice 1,500 and 10; another model is free."""
    row = totals(store, RUN)
    assert row["Cost"] == (400 * 1 + 400 * 0.1 + 200 * 1.25 + 100 * 2 + 2 * (1500 + 20)) / 1e6
    assert (row["Calls"], row["UnpricedCalls"], row["UnpricedModels"]) == (5, 1, ["nobody-knows"])
    assert (row["CacheReadTokens"], row["CacheWriteTokens"]) == (400, 200)


def test_tokens_are_those_of_the_run(store: Store) -> None:
    for run in (RUN, OTHER):
        listed = QUERIES["run"].one(store, run=run)
        assert listed is not None
        row = totals(store, run)
        assert listed["Totals"] == "exact"
        assert row["InputTokens"] == listed["InputTokens"]
        assert row["OutputTokens"] == listed["OutputTokens"]


def test_a_public_price_is_known(store: Store) -> None:
    assert totals(store, OTHER)["Cost"] == pytest.approx(2 * 0.15 + 0.6, abs=1e-12)


def test_listed_runs_cost_what_cost_by_run_says(store: Store) -> None:
    only = [RUN, OTHER, "d" * 32]
    rows = costs_of(store, ["run"], only=only)["run"]
    wanted = {row["Key"]: (row["Cost"], row["UnpricedCalls"]) for row in rows}
    listed = QUERIES["cost_of_runs"].run(store, only=only)
    assert {row["TraceId"]: (row["Cost"], row["UnpricedCalls"]) for row in listed} == wanted
    assert set(wanted) == {RUN, OTHER}
    rows = QUERIES["runs"].run(store, only=only)
    costs = listed_costs(store, rows)
    assert {run: (costs[f"{run} "].usd, costs[f"{run} "].unpriced) for run in wanted} == wanted
    assert "unknown" in costs[f"{RUN} "].words
    lost = listed_costs(store, [{**row, "Totals": "at least"} for row in rows])
    assert {run: cost.words for run, cost in lost.items() if cost.usd} == {
        run: f"at least {cost.words}" for run, cost in costs.items() if cost.usd
    }


def test_an_unknown_price_is_never_zero(store: Store) -> None:
    """A free model costs nothing, one of unknown price has no cost, and comes last."""
    rows = costs_of(store, ["agent"], only=[RUN])["agent"]
    costs = [(row["Key"], row["Cost"]) for row in rows]
    assert costs[1:] == [("helper", 0.0), ("critic", None)]


GENERATED = runs()
CALLS = [call for run in GENERATED for call in run.counted()]
STARTS = sorted(run.start for run in GENERATED)
RANGES: dict[str, dict[str, Any]] = {
    "all": {"projects": ["one", "two"]},
    "from a start to a start": {"projects": ["two"], "since": STARTS[12], "until": STARTS[24]},
    "ids that two projects have": {"only": [run.trace for run in GENERATED[10:13]]},
}


@pytest.fixture(scope="module", params=RANGES)
def asked(request: pytest.FixtureRequest) -> tuple[dict[str, Any], list[Run], list[Call]]:
    """A range of runs, the runs in it, and their calls."""
    given = RANGES[request.param]
    inside = [
        run
        for run in GENERATED
        if run.project in given.get("projects", [run.project])
        and run.trace in given.get("only", [run.trace])
        and given.get("since", DAY.min.replace(tzinfo=timezone.utc)) <= run.start
        and run.start < given.get("until", DAY.max.replace(tzinfo=timezone.utc))
    ]
    return given, inside, [call for run in inside for call in run.counted()]


def equal(found: Any, wanted: Any) -> bool:
    """Compare rows, but for the rounding of floats."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(
            equal(found[key], wanted[key]) for key in wanted
        )
    if isinstance(wanted, float):
        return found is not None and bool(found == pytest.approx(wanted, rel=1e-12, abs=1e-15))
    return bool(found == wanted)


@pytest.mark.parametrize("name", ["run", "agent", "model", "mode"])
def test_costs_by_each_key_are_those_of_the_definition(store: Store, asked: Any, name: str) -> None:
    given, inside, calls = asked
    shown = {(run.project, run.trace): run.shown for run in inside}
    keys = {
        "run": lambda call: [call.trace],
        "agent": lambda call: [call.agent],
        "model": lambda call: [call.model],
        "mode": lambda call: shown[call.project, call.trace],
    }
    rows = costs_of(store, [name], **given)[name]
    wanted = {key: {"Key": key, **sums(of)} for key, of in grouped(calls, keys[name]).items()}
    assert equal(
        {row["Key"]: {each: row[each] for each in wanted[row["Key"]]} for row in rows}, wanted
    )
    order = [
        (-1.0 if row["Cost"] is None else row["Cost"], row["InputTokens"] + row["OutputTokens"])
        for row in rows
    ]
    assert order == sorted(order, reverse=True)


def test_totals_are_those_of_the_definition(store: Store, asked: Any) -> None:
    given, _, calls = asked
    decided = {(call.project, call.trace) for call in calls if call.decided}
    found_of = costs_of(store, ["time"], bucket=86_400, **given)
    (row,), days = found_of["total"], found_of["time"]
    assert equal(row, {"Key": "", **sums(calls), "DecidedRuns": len(decided)})
    by_day = grouped(calls, lambda call: [f"{call.at:%Y-%m-%d}"])
    columns = ("Cost", "CostAfter", "UnpricedCalls")
    found = {f"{row['Time']:%Y-%m-%d}": {each: row[each] for each in columns} for row in days}
    assert equal(
        found, {day: {each: sums(of)[each] for each in columns} for day, of in by_day.items()}
    )


def test_a_range_of_many_runs_is_summed_in_stretches(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row is the same, in the same order; a limit counts for each part."""
    summed = [each for each in QUERIES.values() if isinstance(each, SummedQuery)]
    assert {each.name for each in summed} >= {"costs", "cost_by_tool", "decisive_by_agent"}
    limits = (1, 1000)
    whole = {(each.name, most): each.run(store, limit=most) for each in summed for most in limits}
    monkeypatch.setattr(query, "MOST_RUNS", 1)
    assert len(query._stretches(store, BEGINNING, END)) > 1
    for each in summed:
        for most in limits:
            rows = each.run(store, limit=most)
            wanted = whole[each.name, most]
            assert len(rows) == len(wanted) > 0
            assert all(map(equal, rows, wanted)), each.name


def test_tools_share_the_call_that_asked_for_them(store: Store, asked: Any) -> None:
    given, inside, _ = asked
    shares = [each for run in inside for each in run.asked_by()]
    wanted = {}
    for name in {tool.name for tool, _, _ in shares}:
        of = [(call, share) for tool, call, share in shares if tool.name == name]
        wanted[name] = {
            "Key": name,
            "Uses": len(of),
            "Runs": len({(call.project, call.trace) for call, _ in of}),
            "Tokens": float(sum((call.sent + call.output) * share for call, share in of)),
            "Cost": dollars(call.cost and call.cost * share for call, share in of),
            "UnpricedUses": sum(call.cost is None for call, _ in of),
        }
    assert equal({row["Key"]: row for row in QUERIES["cost_by_tool"].run(store, **given)}, wanted)


def test_each_call_costs_what_it_should_in_every_implementation(store: Store) -> None:
    """Row by row; `cost_of` prices the same calls in Python."""
    rows = QUERIES["cost_of_calls"].run(store, projects=["one"])
    calls = sorted(
        (c for c in CALLS if c.project == "one"), key=lambda c: (c.at, f"{c.number:016x}")
    )
    assert sorted(
        (r["TraceId"], r["SpanId"], r["Model"], r["Agent"], r["After"], r["Retry"]) for r in rows
    ) == sorted((c.trace, f"{c.number:016x}", c.model, c.agent, c.after, c.again) for c in calls)
    found = {(r["TraceId"], r["SpanId"]): r["Cost"] for r in rows}
    assert equal(found, {(c.trace, f"{c.number:016x}"): dollars([c.cost]) for c in calls})
    for call in CALLS:
        bands = [Band(*each[:4], *map(Decimal, each[4:])) for each in BANDS[call.model]]
        cost = cost_of(
            bands,
            call.at,
            input_tokens=call.sent,
            output_tokens=call.output,
            cache_read=call.read,
            cache_write=call.written,
        )
        factor = FACTORS[call.project, call.provider]
        assert (None if cost is None else Fraction(cost) * factor * 10**6) == call.cost


def test_a_gate_prices_calls_as_the_queries_do() -> None:
    """From spans, by your own prices, those of a provider first; another price is unknown."""
    read, cached, written, wrote = (Decimal(each) for each in BANDS["flat"][0][4:8])
    own = {
        name: OwnPrice(
            input=read * n, cache_read=cached * n, cache_write=written * n, output=wrote * n
        )
        for name, n in (("flat", 3), ("x/flat", 1), ("y/flat", 5))
    }
    for run in GENERATED[:16]:
        rows = [row for row in spans_of(run) if "gen_ai.request.model" in row["SpanAttributes"]]
        calls = [(call, row) for call, row in zip(run.calls, rows, strict=True) if call.ours]
        records = [
            SpanRecord("t", str(n), "", "chat", n, n + 1, row["SpanAttributes"], scope="mast_trace")
            for n, (_, row) in enumerate(calls)
        ]
        wanted = []
        for call, _ in calls:
            cost = call.cost if call.model == "flat" else None
            if call.sent or call.output:
                of_calls = 10 * FACTORS[call.project, call.provider]
                wanted.append((call.model, cost if cost is None else (cost - of_calls) / 10**6))
        found = [
            (c.model, c.cost if c.cost is None else Fraction(c.cost))
            for c in priced_calls(records, own)
        ]
        assert found == wanted


def test_calls_of_a_run_with_written_facts_are_not_read_from_spans(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are the same."""
    statements: list[str] = []
    query = store.query

    def asked(sql: str, *given: Any, **more: Any) -> Any:
        statements.append(sql)
        return query(sql, *given, **more)

    is_written = bool(query("SELECT 1 FROM mast_run_facts LIMIT 1"))
    wanted = QUERIES["cost_of_calls"].run(store, only=[RUN], projects=[""])
    monkeypatch.setattr(store, "query", asked)
    assert StoredRun(store, RUN, "").calls(10_000) == wanted != []
    assert any("mast_span_facts" in each for each in statements) is not is_written


async def test_the_first_calls_are_priced_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a model is found, there is another look after seconds; an error waits as long as ever."""
    found: list[Any] = [0, 0, 1, StorageError("away")]
    pauses: list[float] = []
    back: list[timedelta] = []

    def looked(*_: Any, since: datetime) -> int:
        back.append(datetime.now(timezone.utc) - since)
        if isinstance(each := found.pop(0), Exception):
            raise each
        return int(each)

    async def slept(seconds: float) -> None:
        pauses.append(seconds)
        if not found:
            raise asyncio.CancelledError

    monkeypatch.setattr(prices, "store_prices", looked)
    monkeypatch.setattr(asyncio, "sleep", slept)
    with pytest.raises(asyncio.CancelledError):
        await prices.renew_prices(MagicMock(), PriceConfig())
    assert [each < prices.EVERY for each in pauses] == [True, True, False, False]
    assert min(back) >= timedelta(hours=1), "spans may come late"


def test_a_price_that_is_taken_back_is_unknown(store: Store) -> None:
    store_prices(store, {})
    assert totals(store, RUN)["Cost"] is None
    store_prices(store, OWN)
    assert totals(store, RUN)["Cost"] is not None


def test_a_proved_step_decides_where_waste_begins(store: Store) -> None:
    summary = run_summary(store, RUN)
    assert summary
    proof = Confirmation(status="confirmed", origin=5, origin_span_id=f"{5:016x}")
    record_confirmation(store, plan_of(store, summary, ""), proof)
    assert totals(store, RUN)["TokensAfter"] == 550 + 77
    refuted = Confirmation(status="refuted", refuted=(1,))
    record_confirmation(store, plan_of(store, summary, ""), refuted)
    assert totals(store, RUN)["DecidedRuns"] == 0


def test_the_cost_after_the_decisive_step_is_that_of_the_definition(store: Store) -> None:
    summary = run_summary(store, RUN)
    assert summary
    proof = Confirmation(status="confirmed", origin=5, origin_span_id=f"{5:016x}")
    record_confirmation(store, plan_of(store, summary, ""), proof)
    after = run_costs(StoredRun(store, RUN, "")).after
    assert (after.calls, after.tokens, after.cost) == (2, 550 + 77, totals(store, RUN)["CostAfter"])


def test_prices_are_of_a_project(store: Store) -> None:
    """A reader of one project does not see the models of others; one model of several has a price for each provider."""
    of = [("a", "theirs", ""), ("a", "theirs", "there"), ("b", "ours", "")]
    calls = [
        call(THEIRS[1:] + run, number, "x", "theirs-1", 0, 5, project=project, provider=provider)
        for number, (run, project, provider) in enumerate(of)
    ]
    store.insert("otel_traces", calls)
    store_prices(store, OWN)
    rows = store.query("SELECT * FROM mast_prices FINAL WHERE Model = 'theirs-1'")
    found = sorted((row["Project"], row["Provider"]) for row in rows)
    assert found == sorted((project, provider) for _, project, provider in of)
