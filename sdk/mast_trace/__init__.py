"""mast-trace: see why a multi-agent LLM run failed.

::

    import mast_trace

    mast_trace.instrument()

records the runs of every supported agent framework that is installed. `run`, `agent`, `tool` and
`message` do the same for hand-made agents. Importing this package loads nothing else; each name
loads its module at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mast_trace._frameworks import InstrumentReport
    from mast_trace._session import flush, instrument, uninstrument
    from mast_trace.experiment.assignment import assign
    from mast_trace.experiment.lessons import feedback
    from mast_trace.experiment.marks import using_feedback
    from mast_trace.manual.api import agent, message, record_outcome, run, seed, tool
    from mast_trace.manual.threads import in_context

    __version__: str

_HOMES = {
    "InstrumentReport": "mast_trace._frameworks",
    "agent": "mast_trace.manual.api",
    "assign": "mast_trace.experiment.assignment",
    "feedback": "mast_trace.experiment.lessons",
    "flush": "mast_trace._session",
    "in_context": "mast_trace.manual.threads",
    "instrument": "mast_trace._session",
    "message": "mast_trace.manual.api",
    "record_outcome": "mast_trace.manual.api",
    "run": "mast_trace.manual.api",
    "seed": "mast_trace.manual.api",
    "tool": "mast_trace.manual.api",
    "uninstrument": "mast_trace._session",
    "using_feedback": "mast_trace.experiment.marks",
}

__all__ = [
    "InstrumentReport",
    "__version__",
    "agent",
    "assign",
    "feedback",
    "flush",
    "in_context",
    "instrument",
    "message",
    "record_outcome",
    "run",
    "seed",
    "tool",
    "uninstrument",
    "using_feedback",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("mast-trace")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
