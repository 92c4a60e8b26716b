"""The runbooks of the alerts: meaning, investigation and remedy.

Each is a Markdown file under ``mast_trace_dashboards/alerts/runbooks``. `mast-trace web` serves them at
``/runbooks/NAME``, and every form of every alert links there.
"""

from __future__ import annotations

import re
from importlib import resources

_SUFFIX = ".md"
_PREFIX = "Mast"


def names() -> list[str]:
    """Return the names of all runbooks."""
    folder = resources.files(__name__)
    files = (file.name for file in folder.iterdir() if file.name.endswith(_SUFFIX))
    return sorted(name.removesuffix(_SUFFIX) for name in files)


def text(name: str) -> str:
    """Return a runbook's Markdown.

    Raises:
        KeyError: there is none of that name.
    """
    if name not in names():
        raise KeyError(name)
    file = resources.files(__name__) / f"{name}{_SUFFIX}"
    return file.read_text("utf-8")


def address(web: str, name: str) -> str:
    """Return the URL of a runbook.

    Args:
        web: address of the web view.
        name: of the runbook.
    """
    return f"{web.rstrip('/')}/runbooks/{name}"


def name_of(alert: str) -> str:
    """Return the runbook's name for an alert of Prometheus alone.

    ``MastNoSpans`` has ``no-spans``.
    """
    return re.sub(r"(?<=.)(?=[A-Z])", "-", alert.removeprefix(_PREFIX)).lower()
