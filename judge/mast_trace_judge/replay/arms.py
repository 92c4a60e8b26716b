"""Arms and their results, under the names by which the experiment's modules import them."""

from mast_trace_judge.arms import START, Arm, ArmResult, Fix, FixSource, Operator, ReplayStatus

__all__ = ["START", "Arm", "ArmResult", "Fix", "FixSource", "Operator", "ReplayStatus"]
