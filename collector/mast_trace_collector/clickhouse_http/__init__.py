"""ClickHouse's HTTP interface over the embedded engine.

The engine runs in one process. Through this endpoint Grafana, clickhouse-connect and curl read its
data without a ClickHouse server.
"""

from mast_trace_collector.clickhouse_http.app import ClickHouseHTTP

__all__ = ["ClickHouseHTTP"]
