"""The durable spool: an acknowledged request is on disk until its rows are in the database."""

from mast_trace_collector.spool.record import Record
from mast_trace_collector.spool.refusal import Refused
from mast_trace_collector.spool.segment import Damage, Segment
from mast_trace_collector.spool.spool import Spool, SpoolLimits, Ticket

__all__ = ["Damage", "Record", "Refused", "Segment", "Spool", "SpoolLimits", "Ticket"]
