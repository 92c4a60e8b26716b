"""The tracer provider of mast-trace, separate from the global one."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler

if TYPE_CHECKING:
    from opentelemetry.trace import Span


@runtime_checkable
class RunProcessor(Protocol):
    """A span processor that is also notified when a run begins; `SpanQueue` is one."""

    def run_started(self, root: ReadableSpan) -> None:
        """Take the root of a run that has begun."""
        ...


class RunProvider(TracerProvider):
    """A tracer provider that also reports the beginning of a run; span processors report ends only."""

    def __init__(
        self, processor: SpanProcessor, resource: Resource, sampler: Sampler | None
    ) -> None:
        # The SDK would cut a text inside of its JSON; mast-trace cuts texts before and keeps both
        # ends.
        uncut = SpanLimits(
            max_attribute_length=SpanLimits.UNSET, max_span_attribute_length=SpanLimits.UNSET
        )
        super().__init__(
            sampler=sampler, resource=resource, shutdown_on_exit=False, span_limits=uncut
        )
        self.add_span_processor(processor)
        self._runs = processor if isinstance(processor, RunProcessor) else None

    def run_started(self, root: Span) -> None:
        """Pass the root of a run on."""
        if self._runs is not None and isinstance(root, ReadableSpan):
            self._runs.run_started(root)


def make_provider(service_name: str, processor: SpanProcessor) -> RunProvider:
    """Return a provider that passes its spans to ``processor``.

    Args:
        service_name: as set by the user; empty for the name of the program.
        processor: receives each span that ends.
    """
    attributes = {"telemetry.distro.name": "mast-trace"}
    with suppress(PackageNotFoundError):  # a frozen program may have left the metadata out
        attributes["telemetry.distro.version"] = version("mast-trace")
    if service_name:
        attributes[SERVICE_NAME] = service_name
    # Resource.create reads OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME.
    resource = Resource.create(attributes)
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: program_name()}))
    # The application's sampling decision about a request must not apply to an agent's run: with the
    # SDK's default (follow the parent) a run inside an unsampled request would be lost.
    sampler = None if "OTEL_TRACES_SAMPLER" in os.environ else ALWAYS_ON
    return RunProvider(processor, resource, sampler)


def program_name() -> str:
    """Return the name of the running script or module, for programs that name no service."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name:  # python -m package.module
        return str(spec.name).removesuffix(".__main__")
    script = Path(sys.argv[0] if sys.argv else "").stem
    return script if script not in {"", "-", "-c"} else "python"
