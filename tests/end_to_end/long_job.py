"""An agent that works step by step, and notes which of its spans the collector has acknowledged."""

from __future__ import annotations

import sys
import time

from opentelemetry import trace

import mast_trace

STEPS = 40


def main() -> None:
    """Write the id of every span that was acknowledged, one a line, at once."""
    mast_trace.instrument(frameworks=[])
    waiting: list[str] = []
    with mast_trace.run("long job", input="Count to the end."):
        for number in range(STEPS):
            with mast_trace.agent("counter"), mast_trace.tool("count", {"from": number}) as call:
                waiting.append(f"{trace.get_current_span().get_span_context().span_id:016x}")
                call.result(number + 1)
            if mast_trace.flush(5.0):
                sys.stdout.write("".join(f"{span_id}\n" for span_id in waiting))
                sys.stdout.flush()
                waiting.clear()
            time.sleep(0.02)
        mast_trace.message("counter", "user", f"I counted to {STEPS}.")
        mast_trace.record_outcome(True)
    if not mast_trace.flush(30.0):
        sys.exit("the collector did not take everything")
    sys.stdout.write("".join(f"{span_id}\n" for span_id in waiting))


if __name__ == "__main__":
    main()
