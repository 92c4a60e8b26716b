"""The collector that is measured: all settings at their defaults, the embedded engine inside."""

from __future__ import annotations

import asyncio
import signal
import sys

from mast_trace_collector.collector import Collector
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.storage import Store, migrate


async def main() -> None:
    config = CollectorConfig.load(data_dir=sys.argv[1], http_port=0, grpc_port=0)
    with Store.open(config.store_url) as store:
        migrate(store)
        collector = Collector(config, store)
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        await collector.start()
        print(collector.http_address, flush=True)
        await stopped.wait()
        await collector.stop()
        print(store.query("SELECT count() AS n FROM otel_traces")[0]["n"], flush=True)
        parts = (
            "SELECT sum(bytes_on_disk) AS n FROM system.parts WHERE active AND table = {t:String}"
        )
        print(store.query(parts, {"t": "otel_traces"})[0]["n"], flush=True)


if __name__ == "__main__":
    asyncio.run(main())
