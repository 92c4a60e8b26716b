"""Loads numpy and scipy, which only intervals and fitting need."""

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
            "intervals of kappa need numpy: pip install 'mast-trace[judge]'"
        ) from error
    return np


def special_module() -> Any:
    """Return scipy's functions of distributions.

    Raises:
        ConfigurationError: scipy is not installed.
    """
    try:
        from scipy import special
    except ImportError as error:
        raise ConfigurationError(
            "intervals of a fit need scipy: pip install 'mast-trace[fit]'"
        ) from error
    return special


def optimize_module() -> Any:
    """Return scipy's optimisers.

    Raises:
        ConfigurationError: scipy is not installed.
    """
    try:
        from scipy import optimize
    except ImportError as error:
        raise ConfigurationError(
            "fitting a profile needs scipy: pip install 'mast-trace[fit]'"
        ) from error
    return optimize
