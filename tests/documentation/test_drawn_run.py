"""The run that the page on the span contract draws is the one that its program makes."""

from __future__ import annotations

import importlib
import os
import re
from typing import TYPE_CHECKING

from documentation.rule_tables import ROOT
from scenarios import model_for

import mast_trace
from mast_trace import semconv
from mast_trace.testing import capture_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pytest
    from opentelemetry.sdk.trace import ReadableSpan

    from mast_trace.trajectory import Step

PAGE = ROOT / "docs" / "understand" / "spans.md"
DRAWN = re.compile(r"^```text\ninvoke_workflow .*?^```$", re.MULTILINE | re.DOTALL)
WIDTH = 42


def drawn(spans: Sequence[ReadableSpan], steps: Mapping[str, Step]) -> str:
    """Draw spans under their parents, each with how many messages it was shown, and its step."""
    children: dict[int, list[ReadableSpan]] = {}
    known = {span.context.span_id for span in spans}
    for span in spans:
        parent = span.parent.span_id if span.parent else 0
        children.setdefault(parent if parent in known else 0, []).append(span)

    def below(parent: int, lead: str) -> Iterator[str]:
        mine = children.get(parent, [])
        for span in mine:
            last = span is mine[-1]
            branch = "" if not parent else "└─ " if last else "├─ "
            yield f"{lead + branch + span.name:<{WIDTH}}{_note(span, steps)}".rstrip()
            yield from below(
                span.context.span_id, lead + ("" if not parent else "   " if last else "│  ")
            )

    return "\n".join(below(0, ""))


def _note(span: ReadableSpan, steps: Mapping[str, Step]) -> str:
    shown = (span.attributes or {}).get(semconv.INPUT_MESSAGE_IDS)
    step = steps.get(f"{span.context.span_id:016x}")
    many = len(shown) if isinstance(shown, tuple) else 0
    told = f"shown {many} message{'s' if many > 1 else ''}" if many else ""
    return told + (f"step {step.index}" if step else "")


def test_the_drawn_run_is_a_real_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(mast_trace, "instrument", lambda: None)
    program = importlib.import_module("langgraph_team")
    with capture_spans(frameworks=["langgraph"]) as captured:
        with model_for("langgraph_team.py", "verified"):
            program.main()
        steps = {step.span_id: step for step in captured.trajectory().steps}
        picture = f"```text\n{drawn(captured.spans, steps)}\n```"
    text = PAGE.read_text("utf-8")
    made = DRAWN.sub(lambda _: picture, text)
    if os.environ.get("MAST_TRACE_WRITE_GOLDEN"):
        PAGE.write_text(made, "utf-8")
        text = made
    assert picture in text
    assert made == text
