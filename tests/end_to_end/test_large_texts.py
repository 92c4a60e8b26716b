"""Texts of a megabyte arrive to the byte, are judged and shown; larger ones keep their ends."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from large_texts import text_of
from up_process import UpProcess, wait_for

from mast_trace.content import ATTRIBUTE_LIMIT
from mast_trace.trajectory import Trajectory, read_trajectory
from mast_trace_collector.storage.run_spans import RunSpans

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(400)]

PROGRAM = Path(__file__).parent / "large_texts.py"
ASCII = "the quick brown fox "
MIXED = f"ä€ \N{ROBOT FACE}{5 * ASCII}{5 * ASCII}"
WIDE = "漢字仮名" * 8
HIGHER = {"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "4000000"}


def sent(up: UpProcess, characters: int, alphabet: str, **variables: str) -> Trajectory:
    """Record a run with such a text; return it as the store has it, once it is judged."""
    known = {row["TraceId"] for row in up.runs()}
    subprocess.run(
        [sys.executable, str(PROGRAM), str(characters), alphabet],
        env={**up.environment(), **variables},
        check=True,
    )

    def judged() -> list[str]:
        rows = up.runs()
        return [r["TraceId"] for r in rows if r["State"] == "judged" and r["TraceId"] not in known]

    (trace_id,) = wait_for(judged)
    with up.store() as store:
        spans = RunSpans(store, trace_id)
        return read_trajectory(span for page in spans.read() for span in page)


def test_texts_arrive_to_the_byte(up: UpProcess) -> None:
    """A million characters, whatever they are made of, as the setting allows; and all can read it."""
    up.start()
    by_grpc = {
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{up.ready['otlp_grpc']}",
    }
    ways: list[tuple[str, dict[str, str]]] = [
        (MIXED, {}),
        (WIDE, HIGHER),
        (WIDE, {**HIGHER, **by_grpc}),
    ]
    for alphabet, variables in ways:
        text = text_of(1_000_000, alphabet)
        run = sent(up, 1_000_000, alphabet, **variables)
        texts = [step.text for step in run.steps]
        assert texts[:3] == ["before", text, "after"]
        assert json.loads(run.steps[3].arguments) == {"text": text + "!"}
        assert json.loads(run.steps[3].text) == {"written": text}
        (turn,) = [call for call in run.invocations if call.kind == "agent"]
        assert [message.content for message in run.seen_by(turn)] == [text + "?"]
    shown = up.mast_trace("show", "last", "--full", "--json")
    assert shown.returncode == 0, shown.stderr
    assert text in json.dumps(json.loads(shown.stdout), ensure_ascii=False).replace("\\n", "\n")
    with urllib.request.urlopen(f"{up.ready['web']}/runs/{run.trace_id}") as page:
        assert "before" in page.read().decode()


def test_a_text_over_the_limit_keeps_its_ends(up: UpProcess) -> None:
    up.start()
    text = text_of(3 * ATTRIBUTE_LIMIT, MIXED)
    run = sent(up, 3 * ATTRIBUTE_LIMIT, MIXED)
    before, cut, after = (step.text for step in run.steps[:3])
    assert (before, after) == ("before", "after")
    assert ATTRIBUTE_LIMIT - 10 <= len(cut.encode()) <= ATTRIBUTE_LIMIT
    head, _, rest = cut.partition("\n[... ")
    number, _, tail = rest.partition(" characters cut by mast-trace ...]\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + int(number) + len(tail) == len(text)
