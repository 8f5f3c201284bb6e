"""The steps of a request, on routes of their own."""

import dataclasses
import io
import json
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import pytest
import webob

from placement import app, conf, errors, policy
from placement.operation import Call, context_of
from placement_foundation.http.application import Application, Table
from placement_foundation.http.operation import Operation, Reply
from placement_foundation.http.schema import Schema
from placement_foundation.http.version import always
from tests import settings

NAMED = Schema({"type": "object", "required": ["name"]})
Serve = Callable[..., webob.Response]


def make(table: Table) -> Application:
    """Return an application with the operations of a table."""
    return Application(
        dataclasses.replace(app.SERVICE, routes=table),
        mock.Mock(),
        context_of(conf.Settings()),
        policy.make_enforcer(settings.make_config()),
    )


@pytest.fixture
def serve() -> Serve:
    """Give a function that sends a request to one operation at /thing/{name}."""

    def send(
        operation: Operation,
        method: str = "GET",
        **kwargs: Any,
    ) -> webob.Response:
        application = make({"/thing/{name}": {method: operation}})
        request = webob.Request.blank("/thing/cow", method=method, **kwargs)
        request.headers["openstack-api-version"] = "placement latest"
        request.headers.setdefault("accept", "application/json")
        return request.get_response(application)

    return send


def detail(response: webob.Response) -> str:
    return str(json.loads(response.body)["errors"][0]["detail"])


def answer(call: Call[Any]) -> Reply:
    return Reply({"body": call.body})


def operation(**kwargs: Any) -> Operation:
    options = {"handler": always(answer), "policy": None, **kwargs}
    options.setdefault("reply", always(lambda value, view: value))
    return Operation(**options)


def test_a_bug_of_ours_is_reported_in_neutral_words(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(call: Call[Any]) -> Reply:
        raise RuntimeError("a secret")

    with caplog.at_level(logging.ERROR):
        response = serve(operation(handler=always(fail)))
    assert response.status_int == 500
    assert response.content_type == "application/json"
    assert "openstack-api-version" not in response.headers
    assert "vary" not in response.headers
    assert b"secret" not in response.body
    assert "Placement API unexpected error: a secret" in caplog.text
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("length", ["", "0", "-5"])
def test_an_empty_length_means_no_body(serve: Serve, length: str) -> None:
    environ = {"CONTENT_LENGTH": length, "CONTENT_TYPE": "application/json"}
    response = serve(operation(body=always(NAMED)), method="PUT", environ=environ)
    assert "Malformed JSON" in detail(response)


def test_a_length_must_be_a_number(serve: Serve) -> None:
    response = serve(operation(), environ={"CONTENT_LENGTH": "many"})
    assert response.status_int == 400
    assert "content-length header must be an integer" in detail(response)


def test_a_body_that_ends_early_is_refused(serve: Serve) -> None:
    environ = {
        "CONTENT_LENGTH": "99",
        "CONTENT_TYPE": "application/json",
        "wsgi.input": io.BytesIO(b'{"name": "x"}'),
    }
    response = serve(operation(body=always(NAMED)), method="PUT", environ=environ)
    assert response.status_int == 400
    assert "Malformed JSON" in detail(response)


def test_a_body_in_chunks_is_read(serve: Serve) -> None:
    environ = {
        "HTTP_TRANSFER_ENCODING": "chunked",
        "wsgi.input_terminated": True,
        "CONTENT_TYPE": "application/json",
    }
    request_body = b'{"name": "x"}'
    response = serve(
        operation(body=always(NAMED)),
        method="PUT",
        environ={**environ, "wsgi.input": io.BytesIO(request_body)},
    )
    assert json.loads(response.body)["body"] == {"name": "x"}


def test_one_heavy_request_is_answered_at_a_time() -> None:
    inside, leave = threading.Semaphore(0), threading.Event()

    def hang(call: Call[Any]) -> Reply:
        inside.release()
        assert leave.wait(30)
        return Reply({})

    reply = always(lambda value, view: value)
    table = {
        "/heavy": {
            "GET": Operation(
                handler=always(hang), policy=None, reply=reply, heavy=True
            ),
            "POST": Operation(
                handler=always(answer),
                policy=None,
                body=always(NAMED),
                reply=reply,
                heavy=lambda query, body: len(body["name"]) > 3,
            ),
        },
        "/light": {"GET": Operation(handler=always(answer), policy=None, reply=reply)},
    }
    application = make(table)

    def get(path: str, **kwargs: Any) -> webob.Response:
        request = webob.Request.blank(path, accept="application/json", **kwargs)
        request.headers["openstack-api-version"] = "placement latest"
        return request.get_response(application)

    def post(name: str) -> webob.Response:
        body = json.dumps({"name": name}).encode()
        return get("/heavy", method="POST", body=body, content_type="application/json")

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(get, "/heavy")
        assert inside.acquire(timeout=30)
        try:
            refused = get("/heavy")
            assert refused.status_int == 503
            assert refused.headers["retry-after"] == "2"
            [error] = json.loads(refused.body)["errors"]
            assert error["code"] == "placement.busy"
            assert post("much").status_int == 503
            assert post("few").status_int == 200
            assert post("").status_int == 200
            assert get("/light").status_int == 200
        finally:
            leave.set()
        assert first.result().body == b"{}"
    assert get("/heavy").body == b"{}"
    assert post("much").status_int == 200


def test_a_heavy_request_that_fails_makes_room_for_the_next() -> None:
    def fail(call: Call[Any]) -> Reply:
        raise errors.BadRequest("no")

    row = Operation(handler=always(fail), policy=None, heavy=True)
    application = make({"/heavy": {"GET": row}})
    for _ in range(3):
        request = webob.Request.blank("/heavy")
        assert request.get_response(application).status_int == 400


def test_without_keystone_only_the_root_itself_is_open() -> None:
    assert app.SURROUNDINGS.identify({"PATH_INFO": "/"})
    assert not app.SURROUNDINGS.identify({"PATH_INFO": ""})
    assert "" in app.SURROUNDINGS.open_paths
