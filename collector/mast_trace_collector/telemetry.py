"""The collector's own metrics, in Prometheus' text form.

Requests add up as received = refused + duplicate + accepted, and spans as accepted + recovered +
retried = stored + dead-lettered + damaged + waiting, where recovered are those that an earlier
process left in the spool, damaged are those that were acknowledged and are missing from a damaged
file of the spool, and retried are dead letters that could be stored after all. Log records have
counters of their own, which add up in the same way.

Rejected spans are counted by reason (excessive, no_id, unreadable), and mended ones by what was replaced
(text, time; of log records also id); `docs/reference/http.md` describes them.

Connections and requests that are refused before they are known as export requests are counted by
server ("receiver", "web", "clickhouse") and reason:

========================  ==========================================================================
header_too_large          more bytes or headers beside the body than allowed (431)
malformed                 no valid HTTP (400)
pipelined                 too many requests sent without waiting for answers
header_timeout            headers that came too slowly
too_slow                  a body that came too slowly (408), but for export requests
slow_reader               an answer that was not read
evicted                   an idle connection closed for the sake of a new one
too_many_connections      all connections were busy
no_resources              the process could not open another connection
stranger                  another user's process at the socket of commands
handshake                 a TLS handshake that failed or took too long
========================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

CONTENT_TYPE = CONTENT_TYPE_LATEST
_PREFIX = "mast_trace_collector"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class CollectorMetrics:
    """Counters of one collector's pipeline of one signal; two collectors in one process share none.

    Args:
        logs_of: the collector's counters of spans, if these count log records; by default these are
            the counters of spans.
    """

    def __init__(self, *, logs_of: CollectorMetrics | None = None) -> None:
        self.registry: CollectorRegistry = (
            CollectorRegistry() if logs_of is None else logs_of.registry
        )
        self._prefix = _PREFIX if logs_of is None else f"{_PREFIX}_logs"
        self._items = "spans" if logs_of is None else "records"
        self.received = self._counter(
            "received_requests", "Export requests that arrived.", "transport"
        )
        self.accepted_bytes = self._counter(
            "accepted_bytes", "Bytes of accepted requests, decompressed.", "transport"
        )
        self.refused = self._counter(
            "refused_requests", "Export requests that were not taken.", "transport", "reason"
        )
        if logs_of is None:
            self._turned_away = Counter(
                f"{_PREFIX}_turned_away",
                "Connections, and what came on them, that were turned away before they were requests.",
                ("server", "reason"),
                registry=self.registry,
            )
        self.duplicates = self._counter(
            "duplicate_requests", "Requests sent again after they had been accepted.", "transport"
        )
        self.accepted = self._counter(
            "accepted_requests", "Requests acknowledged as durable.", "transport"
        )
        self.accepted_spans = self._counter("accepted_spans", "Spans acknowledged as durable.")
        self.late_spans = self._counter(
            "late_spans", "Spans accepted more than a minute after they ended."
        )
        self.rejected_spans = self._counter(
            "rejected_spans", "Spans left out of a partially accepted request.", "reason"
        )
        self.mended_spans = self._counter(
            "mended_spans", "Spans accepted with something replaced.", "kind"
        )
        self.recovered_spans = self._counter(
            "recovered_spans", "Spans found in the spool at the start."
        )
        self.stored_spans = self._counter("stored_spans", "Spans written to the database.")
        self.dead_lettered_spans = self._counter(
            "dead_lettered_spans", "Spans set aside because they cannot be stored."
        )
        self.damaged_spans = self._counter(
            "damaged_spans", "Spans acknowledged as durable that a damaged file no longer holds."
        )
        self.retried_spans = self._counter(
            "retried_spans", "Spans of dead letters that could be stored after all."
        )
        if logs_of is None:
            self.swept_rows = Counter(
                f"{_PREFIX}_swept_rows",
                "Rows about erased runs that arrived after the erasure and were deleted.",
                registry=self.registry,
            )
        self.insert_failures = self._counter(
            "insert_failures", "Inserts that the database did not take; each is tried again."
        )
        self.acknowledgement = self._histogram(
            "acknowledgement_seconds", "From the whole request to its acknowledgement."
        )
        self.insert = self._histogram("insert_seconds", "Duration of one successful insert.")

    def refusals(self, server: str) -> Callable[[str], None]:
        """Return a function that counts the connections refused by a server, by reason."""
        return lambda reason: self._turned_away.labels(server, reason).inc()

    def watch(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """Show a value that is read when it is asked for."""
        gauge = Gauge(f"{self._prefix}_{self._named(name)}", meaning, registry=self.registry)
        gauge.set_function(read)

    def exposition(self) -> bytes:
        """All metrics as Prometheus reads them."""
        return generate_latest(self.registry)

    def value(self, name: str, **labels: str) -> float:
        """The present value of a metric; 0 when nothing was counted yet."""
        return self.registry.get_sample_value(f"{self._prefix}_{name}", labels) or 0.0

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        meaning = meaning.replace("Spans", self._items.capitalize())
        name = f"{self._prefix}_{self._named(name)}"
        return Counter(name, meaning, labels, registry=self.registry)

    def _histogram(self, name: str, meaning: str) -> Histogram:
        name = f"{self._prefix}_{name}"
        return Histogram(name, meaning, registry=self.registry, buckets=_SECONDS)

    def _named(self, name: str) -> str:
        return name.replace("spans", self._items)
