"""Uploads the dashboards to a running Grafana over its HTTP API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import httpx

from mast_trace.exceptions import ConfigurationError
from mast_trace.urls import check_key, check_proxies, conceal, masked, parse_url
from mast_trace_dashboards.grafana.dashboards import definitions

if TYPE_CHECKING:
    from collections.abc import Iterator

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
