"""Totals of a run: exact whatever comes twice, in whatever order and by however many tools."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from otlp_requests import TRACE, agent_span
from otlp_requests import request as sent_together
from stores import SERVER, new_store

from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.runs import run_summary
from mast_trace_collector.storage.span_writer import SpanWriter

AT = datetime(2026, 3, 1, tzinfo=timezone.utc)
OURS = "mast_trace.langgraph"
THEIRS = ("openinference.instrumentation.langchain", "opentelemetry.instrumentation.openai")
SOME = ["Spans", "Errors", "InputTokens", "OutputTokens"]
FULL = 2**20
"""Spans that a set keeps; of calls and contents twice as many."""

_trace_ids = (f"{number:032x}" for number in count(2**64))


@dataclass(frozen=True)
class Sent:
    """A span as it is sent once; ``tokens`` are of a model call, input and output."""

    number: int
    tokens: tuple[int, int] | None = None
    scope: str = OURS
    failed: bool = False
    text: str = ""
    parent: int = 0

    def row(self, trace: str) -> dict[str, object]:
        """As the OpenTelemetry Collector's exporter inserts it."""
        attributes = {"gen_ai.operation.name": "chat" if self.tokens else "execute_tool"}
        if self.tokens:
            attributes["gen_ai.usage.input_tokens"] = str(self.tokens[0])
            attributes["gen_ai.usage.output_tokens"] = str(self.tokens[1])
        return {
            "Timestamp": AT,
            "TraceId": trace,
            "SpanId": f"{self.number:016x}",
            "ParentSpanId": f"{self.parent:016x}" if self.parent else "",
            "ScopeName": self.scope,
            "StatusCode": "Error" if self.failed else "Unset",
            "SpanAttributes": {**attributes, "text": self.text},
        }


def expected(sent: list[Sent]) -> list[int]:
    """The totals, by their definition: spans, errors, input tokens, output tokens."""
    calls: dict[int, tuple[tuple[int, int], str]] = {}
    for span in sent:
        if span.tokens and any(span.tokens):
            most = max(span.tokens, calls.get(span.number, ((0, 0), ""))[0])
            calls[span.number] = (most, span.scope)
    around = {span.parent for span in sent if any(span.tokens or ()) and span.parent != span.number}
    seen: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for number, (tokens, scope) in calls.items():
        if scope == OURS or number not in around:
            seen[tokens][scope] += 1
    times = {tokens: max(by_scope.values()) for tokens, by_scope in seen.items()}
    return [
        len({span.number for span in sent}),
        len({span.number for span in sent if span.failed}),
        sum(tokens[0] * number for tokens, number in times.items()),
        sum(tokens[1] * number for tokens, number in times.items()),
    ]


@pytest.fixture(scope="module")
def plain(request, tmp_path_factory):
    """A store that the tests of this module share: each has traces of its own."""
    if SERVER:
        with new_store(tmp_path_factory.mktemp("unused")) as store:
            yield store
        return
    engine = request.getfixturevalue("engine")
    engine.renew()
    with Store.open(engine.url) as store:
        migrate(store)
        yield store


@pytest.fixture
def trace():
    return next(_trace_ids)


def totals(store: Store, trace: str) -> list[int]:
    (row,) = store.query("SELECT * FROM mast_runs WHERE TraceId = {t:String}", {"t": trace})
    assert row["Totals"] == "exact"
    assert row["Failed"] == (row["Errors"] > 0)
    return [row[name] for name in SOME]


SPANS = st.builds(
    lambda number, **fields: Sent(number, scope=(OURS, *THEIRS)[number % 3], **fields),
    number=st.integers(1, 12),
    tokens=st.none() | st.tuples(st.sampled_from([0, 1, 100]), st.sampled_from([0, 7])),
    failed=st.booleans(),
    text=st.sampled_from(["", "other"]),
    parent=st.integers(0, 12),
)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    inserts=st.lists(st.lists(SPANS, min_size=1, max_size=20), min_size=1, max_size=4),
    data=st.data(),
)
def test_they_are_those_of_the_definition(plain, inserts, data):
    """Spans that come again, changed or not, from several tools, in many inserts, merged or not."""
    trace = next(_trace_ids)
    for number, spans in enumerate(inserts):
        plain.insert("otel_traces", [span.row(trace) for span in spans])
        if number and data.draw(st.booleans(), label="merged"):
            plain.command("OPTIMIZE TABLE mast_run_states FINAL")
    sent = [span for spans in inserts for span in spans]
    assert totals(plain, trace) == expected(sent)
    run = "SELECT * EXCEPT LastSeen FROM mast_runs WHERE TraceId = {t:String}"
    before = plain.query(run, {"t": trace})
    plain.insert("otel_traces", [span.row(trace) for span in reversed(sent)])
    assert plain.query(run, {"t": trace}) == before


_MANY = """
INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ScopeName, SpanAttributes, StatusCode)
SELECT toDateTime64('2026-03-01 00:00:00', 9), {trace:String}, lower(leftPad(hex(number + 1), 16, '0')),
    'mast_trace.langgraph', map('gen_ai.operation.name', 'chat', 'text', {text:String},
        'gen_ai.usage.input_tokens', toString({input:UInt64}), 'gen_ai.usage.output_tokens', '7'),
    if(number % 10 = 0, 'Error', 'Unset')
FROM numbers({spans:UInt64})
"""


def write_many(store: Store, trace: str, spans: int, *, text: str = "", tokens: int = 100) -> None:
    """One run's model calls, all with the same tokens; every tenth fails."""
    given = {"trace": trace, "spans": spans, "text": text, "input": tokens}
    # A block of a million rows takes more memory than the embedded engine has; receivers write no such one.
    blocks = {"min_insert_block_size_rows": 100_000, "max_block_size": 100_000}
    store.command(_MANY, given, settings={"max_insert_threads": 1, **blocks})


@pytest.mark.parametrize("calls", [100, 1_000, 10_000, 200_000])
def test_calls_with_the_same_tokens_all_count(plain, trace, calls):
    write_many(plain, trace, calls)
    assert totals(plain, trace) == [calls, calls // 10, 100 * calls, 7 * calls]


def test_a_state_takes_at_most_32_bytes_a_span(plain, trace):
    """The limit also holds for a failed model call, which takes the most."""
    write_many(plain, trace, 10_000)
    plain.command("OPTIMIZE TABLE mast_run_states FINAL")
    (row,) = plain.query(
        "SELECT length(Spans) * 8 + length(SpanIds) * 8 + length(ErrorIds) * 8 + length(Calls) * 16"
        " + length(Errors) + length(Tokens) AS bytes FROM mast_run_states WHERE TraceId = {t:String}",
        {"t": trace},
    )
    assert row["bytes"] == 10_000 * 24 + 1_000 * 8


@pytest.mark.long
def test_a_million_calls_that_come_twice_with_other_content_are_exact(plain, trace):
    calls = 1_000_000
    for text, tokens in (("", 99), ("other", 100), ("other", 100)):
        write_many(plain, trace, calls, text=text, tokens=tokens)
    assert totals(plain, trace) == [calls, calls // 10, 100 * calls, 7 * calls]
    plain.command("OPTIMIZE TABLE mast_run_states FINAL")
    assert totals(plain, trace) == [calls, calls // 10, 100 * calls, 7 * calls]


class TestBeyond:
    """Totals that cannot be exact."""

    _STORED = (
        "INSERT INTO mast_run_states (TraceId, Start, Spans, SpanIds, Old) SELECT {t:String},"
        " toDateTime64('2026-03-01 00:00:00', 9), groupUniqArray(number), groupUniqArray(number), 0"
        " FROM numbers({first:UInt64}, {spans:UInt64})"
    )

    @pytest.mark.parametrize(("missing", "word"), [(1, "exact"), (0, "at least")])
    @pytest.mark.parametrize(
        ("kept", "most"), [("SpanIds", FULL), ("ErrorIds", FULL), ("Calls", 2 * FULL)]
    )
    def test_more_than_a_set_keeps_are_at_least_so_many(
        self, plain, trace, kept, most, missing, word
    ):
        stored = self._STORED.replace("SpanIds", kept)
        plain.command(stored, {"t": trace, "first": 0, "spans": most - missing})
        run = run_summary(plain, trace)
        counted = {"SpanIds": run.spans, "ErrorIds": run.errors}
        assert (counted.get(kept, most - missing), run.totals) == (most - missing, word)

    def test_a_state_grows_no_further_and_its_fingerprint_stays(self, plain, trace):
        prints = set()
        for first in range(0, 3 * FULL, FULL):
            plain.command(self._STORED, {"t": trace, "first": first, "spans": FULL})
            if first:
                plain.command("OPTIMIZE TABLE mast_run_states FINAL")
                run = run_summary(plain, trace)
                assert (run.spans, run.totals) == (FULL, "at least")
                prints.add(run.fingerprint)
        (row,) = plain.query(
            "SELECT max(length(Spans)) AS marks, max(length(SpanIds)) AS ids FROM mast_run_states"
            " WHERE TraceId = {t:String}",
            {"t": trace},
        )
        assert row == {"marks": 2 * FULL, "ids": FULL}
        assert len(prints) == 1

    @pytest.mark.parametrize(
        ("tokens", "shown", "word"),
        [
            (2**28 - 2, 2**28 - 2, "exact"),
            (2**28, 2**28 - 1, "at least"),
            (2**31, 2**28 - 1, "at least"),
            (2**33 + 5, 2**28 - 1, "at least"),
            (2**63 - 1, 2**28 - 1, "at least"),
        ],
    )
    def test_tokens_that_do_not_fit_are_cut_and_said_to_be(self, plain, trace, tokens, shown, word):
        spans = [Sent(1, (tokens, 7)), Sent(2, (100, 7))]
        plain.insert("otel_traces", [span.row(trace) for span in spans])
        run = run_summary(plain, trace)
        assert (run.input_tokens, run.output_tokens, run.totals) == (shown + 100, 14, word)

    def test_names_of_agents_are_kept_up_to_a_thousand(self, plain, trace):
        plain.command(
            "INSERT INTO otel_traces (Timestamp, TraceId, SpanId, SpanAttributes) SELECT now64(9),"
            " {t:String}, lower(leftPad(hex(number), 16, '0')), map('gen_ai.agent.name', toString(number))"
            " FROM numbers(5000)",
            {"t": trace},
        )
        assert len(run_summary(plain, trace).agents) == 1000


class TestTools:
    """Calls that several tools recorded."""

    def test_a_call_that_only_another_tool_recorded_counts_beside_ours(self, plain, trace):
        copies = [Sent(1, (100, 7)), Sent(2, (100, 7), THEIRS[0])]
        alone = [Sent(3, (50, 5), THEIRS[0]), Sent(4, (100, 7), THEIRS[0])]
        plain.insert("otel_traces", [span.row(trace) for span in copies + alone])
        assert totals(plain, trace) == [4, 0, 250, 19]

    def test_of_three_tools_that_recorded_one_call_one_counts(self, plain, trace):
        scopes = enumerate((OURS, *THEIRS), 1)
        plain.insert("otel_traces", [Sent(n, (100, 7), scope).row(trace) for n, scope in scopes])
        assert totals(plain, trace) == [3, 0, 100, 7]


def test_ids_that_are_none_of_opentelemetry_count_too(plain, trace):
    upper = "ABCDEF0123456789"
    ids = ["", "1", "span one", *("0" * n for n in (15, 17, 32)), upper, upper.lower()]
    rows = [{**Sent(1).row(trace), "SpanId": each} for each in ids]
    plain.insert("otel_traces", [*rows, *rows])
    assert totals(plain, trace)[0] == len(ids)


@pytest.mark.parametrize("where", ["span", "resource"])
def test_the_kind_of_a_run_is_what_its_spans_say(store, where):
    kind = {"mast.run.kind": "replay"}
    resource = {"service.name": "shop", **(kind if where == "resource" else {})}
    root = agent_span(1, "invoke_workflow", attributes=kind if where == "span" else {})
    writer = SpanWriter(store)
    writer.write([sent_together(root, agent_span(2, parent=1), resource=resource)], token="a")
    writer.write([sent_together(agent_span(1, trace="f" * 32))], token="b")
    assert run_summary(store, TRACE).kind == "replay"
    assert run_summary(store, "f" * 32).kind == ""
