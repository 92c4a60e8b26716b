"""The table of operators: each plants one kind of fault at a site of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mast_trace_lab.inject.operators.answers import ANSWERS
from mast_trace_lab.inject.operators.messages import MESSAGES, REQUESTS, RESULTS
from mast_trace_lab.inject.operators.operator import Operator

__all__ = ["OPERATORS", "Operator"]

OPERATORS: Final[Mapping[str, Operator[Any]]] = {
    operator.name: operator for operator in (*ANSWERS, *REQUESTS, *MESSAGES, *RESULTS)
}
"""Every operator by its name, those of failure modes first, in the order of MAST's codes by level."""
