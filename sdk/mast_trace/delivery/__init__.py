"""Delivery of ended spans to the collector: queue, worker, transport."""
