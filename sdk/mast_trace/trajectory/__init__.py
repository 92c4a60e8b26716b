"""The read side: a run's spans as a trajectory of steps.

A traced program does not need it; judge, web view and importers do::

    from mast_trace.trajectory import read_trajectory

    for step in read_trajectory(spans).steps:
        print(step.agent, step.text)
"""

from mast_trace.trajectory.model import Invocation, SpanRecord, Step, StepKind, Trajectory
from mast_trace.trajectory.reader import read_trajectory
from mast_trace.trajectory.sources import with_events
from mast_trace.trajectory.to_json import to_dict, trajectory_from_dict

__all__ = [
    "Invocation",
    "SpanRecord",
    "Step",
    "StepKind",
    "Trajectory",
    "read_trajectory",
    "to_dict",
    "trajectory_from_dict",
    "with_events",
]
