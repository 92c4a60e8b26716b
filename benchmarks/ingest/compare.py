"""Our collector beside the peers: the same spans until they can be queried, in one run.

Every round measures each of them once, in turn, on a fresh store. A peer gets fewer spans, as many
as it needs some seconds for; rates are per second, so that this favours nobody.

::

    python benchmarks/ingest/compare.py
    python benchmarks/ingest/compare.py --rounds 3 --shape small
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from environments import environment  # noqa: E402
from load import Shape, agent_shape, small_shape  # noqa: E402
from run import HEADERS, cpu_seconds, measure, peak_rss, send  # noqa: E402
from systems import PEERS, Peer, environment_of  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Mapping

_OURS = "mast-trace"
_OUR_SPANS = 200_192


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def of_group(group: int) -> list[int]:
    """Process ids of a process group: some peers serve from children."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            found.append(int(stat.parent.name))
    return found


def measure_peer(peer: Peer, shape: Shape, spans: int, folder: Path) -> Mapping[str, float]:
    """Start a peer, send spans, wait until its database has them all."""
    port = free_port()
    tool = peer.name.partition(",")[0]
    programs = environment(f"ingest/{tool}", peer.requirements).parent
    command = peer.command(folder, port)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [programs / command[0], *command[1:]],
            env=environment_of(folder, port, peer),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            peer.wait_until_ready(port)
            cpu = sum(map(cpu_seconds, of_group(process.pid)))
            began = time.perf_counter()
            address = f"http://127.0.0.1:{port}"
            headers = {**HEADERS, **peer.headers}
            sent = send(address, shape, spans // shape.spans, peer.connections, 0, headers)
            while peer.count(folder) < spans:
                if time.perf_counter() - began > 300:
                    raise TimeoutError(f"{peer.name} has {peer.count(folder)} of {spans} spans")
                time.sleep(0.1)
            seconds = time.perf_counter() - began
            members = of_group(process.pid)
            return {
                "rate": spans / seconds,
                "cpu": (sum(map(cpu_seconds, members)) - cpu) / spans * 1e6,
                "ack": sorted(sent.latencies)[int(len(sent.latencies) * 0.99)] * 1e3,
                "rss": sum(map(peak_rss, members)) / 2**20,
            }
        finally:
            for member in of_group(process.pid):
                os.kill(member, 9)


def measure_ours(shape: Shape, spans: int, folder: Path) -> Mapping[str, float]:
    """The same of our collector."""
    result = measure(shape, spans, 8, 0, folder)
    latencies = sorted(result.sent.latencies)
    return {
        "rate": result.spans / result.seconds,
        "cpu": result.cpu_seconds / result.spans * 1e6,
        "ack": latencies[int(len(latencies) * 0.99)] * 1e3,
        "rss": result.peak_rss / 2**20,
    }


def main() -> None:
    """Measure everyone in turn and print the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=["agent", "small"], default="agent")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--times", type=int, default=1, help="as many spans, for everyone")
    parser.add_argument(
        "--only", nargs="+", choices=[p.name for p in PEERS], help="names of the peers"
    )
    options = parser.parse_args()
    build = agent_shape if options.shape == "agent" else small_shape
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    peers = [peer for peer in PEERS if peer.name in (options.only or [peer.name])]
    found: dict[str, list[Mapping[str, float]]] = {_OURS: [], **{p.name: [] for p in peers}}
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="mast-trace-bench-") as folder:
            found[_OURS].append(measure_ours(build(), _OUR_SPANS * options.times, Path(folder)))
        for peer in peers:
            with tempfile.TemporaryDirectory(prefix="mast-trace-bench-") as folder:
                shape = build(peer.request_spans)
                spans = peer.spans * options.times
                found[peer.name].append(measure_peer(peer, shape, spans, Path(folder)))
        print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)
    acknowledges = {_OURS: "on disk", **{peer.name: peer.acknowledges for peer in peers}}
    middle = {
        name: {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}
        for name, rounds in found.items()
    }
    print(
        "\n| system | spans/s until queryable | ours is faster by | CPU us/span | ack p99 ms "
        "| peak RSS MiB | an acknowledged span is |\n|---|---|---|---|---|---|---|"
    )
    for name, row in middle.items():
        ratio = middle[_OURS]["rate"] / row["rate"]
        times = f"{ratio:,.0f}x" if ratio > 10 else f"{ratio:.1f}x"
        print(
            f"| {name} | {row['rate']:,.0f} | {times} | {row['cpu']:,.0f} "
            f"| {row['ack']:,.0f} | {row['rss']:,.0f} | {acknowledges[name]} |"
        )


if __name__ == "__main__":
    main()
