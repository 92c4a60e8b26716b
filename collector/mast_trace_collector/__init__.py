"""The collector: receives OTLP, makes it durable, and stores the spans in ClickHouse."""
