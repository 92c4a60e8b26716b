"""The name of the environment variable by which a program learns that it is replayed."""

from typing import Final

PLAN_VARIABLE: Final = "MAST_TRACE_REPLAY"
"""The environment variable that names a replay's folder, which holds its plan, spans and report."""
