"""The recording session of a process, which `instrument()` begins and `uninstrument()` ends."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mast_trace import running_up
from mast_trace._frameworks import Frameworks, InstrumentReport
from mast_trace._settings import SDKSettings
from mast_trace.content import Capture, redact_structures
from mast_trace.exceptions import ConfigurationError
from mast_trace.fork_safe import reentrant_lock
from mast_trace.replay.plan_variable import PLAN_VARIABLE
from mast_trace.urls import masked

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from mast_trace.delivery.span_queue import SpanQueue
    from mast_trace.spans.telemetry import Telemetry

logger = logging.getLogger("mast_trace")
_A_DAY = 86400.0


@dataclass
class Session:
    """The state between `instrument()` and `uninstrument()`.

    Attributes:
        settings: as resolved when it began.
        provider: creates the spans.
        queue: delivers the spans; None when the application's provider exports them.
        telemetry: makes the spans of hand-made agents.
        frameworks: the instrumentations.
    """

    settings: SDKSettings
    provider: TracerProvider
    queue: SpanQueue | None
    telemetry: Telemetry
    frameworks: Frameworks

    def report(self) -> InstrumentReport:
        """Return which frameworks are recorded, and where spans are sent."""
        resource = getattr(self.provider, "resource", None)
        return InstrumentReport(
            frameworks=self.frameworks.report(),
            endpoint=masked(self.settings.endpoint.value) if self.queue else "",
            service_name=str(resource.attributes.get("service.name", "")) if resource else "",
        )


_lock = reentrant_lock()
_session: Session | None = None


def current_session() -> Session | None:
    """Return the active session, if there is one."""
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

    Arguments left out are read from OpenTelemetry's variables: ``OTEL_EXPORTER_OTLP_*`` for the
    collector, ``OTEL_SERVICE_NAME``, ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT``,
    ``OTEL_SDK_DISABLED``, ``OTEL_PYTHON_DISABLED_INSTRUMENTATIONS``. A second call adds the
    frameworks that are not on yet and changes nothing else.

    Args:
        frameworks: names of those to record, such as ``["langgraph", "ag2"]``; one that cannot be
            recorded is an error. All that are installed if absent; then a problem is a warning.
        endpoint: address of the collector; if set nowhere, of the one `mast-trace up` of this user that
            runs here, else ``http://127.0.0.1:4318``.
        headers: sent with each export, such as a bearer key.
        service_name: names this program; the script's name if set nowhere.
        tracer_provider: makes and exports the spans in place of mast-trace's own provider.
        capture_content: True records each text once, "full" repeats inputs on every span for
            other tools, False records hashes and sizes only.
        redact: applied to every text before it leaves the process.

    Returns:
        The status of each framework; print it.

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
    """Remove all patches, and send the spans that still wait. Idempotent."""
    global _session
    with _lock:
        session, _session = _session, None
    if session is not None:
        _end(session)


@contextmanager
def paused() -> Iterator[None]:
    """Suspend instrumentation for a block and restore it afterwards, whatever the block changed."""
    global _session  # noqa: PLW0603
    with _lock:
        before, _session = _session, None
        if before is not None:
            before.frameworks.pause()
            _leave()
    try:
        yield
    finally:
        uninstrument()
        redact_structures(None)
        with _lock:
            _session = before
            if before is not None:
                before.frameworks.resume(before.provider, before.settings.content)
                _enter(before.settings)


def flush(timeout: float = 10.0) -> bool:
    """Send every span that has ended, and say whether the collector accepted them all.

    Args:
        timeout: seconds to wait at most.

    Returns:
        True if all spans that ended since the previous flush were accepted (also if there were
        none); False if some were refused, dropped or are still waiting. With a ``tracer_provider``
        of the application, the result of its ``force_flush``.
    """
    from mast_trace.spans.guard import guarded

    session = _session
    if session is None:
        return True
    with guarded("sending spans"):
        seconds = _seconds(timeout)
        if session.queue is not None:
            return session.queue.flush(seconds)
        force_flush = getattr(session.provider, "force_flush", None)
        return bool(force_flush(int(seconds * 1000))) if force_flush else True
    return False


def _seconds(timeout: Any) -> float:
    """Return the timeout in seconds: the default for a value that is no number, and never endless."""
    from mast_trace.spans.guard import misused

    try:
        seconds = float(timeout)
    except Exception:  # noqa: BLE001  # conversions of the program's own may raise anything
        seconds = math.nan
    if math.isnan(seconds):
        misused("flush", f"timeout is no number but {type(timeout).__name__}; 10 s are taken")
        return 10.0
    return min(max(seconds, 0.0), _A_DAY)


def _enter(settings: SDKSettings) -> None:
    redact_structures(settings.content.clean if settings.content.redact else None)
    if settings.content.capture:
        from mast_trace.spans.human_input import note_inputs

        note_inputs()
    if settings.carry_runs.value:
        from mast_trace.spans.carried import carry_runs

        carry_runs()


def _leave() -> None:
    from mast_trace.spans.carried import carry_no_runs
    from mast_trace.spans.given_lessons import forget
    from mast_trace.spans.human_input import ignore_inputs

    ignore_inputs()
    carry_no_runs()
    forget()


def _begin(settings: SDKSettings, provider: TracerProvider | None) -> Session:
    # The SDK and the exporter load here, not when mast_trace is imported.
    from mast_trace._frameworks import Frameworks
    from mast_trace.environment import warn_of_unknown_variables
    from mast_trace.spans.guard import guarded
    from mast_trace.spans.run_state import forget
    from mast_trace.spans.telemetry import Telemetry

    forget()
    queue = None
    if replay := os.environ.get(PLAN_VARIABLE):
        from mast_trace.replay.program import play

        provider = play(replay)
    else:
        warn_of_unknown_variables()
    if provider is None:
        from mast_trace.delivery.provider import make_provider
        from mast_trace.delivery.span_queue import SpanQueue

        if settings.endpoint.origin == "default" and len(running := running_up.found()) > 1:
            logger.warning(
                "mast-trace: several `mast-trace up` run here, none is taken: %s",
                running_up.choice(running),
            )
        queue = SpanQueue.to_collector(settings)
        from mast_trace.delivery.termination import flush_at_termination

        with guarded("preparing for the end of the process"):
            flush_at_termination(on_sigterm=settings.flush_on_sigterm.value)
        provider = make_provider(settings.service_name.value, queue)
    telemetry = Telemetry(provider, settings.content)
    _enter(settings)
    return Session(settings, provider, queue, telemetry, Frameworks())


def _end(session: Session) -> None:
    session.frameworks.uninstrument()
    _leave()
    if session.queue is not None:
        from mast_trace.delivery.termination import leave_termination

        leave_termination()
        session.queue.shutdown()
