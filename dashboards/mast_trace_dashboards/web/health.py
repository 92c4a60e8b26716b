"""Health checks for an orchestrator: liveness of the process, readiness of its database."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from mast_trace.exceptions import SchemaMismatch, StorageError
from mast_trace_collector.storage import check_schema

if TYPE_CHECKING:
    from starlette.requests import Request

    from mast_trace_collector.storage import Store

logger = logging.getLogger(__name__)

PATHS: Final = frozenset({"/healthz", "/readyz"})
_REMEMBERED_SECONDS = 1.0
_PATIENCE_SECONDS = 5.0


class Health:
    """Answers without a key, and so reveals nothing that would need one.

    The database is queried at most once a second, and by one thread.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asked_at = 0.0
        self._asking: asyncio.Task[str] | None = None
        self._trouble = ""
        self._schema_fits = False
        self.routes = [Route("/healthz", self.alive), Route("/readyz", self.ready)]

    async def alive(self, _: Request) -> Response:
        """Answer that the process is alive."""
        return PlainTextResponse("ok\n")

    async def ready(self, _: Request) -> Response:
        """Answer whether pages can be served, and if not, the reason in a word."""
        trouble = await self._look()
        answer = {"ready": not trouble, "reason": trouble}
        return JSONResponse(answer, 503 if trouble else 200)

    async def _look(self) -> str:
        if self._asking is None:
            if time.monotonic() - self._asked_at < _REMEMBERED_SECONDS:
                return self._trouble
            self._asking = asyncio.create_task(self._ask())
        try:
            return await asyncio.wait_for(asyncio.shield(self._asking), _PATIENCE_SECONDS)
        except asyncio.TimeoutError:
            return "the database takes too long to answer"

    async def _ask(self) -> str:
        try:
            trouble, why = await asyncio.to_thread(self._query)
            if trouble and trouble != self._trouble:
                logger.warning("not ready: %s", why)
            self._trouble = trouble
            return trouble
        finally:
            self._asked_at = time.monotonic()
            self._asking = None

    def _query(self) -> tuple[str, str]:
        """Return the problem, for everybody, and its cause, for the log; empty if there is none."""
        try:
            if not self._schema_fits:
                check_schema(self._store)
                self._schema_fits = True
            self._store.query("SELECT 1")
        except SchemaMismatch as error:
            return "the tables belong to another version", str(error)
        except StorageError as error:
            return "the database does not answer", str(error)
        return "", ""
