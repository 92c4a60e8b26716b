"""Feeds the OTLP decoders what a sender could send, guided by coverage (atheris), until stopped.

``python tests/fuzz/fuzz_decoders.py CORPUS -max_total_time=300 -rss_limit_mb=2048`` takes libFuzzer's
options. An input that crashes, hangs or makes the memory grow is written to a file beside. Beyond
decoding, what was accepted is laid out as rows: nothing that is acknowledged may fail there. Half of the
inputs are one item between two good ones, which are accepted whatever it is.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import atheris
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

with atheris.instrument_imports(include=["mast_trace_collector"]):
    from mast_trace_collector.otlp.decoding import RequestLimits, decode
    from mast_trace_collector.otlp.decompression import decompress
    from mast_trace_collector.otlp.errors import RequestError
    from mast_trace_collector.otlp.signals import LOGS, TRACES, encoded
    from mast_trace_collector.storage.log_writer import _parse, _rows
    from mast_trace_collector.storage.span_columns import columns_of

if TYPE_CHECKING:
    from mast_trace_collector.otlp.signals import Signal

LIMITS = RequestLimits(24, 64)
GOOD = bytes(range(1, 9))
LARGEST = 1 << 20
ENCODINGS = ("", "gzip", "deflate", "zstd")


def one_input(data: bytes) -> None:
    """The first byte says how the rest is sent: signal, JSON or protobuf, encoding, with a key, alone."""
    if not data:
        return
    how, body = data[0], data[1:]
    signal = LOGS if how & 1 else TRACES
    project = "team" if how & 16 else None
    among = bool(how & 32) and not how & 2
    if among:
        body = between_good_ones(signal, body)
    try:
        plain = body if among else decompress(body, ENCODINGS[how >> 2 & 3], LARGEST)
        decoded = decode(plain, signal, LIMITS, json=bool(how & 2), project=project)
    except RequestError:
        if among:
            raise
        return
    if signal is LOGS:
        rows = list(_rows(_parse(0, decoded.payload)))
    else:
        request = signal.request.FromString(decoded.payload)
        rows = list(zip(*columns_of([request], [None]).columns, strict=True))
    if len(rows) != decoded.items:
        raise AssertionError(
            f"{decoded.items} items were acknowledged, {len(rows)} would be stored"
        )
    if among and not (
        decoded.items + decoded.rejected.total() == 3
        and {GOOD.hex(), GOOD[::-1].hex()} <= {row[2] for row in rows}
    ):
        raise AssertionError("a bad item took a good one with it")


def between_good_ones(signal: Signal, item: bytes) -> bytes:
    """A request of three items, of which the first and the last are good."""
    if signal is LOGS:
        good = [LogRecord(span_id=each) for each in (GOOD, GOOD[::-1])]
    else:
        good = [Span(trace_id=GOOD * 2, span_id=each) for each in (GOOD, GOOD[::-1])]
    first, last = (each.SerializeToString() for each in good)
    scope = b"".join(b"\x12" + encoded(len(each)) + each for each in (first, item, last))
    resource = b"\x12" + encoded(len(scope)) + scope
    return b"\x0a" + encoded(len(resource)) + resource


def seeds() -> list[bytes]:
    """Valid requests to begin with."""
    value = '{"arrayValue":{"values":[{"intValue":"1"},{"kvlistValue":{"values":[]}}]}}'
    attributes = f'[{{"key":"a","value":{value}}}]'
    span = (
        '{"traceId":"000102030405060708090a0b0c0d0e0f","spanId":"0001020304050607","name":"chat",'
        f'"startTimeUnixNano":"1","attributes":{attributes},"events":[{{"attributes":{attributes}}}],'
        '"links":[{"traceId":""}],"status":{"code":2}}'
    )
    traces = f'{{"resourceSpans":[{{"resource":{{}},"scopeSpans":[{{"spans":[{span}]}}]}}]}}'
    record = f'{{"body":{value},"attributes":{attributes},"eventName":"e"}}'
    logs = f'{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{record}]}}]}}]}}'
    made = []
    for flag, signal, text in ((0, TRACES, traces), (1, LOGS, logs)):
        body = text.encode()
        binary = decode(body, signal, LIMITS, json=True).payload
        made += [bytes([flag | 2]) + body, bytes([flag]) + binary, bytes([flag | 16]) + binary]
        scope = getattr(
            getattr(signal.request.FromString(binary), signal.resources)[0], signal.scopes
        )[0]
        item = getattr(scope, signal.items)[0].SerializeToString()
        made.append(bytes([flag | 32]) + item)
    return made


def main() -> None:
    """Run until an option of libFuzzer ends it."""
    folders = [Path(word) for word in sys.argv[1:] if not word.startswith("-")]
    for folder in folders[:1]:
        folder.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(seeds()):
            (folder / f"seed-{number}").write_bytes(seed)
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
