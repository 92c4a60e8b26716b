"""ClickHouse's HTTP interface over the embedded engine.

The engine lives in one process. Through this endpoint Grafana, clickhouse-connect and curl read
what it holds, with no ClickHouse server anywhere.
"""

from mast_trace_collector.clickhouse_http.app import ClickHouseHTTP

__all__ = ["ClickHouseHTTP"]
