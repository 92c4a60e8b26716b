"""numpy, which only fitting and intervals need."""

from __future__ import annotations

from typing import Any

from mast_trace.exceptions import ConfigurationError


def numpy_module() -> Any:
    """Return numpy.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        import numpy as np
    except ImportError as error:
        raise ConfigurationError(
            "fitting a profile and intervals of kappa need numpy: pip install 'mast-trace[judge]'"
        ) from error
    return np
