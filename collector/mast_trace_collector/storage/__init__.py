"""The span store: ClickHouse, embedded in the process or on a server, behind one class."""

from mast_trace_collector.storage.migrations import check_schema, migrate, render
from mast_trace_collector.storage.schema_templates import SchemaOptions
from mast_trace_collector.storage.store import Store

__all__ = [
    "SchemaOptions",
    "Store",
    "check_schema",
    "migrate",
    "render",
]
