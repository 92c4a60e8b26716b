"""The shipped dashboards, their files, and their upload to a running Grafana."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import httpx

from mast_trace.exceptions import ConfigurationError
from mast_trace.urls import check_key, check_proxies, conceal, masked, parse_url
from mast_trace_collector.plugins import answers
from mast_trace_dashboards.grafana.board import Dashboard, text_variable
from mast_trace_dashboards.grafana.cost import COST
from mast_trace_dashboards.grafana.health import INGESTION, JUDGE
from mast_trace_dashboards.grafana.modes import DECISIVE, MODES
from mast_trace_dashboards.grafana.runs import EXPLORER, OVERVIEW, RUN, WEB_VARIABLE
from mast_trace_dashboards.plugins import Plugin

if TYPE_CHECKING:
    from mast_trace_dashboards.grafana.panels import Json


_SHIPPED: Final = (OVERVIEW, COST, MODES, DECISIVE, EXPLORER, RUN, JUDGE, INGESTION)


def _with_plugins() -> Iterator[Dashboard]:
    """Yield each dashboard, the rows of plugins at its end."""
    added = [panels for _, panels in answers(Plugin, lambda each: dict(each.panels()))]
    for shipped in _SHIPPED:
        more = [row for panels in added for row in panels.get(shipped.uid, ())]
        yield replace(shipped, rows=(*shipped.rows, *more))


DASHBOARDS: Final = tuple(_with_plugins())


def definitions(web: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the uid of each dashboard and its definition for Grafana.

    Args:
        web: address of the web view that they link to; empty for the one of `mast-trace up`.
    """
    for dashboard in DASHBOARDS:
        definition = dashboard.to_json()
        if web:
            _link(definition, web.rstrip("/"))
        yield dashboard.uid, definition


def _link(definition: Json, web: str) -> None:
    for variable in definition["templating"]["list"]:
        if variable["name"] == WEB_VARIABLE:
            variable.update(text_variable(WEB_VARIABLE, variable["label"], web))


def files(web: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each dashboard's file."""
    for uid, definition in definitions(web):
        yield f"{uid}.json", f"{json.dumps(definition, indent=2, ensure_ascii=False)}\n"


def write(folder: Path, web: str = "") -> list[Path]:
    """Write the files into ``folder``, which is created if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in files(web):
        path = folder / name
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


FOLDER = "mast-trace"
_TIMEOUT = 20.0

Change = Literal["create", "update", "unchanged"]


def push(
    url: str, token: str, *, web: str = "", dry_run: bool = False
) -> Iterator[tuple[str, Change]]:
    """Create or update every dashboard in the folder "mast-trace".

    Args:
        url: of Grafana, such as ``http://localhost:3000``.
        token: of a service account that may edit dashboards.
        web: address of the web view that they link to; empty for the one of `mast-trace up`.
        dry_run: report the changes without making them.

    Yields:
        Each dashboard's title and its change.

    Raises:
        ConfigurationError: Grafana cannot be reached, or refuses, or the token cannot be one.
    """
    headers = {"Authorization": f"Bearer {check_key(token, 'the token of Grafana')}"}
    check_proxies()
    with httpx.Client(base_url=parse_url(url).base, headers=headers, timeout=_TIMEOUT) as grafana:
        if not dry_run:
            _make_folder(grafana)
        for uid, wanted in definitions(web):
            change = _compare(grafana, uid, wanted)
            if change != "unchanged" and not dry_run:
                body = {
                    "dashboard": {**wanted, "id": None},
                    "folderUid": FOLDER,
                    "overwrite": True,
                    "message": "mast-trace dashboards push",
                }
                _checked(grafana, "POST", "/api/dashboards/db", body)
            yield wanted["title"], change


def _make_folder(grafana: httpx.Client) -> None:
    if _checked(grafana, "GET", f"/api/folders/{FOLDER}", missing_ok=True) is None:
        _checked(grafana, "POST", "/api/folders", {"uid": FOLDER, "title": FOLDER})


def _compare(grafana: httpx.Client, uid: str, wanted: dict[str, object]) -> Change:
    found = _checked(grafana, "GET", f"/api/dashboards/uid/{uid}", missing_ok=True)
    if found is None:
        return "create"
    stored = found.json()["dashboard"]
    same = all(stored.get(key) == value for key, value in wanted.items())
    return "unchanged" if same else "update"


def _checked(
    grafana: httpx.Client,
    method: str,
    path: str,
    body: dict[str, object] | None = None,
    *,
    missing_ok: bool = False,
) -> httpx.Response | None:
    try:
        answer = grafana.request(method, path, json=body)
    except httpx.HTTPError as error:
        raise ConfigurationError(
            f"Grafana at {masked(str(grafana.base_url))} cannot be reached: "
            f"{conceal(str(error), str(grafana.base_url))}. Check the address."
        ) from error
    if answer.status_code == httpx.codes.NOT_FOUND and missing_ok:
        return None
    if answer.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
        raise ConfigurationError(
            "Grafana refuses the token. Make a service account with the role Editor and use its "
            "token (--token or GRAFANA_TOKEN)."
        )
    if answer.is_error:
        raise ConfigurationError(f"Grafana answers {answer.status_code} to {path}: {answer.text}")
    return answer
