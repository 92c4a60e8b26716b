"""The first run of the documentation is shown as its page shows it."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest
from code_blocks import PAGES, blocks_of
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from stored_spans import spans_of

from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.runs import run_summary
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_dashboards.cli.app import run
from mast_trace_judge.batch import trajectory_of
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.store.verdicts import save

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace.testing import CapturedSpans

pytestmark = pytest.mark.documents

PAGE = PAGES / "start" / "first-run.md"
_VARIES = re.compile(r"[0-9a-f]{32}|\b[0-9.]+ m?s\b")


def _lines(text: str) -> list[str]:
    """The lines without widths of columns, ids and durations."""
    return [_VARIES.sub("#", " ".join(line.split())) for line in text.strip().splitlines()]


@pytest.mark.mast_trace(frameworks=[])
def test_the_run_is_shown_as_on_the_page(
    captured_spans: CapturedSpans, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the first line to the last step; the page leaves out what follows."""
    [program] = [block for block in blocks_of(PAGE) if "first-run" in block.words]
    [shown] = [block.text for block in blocks_of(PAGE) if block.language == "text"]
    exec(compile(program.text, program.place, "exec"), {"__name__": "__main__"})
    trace_id = captured_spans.trajectory().trace_id
    url = f"chdb://{tmp_path}/store"
    with Store.open(url) as store:
        migrate(store)
        written = encode_spans(captured_spans.spans).SerializeToString()
        SpanWriter(store).write([written], token="run")
        summary = run_summary(store, trace_id)
        assert summary is not None
        judging = Judge(JudgeConfig.load(judge_model="")).judge(
            summary, trajectory_of(summary, spans_of(store, trace_id))
        )
        save(store, [asyncio.run(judging)])
    capsys.readouterr()
    assert run(["show", trace_id, "--url", url]) == 0
    steps, _, _ = capsys.readouterr().out.partition("\nFAILURE MODE")
    assert _lines(shown) == _lines(steps)
