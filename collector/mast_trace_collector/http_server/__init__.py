"""The HTTP server of receivers, web view and ClickHouse endpoint."""
