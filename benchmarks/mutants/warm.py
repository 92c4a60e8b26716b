"""A process that has imported what most tests need, and forks itself for each run of pytest.

The imports take longer than the few tests that are nearest to a mistake. chdb is not among them: it does not
survive a fork. Each line of standard input is a run:
``{"folder": ..., "environment": {...}, "path": [...], "arguments": [...], "limit": seconds}``; the answer
is a line with the exit status, or -1 where the limit ended it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from contextlib import suppress

import pytest

NEEDED = (
    *("_hypothesis_pytestplugin", "anyio.pytest_plugin", "hypothesis", "pytest_asyncio.plugin"),
    *("xdist.plugin", "numpy", "scipy.stats", "pyarrow"),
    *("pydantic_settings", "typer", "typer.testing", "rich.console", "jinja2", "markdown_it"),
    *("starlette.testclient", "uvicorn", "httpx", "urllib3", "requests"),
    *("opentelemetry.sdk.trace", "opentelemetry.proto.collector.trace.v1.trace_service_pb2"),
)


def main() -> None:
    """Serve runs until standard input ends."""
    for name in NEEDED:
        importlib.import_module(name)
    for line in sys.stdin:
        run = json.loads(line)
        child = os.fork()
        if not child:
            _be(run)
        status = _status(child, run["limit"])
        # Processes of the tests do not outlive them.
        with suppress(ProcessLookupError):
            os.killpg(child, 9)
        if status is None:
            os.waitpid(child, 0)
        print(-1 if status is None else status, flush=True)


def _be(run: dict[str, object]) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    os.chdir(str(run["folder"]))
    os.environ.update(run["environment"])  # type: ignore[arg-type]
    sys.path[:0] = run["path"]  # type: ignore[assignment]
    try:
        os._exit(pytest.main(run["arguments"]))  # type: ignore[arg-type]
    finally:
        os._exit(3)


def _status(child: int, limit: float) -> int | None:
    end = time.monotonic() + limit
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    return None


if __name__ == "__main__":
    main()
