"""The tracer provider of mast-trace: its own, never the global one."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor


def make_provider(service_name: str, processor: SpanProcessor) -> TracerProvider:
    """Return a provider whose spans go to ``processor``.

    Args:
        service_name: as set by the user; empty for the name of the program.
        processor: receives each span that ends.
    """
    attributes = {
        "telemetry.distro.name": "mast-trace",
        "telemetry.distro.version": version("mast-trace"),
    }
    if service_name:
        attributes[SERVICE_NAME] = service_name
    # Resource.create reads OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME.
    resource = Resource.create(attributes)
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: program_name()}))
    # The application's sampling decision about a request says nothing about an agent's run: with
    # the SDK's default (follow the parent) a run inside an unsampled request would be lost.
    sampler = None if "OTEL_TRACES_SAMPLER" in os.environ else ALWAYS_ON
    provider = TracerProvider(sampler=sampler, resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return provider


def program_name() -> str:
    """Return the name of the running script or module, for programs that name no service."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name:  # python -m package.module
        return str(spec.name).removesuffix(".__main__")
    script = Path(sys.argv[0] if sys.argv else "").stem
    return script if script not in {"", "-", "-c"} else "python"
