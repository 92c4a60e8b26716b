"""Reference of the supported versions, from the instrumentations and the environments of their tests."""

from __future__ import annotations

from importlib.metadata import entry_points

from site_extension.markdown import table
from site_extension.repository import ROOT

_ENVIRONMENTS = ROOT / "tests" / "environments"


def versions() -> str:
    """Return Markdown: each framework and client with the versions that are recorded and tested."""
    rows = []
    for entry in entry_points(group="mast_trace_instrumentor"):
        recorded = entry.load()
        lowest, beyond = recorded.versions
        files = sorted(_ENVIRONMENTS.glob(f"{entry.name}-*.txt"))
        tested = [file.stem.removeprefix(f"{entry.name}-") for file in files]
        packages = ", ".join(f"`{name}`" for name in recorded.distributions)
        pinned = ", ".join(tested)
        rows.append((f"`{entry.name}`", packages, f"`>={lowest},<{beyond}`", pinned))
    return table(("name", "packages", "recorded", "tested"), sorted(rows))
