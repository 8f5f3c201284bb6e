"""Traces: what a request spent its time on, for OpenTelemetry.

The environment variables of OpenTelemetry switch traces on and name their receiver.
Without these, nothing of OpenTelemetry is imported.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

from oslo_log import log

from placement_foundation import context
from placement_foundation.observing import telemetry

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment
    from opentelemetry.sdk.trace import TracerProvider

LOG = log.getLogger(__name__)

SERVICE = "placement"
EXPORTERS = "OTEL_TRACES_EXPORTER"
# Any of these variables switches traces on.
WANTED = (
    EXPORTERS,
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
)
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
GROUP = "opentelemetry_traces_exporter"


class Tracing(telemetry.Observer):
    """Makes a span of each request, and of its steps.

    :param make_provider: called by each process for itself, at its first request, since
        a provider has a thread that sends spans
    """

    def __init__(self, make_provider: Callable[[], "TracerProvider"]) -> None:
        from opentelemetry import propagate, trace

        self._trace = trace
        self._extract = propagate.extract
        self._tracer = functools.cache(lambda: make_provider().get_tracer(SERVICE))

    def request(
        self, environment: "WSGIEnvironment"
    ) -> contextlib.AbstractContextManager[object]:
        """Return the span of a request, beneath that of the caller if it sent one."""
        return self._tracer().start_as_current_span(
            telemetry.method_of(environment),
            context=self._extract(_headers(environment)),
            kind=self._trace.SpanKind.SERVER,
            attributes={"openstack.request_id": environment[context.REQUEST_ID]},
            record_exception=False,
        )

    def step(self, name: str) -> contextlib.AbstractContextManager[object]:
        """Return the span of a step, if there is one of a request."""
        if not self._trace.get_current_span().get_span_context().is_valid:
            return contextlib.nullcontext()
        # An error may be the right answer. The span of the request says if it is not.
        return self._tracer().start_as_current_span(
            name, record_exception=False, set_status_on_exception=False
        )

    def answer(self, operation: str, method: str, status: str) -> None:
        """Name the span of the request, and record how it was answered."""
        span = self._trace.get_current_span()
        span.update_name(f"{method} {operation}")
        span.set_attributes(
            {
                "http.request.method": method,
                "http.route": operation,
                "http.response.status_code": int(status),
            }
        )
        if int(status) >= 500:
            span.set_status(self._trace.StatusCode.ERROR)


def _headers(environment: "WSGIEnvironment") -> dict[str, str]:
    return {
        name.removeprefix("HTTP_").replace("_", "-").lower(): value
        for name, value in environment.items()
        if name.startswith("HTTP_")
    }


def switch_on(environment: Mapping[str, str] = os.environ) -> None:
    """Begin to trace, if the environment switches traces on.

    If a package for it is not installed, the service serves without traces.
    """
    if not is_wanted(environment):
        return
    try:
        exporters = [_find(name) for name in _names(environment)]
        telemetry.add(Tracing(lambda: _make_provider(exporters)))
    except (ImportError, LookupError) as exc:
        LOG.warning('no traces: install the packages for them (".[otel]"): %s', exc)


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Return whether the environment switches traces on."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if environment.get(EXPORTERS, "").strip().lower() == "none":
        return False
    return any(environment.get(name) for name in WANTED)


def _names(environment: Mapping[str, str]) -> list[str]:
    """Return the names of the requested exporters."""
    protocol = next(
        (environment[name] for name in PROTOCOLS if environment.get(name)), "http"
    )
    otlp = f"otlp_proto_{protocol.partition('/')[0]}"
    exporters = environment.get(EXPORTERS) or "otlp"
    names = (name.strip() for name in exporters.split(","))
    return [otlp if name == "otlp" else name for name in names]


def _find(name: str) -> Callable[[], Any]:
    """Return the factory of an exporter.

    :raises LookupError: no exporter of that name is installed
    """
    for entry_point in metadata.entry_points(group=GROUP, name=name):
        exporter: Callable[[], Any] = entry_point.load()
        return exporter
    raise LookupError(f"there is no exporter {name}")


def _make_provider(exporters: list[Callable[[], Any]]) -> "TracerProvider":
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # The environment may name the service otherwise.
    named = Resource.create({"service.name": SERVICE}).merge(
        OTELResourceDetector().detect()
    )
    provider = TracerProvider(resource=named)
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter()))
    return provider
