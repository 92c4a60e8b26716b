"""Peak memory of a collector under attack, and the longest wait of an innocent sender beside it.

For each attack a fresh `mast-trace collect` runs with its default settings, the embedded engine and
two keys: the innocent sender's, who sends 20 spans by HTTP twenty times a second, each request until
it is acknowledged, and the attacker's. A collector that takes more than 4 GiB is killed.

::

    python benchmarks/durability/attacks.py
    python benchmarks/durability/attacks.py --seconds 20 --only declared stalled
    python benchmarks/durability/attacks.py --python OTHER/.venv/bin/python   # another version's
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from attack_kinds import ATTACKS

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "tests" / "end_to_end"))
from span_sender import request_of  # noqa: E402

_MOST_MIB = 4096
_READY_SECONDS = 120
_STOP_SECONDS = 60
_PAUSE = 0.05
_GIVE_UP = 10.0


@dataclass
class Innocent:
    """A sender beside the attack.

    Attributes:
        waits: seconds until each request was acknowledged.
        since: start time of the request that is not acknowledged yet.
        tries: of requests, refused ones included.
    """

    port: int
    key: str
    waits: list[float] = field(default_factory=list)
    since: float = 0.0
    tries: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        number = 0
        while not self.stopped.wait(_PAUSE):
            number += 1
            body, _ = request_of(1, number)
            self.since = time.monotonic()
            while not self.stopped.is_set():
                self.tries += 1
                if self._post(body):
                    self.waits.append(time.monotonic() - self.since)
                    break
                time.sleep(_PAUSE)

    @property
    def longest(self) -> float:
        """The longest wait, that of the last request included."""
        return max([*self.waits, time.monotonic() - self.since])

    def _post(self, body: bytes) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_GIVE_UP)
        headers = {
            "content-type": "application/x-protobuf",
            "authorization": f"Bearer {self.key}",
        }
        try:
            connection.request("POST", "/v1/traces", body, headers)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


@dataclass(frozen=True)
class Outcome:
    """The results of one attack."""

    attack: str
    before_mib: float
    peak_mib: float
    longest: float
    acknowledged: int
    tries: int
    ended: float | None

    def row(self) -> str:
        """The line of the table."""
        killed = "killed at " if self.peak_mib >= _MOST_MIB else ""
        ended = "no" if self.ended is None else f"{self.ended:.1f}"
        cells = (
            ATTACKS[self.attack][0],
            f"{self.before_mib:,.0f}",
            f"{killed}{self.peak_mib:,.0f}",
            f"{self.longest:.2f}",
            f"{self.acknowledged}",
            f"{self.tries - self.acknowledged}",
            ended,
        )
        return "| " + " | ".join(cells) + " |"


HEAD = (
    "| attack | MiB before | peak MiB | longest wait of the innocent s | acknowledged | tried in vain "
    "| ended after SIGTERM s |\n|---|---|---|---|---|---|---|"
)


def keys(python: str, folder: Path) -> dict[str, str]:
    """Make a key for each of the two senders."""
    made = {}
    for project in ("innocent", "attacker"):
        command = [python, "-m", "mast_trace_dashboards", "collect", "key", project, "--json"]
        done = subprocess.run(
            [*command, "--file", folder / "keys"], capture_output=True, check=True
        )
        made[project] = str(json.loads(done.stdout)["key"])
    return made


def start(python: str, folder: Path) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start a collector; its process and its ports."""
    ready = folder / "ready.json"
    command = [python, "-m", "mast_trace_dashboards", "collect", "--data-dir", str(folder / "data")]
    command += ["--http-port", "0", "--grpc-port", "0", "--ready-file", str(ready)]
    environment = {**os.environ, "MAST_TRACE_KEYS_FILE": str(folder / "keys")}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    deadline = time.monotonic() + _READY_SECONDS
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise SystemExit((folder / "log").read_text())
        time.sleep(0.1)
    addresses = json.loads(ready.read_text())
    http_port, grpc_port = (addresses[n].rpartition(":")[2] for n in ("otlp_http", "otlp_grpc"))
    return process, int(http_port), int(grpc_port)


def mib(pid: int, name: str) -> float:
    """A figure of a process's memory; 0 once it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = [line.split()[1] for line in status.splitlines() if line.startswith(f"{name}:")]
    return int(found[0]) / 1024 if found else 0.0


def measure(python: str, attack: str, seconds: float, folder: Path) -> Outcome:
    """Run one attack on a fresh collector."""
    given = keys(python, folder)
    process, port, grpc_port = start(python, folder)
    innocent = Innocent(port, given["innocent"])
    sending = threading.Thread(target=innocent.run, daemon=True)
    before = mib(process.pid, "VmRSS")
    ports = [str(port), str(grpc_port)]
    attacker = subprocess.Popen(
        [sys.executable, HERE / "attack_kinds.py", attack, *ports, given["attacker"]]
    )
    try:
        sending.start()
        until = time.monotonic() + seconds
        while time.monotonic() < until and mib(process.pid, "VmRSS") < _MOST_MIB:
            time.sleep(0.05)
        peak, longest = mib(process.pid, "VmHWM"), innocent.longest
        innocent.stopped.set()
        ended = None if peak >= _MOST_MIB else stop(process)
    finally:
        innocent.stopped.set()
        process.kill()
        process.wait()
        attacker.kill()
        attacker.wait()
        sending.join(2 * _GIVE_UP)
    return Outcome(attack, before, peak, longest, len(innocent.waits), innocent.tries, ended)


def stop(process: subprocess.Popen[bytes]) -> float | None:
    """Seconds that the process takes to end by itself, still under attack; None if it does not."""
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    return time.monotonic() - began


def main() -> None:
    """Run the attacks one after the other and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="duration of each attack")
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), default=list(ATTACKS))
    parser.add_argument(
        "--python", default=sys.executable, help="the Python that runs the collector"
    )
    options = parser.parse_args()
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print(HEAD, flush=True)
    for attack in options.only:
        with tempfile.TemporaryDirectory(prefix="mast-trace-bench-") as folder:
            print(measure(options.python, attack, options.seconds, Path(folder)).row(), flush=True)


if __name__ == "__main__":
    main()
