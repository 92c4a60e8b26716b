"""The way of ended spans out of the process: queue, worker, transport."""
