"""The shipped dashboards, and their files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from mast_trace_dashboards.grafana.decisive import DECISIVE
from mast_trace_dashboards.grafana.health import INGESTION, JUDGE
from mast_trace_dashboards.grafana.modes import MODES
from mast_trace_dashboards.grafana.overview import OVERVIEW
from mast_trace_dashboards.grafana.runs import EXPLORER, RUN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DASHBOARDS: Final = (OVERVIEW, MODES, DECISIVE, EXPLORER, RUN, JUDGE, INGESTION)


def files() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each dashboard's file."""
    for dashboard in DASHBOARDS:
        text = json.dumps(dashboard.to_json(), indent=2, ensure_ascii=False)
        yield f"{dashboard.uid}.json", f"{text}\n"


def write(folder: Path) -> list[Path]:
    """Write the files into ``folder``, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in files():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written
