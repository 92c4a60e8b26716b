"""Feeds the OTLP decoders what a sender could send, guided by coverage (atheris), until stopped.

``python tests/fuzz/fuzz_decoders.py CORPUS -max_total_time=300 -rss_limit_mb=2048`` takes libFuzzer's
options. An input that crashes, hangs or makes the memory grow is written to a file beside. Beyond
decoding, what was accepted is laid out as rows: nothing that is acknowledged may fail there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["mast_trace_collector"]):
    from mast_trace_collector.otlp.decoding import RequestLimits, decode
    from mast_trace_collector.otlp.decompression import decompress
    from mast_trace_collector.otlp.errors import RequestError
    from mast_trace_collector.otlp.signals import LOGS, TRACES
    from mast_trace_collector.storage.log_writer import _parse, _rows
    from mast_trace_collector.storage.span_columns import columns_of

LIMITS = RequestLimits(24, 64)
LARGEST = 1 << 20
ENCODINGS = ("", "gzip", "deflate", "zstd")


def one_input(data: bytes) -> None:
    """The first byte says how the rest is sent: signal, JSON or protobuf, encoding, with a key."""
    if not data:
        return
    how, body = data[0], data[1:]
    signal = LOGS if how & 1 else TRACES
    project = "team" if how & 16 else None
    try:
        plain = decompress(body, ENCODINGS[how >> 2 & 3], LARGEST)
        decoded = decode(plain, signal, LIMITS, json=bool(how & 2), project=project)
    except RequestError:
        return
    if signal is LOGS:
        rows = len(list(_rows(_parse(0, decoded.payload))))
    else:
        rows = len(columns_of([signal.request.FromString(decoded.payload)], [None]))
    if rows != decoded.items:
        raise AssertionError(f"{decoded.items} items were acknowledged, {rows} would be stored")


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
