"""Loads numpy and scipy, which only intervals and fitting need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mast_trace.exceptions import ConfigurationError


def numpy_module() -> Any:
    """Return numpy.

    Raises:
        ConfigurationError: it is not installed.
    """
    return _imported("numpy", "intervals of kappa need numpy: pip install 'mast-trace[judge]'")


def special_module() -> Any:
    """Return scipy's functions of distributions.

    Raises:
        ConfigurationError: scipy is not installed.
    """
    return _imported(
        "scipy.special", "intervals of a fit need scipy: pip install 'mast-trace[fit]'"
    )


def optimize_module() -> Any:
    """Return scipy's optimisers.

    Raises:
        ConfigurationError: scipy is not installed.
    """
    return _imported(
        "scipy.optimize", "fitting a profile needs scipy: pip install 'mast-trace[fit]'"
    )


def _imported(name: str, missing: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigurationError(missing) from error
