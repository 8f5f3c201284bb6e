"""Traces of requests, as OpenTelemetry gets them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import webob
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from placement.objects import resource_class
from placement_foundation.observing import telemetry, tracing
from tests import client, programs

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    observer = tracing.Tracing(lambda: provider)
    telemetry.add(observer)
    yield exporter
    telemetry.remove(observer)
    provider.shutdown()


def ask(application: "WSGIApplication", path: str, **headers: str) -> tuple[int, str]:
    """Return the status and the request id."""
    request = webob.Request.blank(path)
    request.headers["x-auth-token"] = "admin"
    request.headers["openstack-api-version"] = "placement latest"
    request.headers.update(headers)
    response = request.get_response(application)
    return response.status_int, response.headers["x-openstack-request-id"]


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def parent(span: ReadableSpan) -> int | None:
    return span.parent and span.parent.span_id


def test_a_request_is_a_span_with_its_steps_beneath(
    application: "WSGIApplication", exporter: InMemorySpanExporter
) -> None:
    client.Client(application).make_provider(VCPU=4)
    exporter.clear()
    status, request_id = ask(application, "/allocation_candidates?resources=VCPU:1")
    spans = by_name(exporter)
    whole = spans["GET /allocation_candidates"]
    assert whole.kind is SpanKind.SERVER
    assert whole.parent is None
    assert whole.attributes == {
        "openstack.request_id": request_id,
        "http.request.method": "GET",
        "http.route": "/allocation_candidates",
        "http.response.status_code": status,
    }
    assert whole.status.status_code is StatusCode.UNSET
    identity = whole.get_span_context()
    assert identity
    for name in ("transaction", "search", "rendering"):
        assert parent(spans[name]) == identity.span_id
    transaction = spans["transaction"].get_span_context()
    assert transaction
    assert parent(spans["load"]) == transaction.span_id


def test_the_trace_of_the_caller_continues(
    application: "WSGIApplication", exporter: InMemorySpanExporter
) -> None:
    ask(application, "/traits", traceparent=f"00-{TRACE}-{CALLER}-01")
    whole = by_name(exporter)["GET /traits"]
    assert whole.parent
    assert f"{whole.parent.span_id:016x}" == CALLER
    assert f"{whole.parent.trace_id:032x}" == TRACE


@pytest.mark.parametrize("header", ["cow", f"00-{TRACE}-{'0' * 16}-01", ""])
def test_a_malformed_header_starts_a_new_trace(
    application: "WSGIApplication", exporter: InMemorySpanExporter, header: str
) -> None:
    assert ask(application, "/traits", traceparent=header)[0] == 200
    assert by_name(exporter)["GET /traits"].parent is None


def test_a_refusal_is_not_an_error(
    application: "WSGIApplication", exporter: InMemorySpanExporter
) -> None:
    ask(application, "/resource_providers/cow")
    ask(application, "/cows")
    spans = by_name(exporter)
    refused = spans["GET /resource_providers/{uuid}"]
    assert refused.attributes
    assert refused.attributes["http.response.status_code"] == 404
    assert refused.status.status_code is StatusCode.UNSET
    assert spans["transaction"].status.status_code is StatusCode.UNSET
    assert not spans["transaction"].events
    assert "GET none" in spans


def test_a_bug_of_ours_is_one(
    application: "WSGIApplication",
    exporter: InMemorySpanExporter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resource_class, "list_all", None)
    assert ask(application, "/resource_classes")[0] == 500
    span = by_name(exporter)["GET /resource_classes"]
    assert span.status.status_code is StatusCode.ERROR


def test_work_outside_of_requests_makes_no_trace(
    exporter: InMemorySpanExporter,
) -> None:
    with telemetry.step("transaction"):
        pass
    assert not exporter.get_finished_spans()


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318",
                "OTEL_SDK_DISABLED": "true",
            },
            False,
        ),
    ],
)
def test_the_environment_switches_it_on(
    environment: dict[str, str], wanted: bool
) -> None:
    assert tracing.is_wanted(environment) is wanted


def test_a_library_that_is_not_installed_is_reported_and_not_needed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tracing.switch_on({"OTEL_TRACES_EXPORTER": "cow"})
    assert "there is no exporter cow" in caplog.text


SERVE = """
import sys
import webob
for name in {forbidden!r}:
    sys.modules[name] = None
from placement import app
from tests.settings import make_config
config = make_config({{("placement_database", "sync_on_startup"): True}})
application = app.start(config)
print(webob.Request.blank("/").get_response(application).status_int)
"""


def serve(home: Path, *forbidden: str, **variables: str) -> str:
    """Serve a request in a process of its own, and return what it printed.

    :param forbidden: packages whose import fails
    """
    done = subprocess.run(
        [sys.executable, "-c", SERVE.format(forbidden=forbidden)],
        cwd=Path(__file__).parents[2],
        env={**programs.environment(home), **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


@pytest.mark.embedded
@pytest.mark.lengthy
def test_nothing_of_it_is_imported_while_it_is_off(tmp_path: Path) -> None:
    # oslo.middleware looks for one of them by itself, and does without.
    printed = serve(tmp_path, "opentelemetry", "prometheus_client")
    assert printed.splitlines() == ["200"]


@pytest.mark.embedded
@pytest.mark.lengthy
def test_a_service_sends_where_the_environment_says(tmp_path: Path) -> None:
    printed = serve(tmp_path, OTEL_SERVICE_NAME="here", OTEL_TRACES_EXPORTER="console")
    assert printed.startswith("200\n")
    assert '"name": "GET /"' in printed
    assert '"service.name": "here"' in printed
