"""The conclusion's records, under the names by which the experiment's modules import them."""

from mast_trace_judge.confirmation import (
    Confirmation,
    ConfirmationStatus,
    Contrast,
    SuccessRate,
)

__all__ = ["Confirmation", "ConfirmationStatus", "Contrast", "SuccessRate"]
