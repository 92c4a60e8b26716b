"""Calls of the Anthropic client that are answered from a recorded run return the recorded values."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

anthropic = pytest.importorskip("anthropic", reason="needs the Anthropic client")

import anthropic_ways

import mast_trace
from mast_trace.testing import capture_spans, replayed
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay import replay

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.framework("anthropic")


def test_another_parameter_is_a_difference(options: dict[str, Any]) -> None:
    """A changed limit is named, though the messages are the recorded ones."""

    def program(limit: int) -> None:
        with mast_trace.run("work"), mast_trace.agent("worker"):
            asked = anthropic_ways.request(max_tokens=limit)
            anthropic.Anthropic(**options).messages.create(**asked)

    with capture_spans(["anthropic"]) as captured:
        program(20)
    with replayed(captured.trajectory(), frameworks=["anthropic"]) as replay:
        program(70)
    with pytest.raises(AssertionError, match="max_tokens was 20, is 70"):
        replay.assert_identical()


BEDROCK = """
import boto3
import mast_trace
mast_trace.instrument(frameworks=["anthropic"])
keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
client = boto3.client("bedrock-runtime", region_name="eu-west-1", **keys)
with mast_trace.run("work"), mast_trace.agent("worker"):
    asked = [{"role": "user", "content": [{"text": "Hello"}]}]
    client.converse(modelId="anthropic.claude-x", messages=asked)
"""


def test_a_program_on_botocore_is_refused_by_name(options: dict[str, Any], tmp_path: Path) -> None:
    """The host is secure and cannot be looked up, so that no request is ever written to it."""
    pytest.importorskip("boto3", reason="needs boto3")
    frameworks = ["anthropic"]
    with capture_spans(frameworks) as captured, mast_trace.run("work"), mast_trace.agent("worker"):
        anthropic_ways.tell(options, "create")
    program = tmp_path / "program.py"
    program.write_text(BEDROCK, "utf-8")
    done = replay(captured.trajectory(), Setup((sys.executable, str(program))))
    assert (done.status, done.exit_status) == ("diverged", 1)
    assert done.text.startswith("The program asks a model by botocore (Bedrock).")
    assert done.report is not None
    assert done.report.divergence is not None
    assert done.report.divergence.agent == "worker"
