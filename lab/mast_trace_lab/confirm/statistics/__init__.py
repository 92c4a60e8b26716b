"""Statistics of replays: the search for the step that decided a failure, and the proof of it."""

from mast_trace_lab.confirm.statistics.experiment import Experiment
from mast_trace_lab.confirm.statistics.plan import ExperimentLimits

__all__ = ["Experiment", "ExperimentLimits"]
