"""An agent's program that stops in a given way: by itself, or by a signal of the test."""

from __future__ import annotations

import os
import sys
import time

import mast_trace

how = sys.argv[1]
mast_trace.instrument(frameworks=[], service_name="desk")
with mast_trace.run(how, input=f"Refund order 7, then {how}."):
    with mast_trace.agent("clerk"):
        mast_trace.message("clerk", "user", "I look for the receipt.")
    mast_trace.message("clerk", "user", "I was unable to find the receipt.")
    assert mast_trace.flush()
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    if how == "exit":
        os._exit(3)
    if how == "person":
        answer = sys.stdin.readline()
        mast_trace.message("user", "clerk", answer)
    else:
        time.sleep(600)
