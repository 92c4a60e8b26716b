"""`mast-trace doctor` in a process of its own, beside a receiver that takes spans."""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from program_runs import run_program


class _Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def diagnosed(framework: str, home: Path) -> dict[str, Any]:
    """Return what it says of a framework that is installed here, after checking that all is well.

    Args:
        framework: by its name.
        home: an empty folder, for the user's home and the current folder.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        ended = run_program(
            # As it is documented: here packages may be older than the command line wants them.
            *(Path(sys.executable).with_name("mast-trace"), "doctor", "--json"),
            env={
                **os.environ,
                "HOME": str(home),
                "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path))),
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            },
            cwd=home,
        )
    finally:
        server.shutdown()
        server.server_close()
    assert ended.returncode in {0, 1}, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    assert (ended.returncode, found["problems"]) == (0, [])
    (report,) = [each for each in found["frameworks"] if each["name"] == framework]
    assert report["status"] == "on"
    assert report["patched"]
    assert report["missing"] == report["waiting"] == []
    return dict(report)
