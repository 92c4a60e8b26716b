"""A run that failed, with a text that would steer a terminal."""

from __future__ import annotations

import mast_trace

EVIL = "\x1b[2J\x1b]0;owned\x07 50 EUR \u202elatot[red]"


def failing_run() -> None:
    asked = {"user.id": "ann"}
    with mast_trace.run("invoices", input="What does Hartmann owe us?", attributes=asked):
        mast_trace.message("user", "analyst", "What does Hartmann owe us?")
        with mast_trace.agent("analyst"):
            for _ in range(3):
                with mast_trace.tool("list_invoices", {"page": 1}) as call:
                    call.result("R-1: 50 EUR")
            mast_trace.message("analyst", "user", f"They owe {EVIL}")
        mast_trace.record_outcome(False, "page 2 is missing")
