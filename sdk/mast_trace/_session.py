"""`instrument()` and its counterparts: the one session that a process has."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace._report import InstrumentReport
from mast_trace._settings import SDKSettings
from mast_trace.exceptions import ConfigurationError
from mast_trace.urls import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opentelemetry.trace import TracerProvider

    from mast_trace._frameworks import Frameworks
    from mast_trace.content import Capture
    from mast_trace.delivery.span_queue import SpanQueue
    from mast_trace.spans.telemetry import Telemetry

logger = logging.getLogger("mast_trace")


@dataclass
class Session:
    """What is on between `instrument()` and `uninstrument()`.

    Attributes:
        settings: as resolved when it began.
        provider: where spans are made.
        queue: how they leave; None when they go through the application's provider.
        telemetry: makes the spans of hand-made agents.
        frameworks: the instrumentations.
    """

    settings: SDKSettings
    provider: TracerProvider
    queue: SpanQueue | None
    telemetry: Telemetry
    frameworks: Frameworks

    def report(self) -> InstrumentReport:
        """Say what is recorded, and where to."""
        resource = getattr(self.provider, "resource", None)
        return InstrumentReport(
            frameworks=self.frameworks.report(),
            endpoint=masked(self.settings.endpoint.value) if self.queue else "",
            service_name=str(resource.attributes.get("service.name", "")) if resource else "",
        )


_lock = threading.RLock()
_session: Session | None = None


def current_session() -> Session | None:
    """Return what is on now, if anything is."""
    return _session


def instrument(
    *,
    frameworks: Sequence[str] | None = None,
    endpoint: str | None = None,
    headers: Mapping[str, str] | None = None,
    service_name: str | None = None,
    tracer_provider: TracerProvider | None = None,
    capture_content: Capture | None = None,
    redact: Callable[[str], str] | None = None,
) -> InstrumentReport:
    """Record the runs of agent frameworks.

    What is not given here comes from OpenTelemetry's variables: ``OTEL_EXPORTER_OTLP_*`` for the
    collector, ``OTEL_SERVICE_NAME``, ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT``,
    ``OTEL_SDK_DISABLED``, ``OTEL_PYTHON_DISABLED_INSTRUMENTATIONS``. Calling it again adds the
    frameworks that are not on yet and changes nothing else.

    Args:
        frameworks: names of those to record, such as ``["langgraph", "ag2"]``; one that cannot be
            recorded is an error. All that are installed if absent; then a problem is a warning.
        endpoint: address of the collector; ``http://127.0.0.1:4318`` if nothing else says.
        headers: sent with each export, such as a bearer key.
        service_name: names this program; the script's name if nothing else says.
        tracer_provider: makes and exports the spans in place of mast-trace's own provider.
        capture_content: True records each text once, "full" repeats inputs on every span for
            other tools, False records hashes and sizes only.
        redact: applied to every text before it leaves the process.

    Returns:
        What is recorded, what is not and why; print it.

    Raises:
        ConfigurationError: a setting cannot be used.
        InstrumentationError: a framework that was named cannot be recorded.
    """
    global _session  # noqa: PLW0603  # a process has one session, as it has one set of patches
    settings = SDKSettings.resolve(
        endpoint=endpoint,
        headers=headers,
        service_name=service_name,
        capture_content=capture_content,
        redact=redact,
    )
    if settings.disabled.value:
        return InstrumentReport(disabled=f"{settings.disabled.origin}=true")
    if tracer_provider is not None and endpoint is not None:
        raise ConfigurationError(
            "tracer_provider= exports through its own pipeline: leave endpoint= out, or leave "
            "tracer_provider= out and let mast-trace export."
        )
    wanted = (frameworks,) if isinstance(frameworks, str) else frameworks
    with _lock:
        session = _session or _begin(settings, tracer_provider)
        if _session is not None and (conflicts := settings.conflicts(_session.settings)):
            logger.warning(
                "mast_trace.instrument() is on already: another %s is ignored. "
                "Call mast_trace.uninstrument() first to change it.",
                " and ".join(conflicts),
            )
        try:
            session.frameworks.instrument(
                wanted,
                settings.disabled_instrumentations.value,
                session.provider,
                session.settings.content,
            )
        except Exception:
            if _session is None:
                _end(session)
            raise
        _session = session
        return session.report()


def uninstrument() -> None:
    """Put every framework back as it was, and send what is still waiting. Idempotent."""
    global _session
    with _lock:
        session, _session = _session, None
    if session is not None:
        _end(session)


@contextmanager
def paused() -> Iterator[None]:
    """Take instrumentation away for a block, whatever the block turns on, and put it back."""
    global _session  # noqa: PLW0603
    with _lock:
        before, _session = _session, None
        if before is not None:
            before.frameworks.pause()
    try:
        yield
    finally:
        uninstrument()
        with _lock:
            _session = before
            if before is not None:
                before.frameworks.resume(before.provider, before.settings.content)


def flush(timeout: float = 10.0) -> bool:
    """Send every span that has ended, and say whether the collector accepted them all.

    Args:
        timeout: seconds to wait at most.

    Returns:
        True if all spans that ended since the previous flush were accepted (also if there were
        none); False if some were refused, dropped or are still waiting. Through a
        ``tracer_provider`` of the application: what its ``force_flush`` says.
    """
    session = _session
    if session is None:
        return True
    if session.queue is not None:
        return session.queue.flush(timeout)
    force_flush = getattr(session.provider, "force_flush", None)
    return bool(force_flush(int(timeout * 1000))) if force_flush else True


def _begin(settings: SDKSettings, provider: TracerProvider | None) -> Session:
    # The SDK and the exporter load here, not when mast_trace is imported.
    from mast_trace._frameworks import Frameworks
    from mast_trace.spans.ended_runs import forget
    from mast_trace.spans.telemetry import Telemetry

    forget()
    queue = None
    if provider is None:
        from mast_trace.delivery.provider import make_provider
        from mast_trace.delivery.span_queue import SpanQueue

        queue = SpanQueue.to_collector(settings)
        provider = make_provider(settings.service_name.value, queue)
    telemetry = Telemetry(provider, settings.content)
    return Session(settings, provider, queue, telemetry, Frameworks())


def _end(session: Session) -> None:
    session.frameworks.uninstrument()
    if session.queue is not None:
        session.queue.shutdown()
