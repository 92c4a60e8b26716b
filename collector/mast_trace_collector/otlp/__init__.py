"""OTLP requests: decompression, decoding, limits and refusals."""
