"""Runs the programs of the coverage benchmark in this process and counts what is recorded of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripted_llm import ScriptedLLM

from mast_trace.testing import capture_spans

if TYPE_CHECKING:
    import pytest

RUNS = 3


def truth_and_record(framework: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Run a framework's program alone, then twice at the same time in two threads.

    Returns:
        What a perfect recording counts, and what ours does.
    """
    folder = Path(__file__).parents[1] / "benchmarks" / "coverage"
    monkeypatch.syspath_prepend(str(folder))
    probe, program = import_module("probe"), import_module(f"programs.{framework}")
    with ScriptedLLM(program.script) as llm, capture_spans([framework]) as captured:
        program.run(llm.url)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(program.run, [llm.url] * 2))
    return (
        probe.expected(program.TRUTH, llm.requests, RUNS),
        probe.counted(captured.records, program.TRUTH, llm.requests, RUNS),
    )
