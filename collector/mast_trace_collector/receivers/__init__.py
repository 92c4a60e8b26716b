"""OTLP receivers: HTTP (protobuf and JSON) and gRPC."""
