"""The durable spool: an acknowledged request is on disk until its rows are in the database."""

from mast_trace_collector.spool.damaged import DamagedFiles, Loss
from mast_trace_collector.spool.quota import RequestRefused, SpoolLimits
from mast_trace_collector.spool.record import Record
from mast_trace_collector.spool.segment import Segment
from mast_trace_collector.spool.spool import Acknowledgement, Spool

__all__ = [
    "Acknowledgement",
    "DamagedFiles",
    "Loss",
    "Record",
    "RequestRefused",
    "Segment",
    "Spool",
    "SpoolLimits",
]
