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
import sqlalchemy as sa
import webob

from placement import app, conf, errors, policy
from placement.operation import Call, context_of
from placement_foundation.http.application import Application, Table
from placement_foundation.http.operation import (
    Deviation,
    Operation,
    Reply,
    reading,
    writing,
)
from placement_foundation.http.schema import Schema
from placement_foundation.http.version import ByVersion, always, since
from tests import settings

NAMED = Schema({"type": "object", "required": ["name"]})


class NoDatabase:
    """Runs work without a connection, and notes how."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    def read(self, work: Callable[[Any], Reply]) -> Reply:
        self.runs.append("read")
        return work(None)

    def write(self, work: Callable[[Any], Reply], *, attempts: int) -> Reply:
        self.runs.append("write")
        return work(mock.Mock())


@pytest.fixture
def database() -> NoDatabase:
    return NoDatabase()


def make(table: Table, database: NoDatabase) -> Application:
    """Return an application with the operations of a table."""
    return Application(
        dataclasses.replace(app.SERVICE, routes=table),
        database,  # type: ignore[arg-type]
        context_of(conf.Settings()),
        policy.make_enforcer(settings.make_config()),
    )


@pytest.fixture
def serve(
    database: NoDatabase,
) -> Callable[..., webob.Response]:
    """Give a function that sends a request to one operation at /thing/{name}."""

    def send(
        operation: Operation,
        method: str = "GET",
        version: str = "latest",
        **kwargs: Any,
    ) -> webob.Response:
        application = make({"/thing/{name}": {method: operation}}, database)
        request = webob.Request.blank("/thing/cow", method=method, **kwargs)
        request.headers["openstack-api-version"] = f"placement {version}"
        request.headers.setdefault("accept", "application/json")
        return request.get_response(application)

    return send


def detail(response: webob.Response) -> str:
    return str(json.loads(response.body)["errors"][0]["detail"])


def answer(call: Call[Any], **flags: bool) -> Reply:
    return Reply({"body": call.body, "path": dict(call.path), "flags": flags})


def missing(connection: sa.Connection, name: str) -> None:
    raise errors.NotFound(f"no {name}")


def operation(**kwargs: Any) -> Operation:
    options = {"handler": always(answer), "policy": None, **kwargs}
    options.setdefault("reply", always(lambda value, view: value))
    return Operation(**options)


def test_a_bug_of_ours_is_reported_in_neutral_words(
    serve: Callable[..., webob.Response], caplog: pytest.LogCaptureFixture
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


def test_reading_and_writing_are_different_transactions(
    serve: Callable[..., webob.Response], database: NoDatabase
) -> None:
    def work(call: Call[Any], connection: object) -> Reply:
        return Reply({})

    assert serve(operation(handler=always(reading(work)))).status_int == 200
    assert serve(operation(handler=always(writing(work)))).status_int == 200
    assert database.runs == ["read", "write"]


def test_a_body_that_is_wrong_locks_nothing(
    serve: Callable[..., webob.Response], database: NoDatabase
) -> None:
    wants = operation(body=always(NAMED), subject=always(lambda connection, name: name))
    response = serve(wants, method="PUT", body=b"{}", content_type="application/json")
    assert response.status_int == 400
    assert database.runs == ["read"]


def test_without_a_subject_it_does_not_even_ask(
    serve: Callable[..., webob.Response], database: NoDatabase
) -> None:
    assert (
        serve(
            operation(body=always(NAMED)),
            method="PUT",
            body=b"{}",
            content_type="application/json",
        ).status_int
        == 400
    )
    assert database.runs == []


def test_a_handler_that_opens_no_transaction_needs_no_database(
    serve: Callable[..., webob.Response], database: NoDatabase
) -> None:
    assert serve(operation()).status_int == 200
    assert database.runs == []


def test_a_missing_subject_comes_before_a_wrong_body(
    serve: Callable[..., webob.Response],
) -> None:
    wants = operation(body=always(NAMED), subject=always(missing))
    assert detail(
        serve(wants, method="PUT", body=b"{}", content_type="application/json")
    ).endswith("no cow  ")


def test_a_row_may_look_at_the_body_first(
    serve: Callable[..., webob.Response],
) -> None:
    wants = operation(
        body=always(NAMED), subject=always(missing), deviation=Deviation.BODY_FIRST
    )
    assert "'name' is a required property" in detail(
        serve(wants, method="PUT", body=b"{}", content_type="application/json")
    )


def test_before_its_first_version_an_operation_is_not_found(
    serve: Callable[..., webob.Response],
) -> None:
    wants = operation(handler=since(1, 5, answer))
    assert serve(wants, version="1.4").status_int == 404
    assert serve(wants, version="1.5").status_int == 200


def test_a_row_may_say_what_is_answered_before(
    serve: Callable[..., webob.Response],
) -> None:
    wants = operation(handler=since(1, 5, answer), absent=errors.MethodNotAllowed)
    response = serve(wants, version="1.4")
    assert response.status_int == 405
    assert "allow" not in response.headers


def test_the_version_comes_before_media_types(
    serve: Callable[..., webob.Response],
) -> None:
    wants = operation(handler=since(1, 5, answer))
    headers = {"accept": "text/plain"}
    assert serve(wants, version="1.4", headers=headers).status_int == 404
    assert serve(wants, version="1.5", headers=headers).status_int == 406


def test_a_row_may_look_at_media_types_first(
    serve: Callable[..., webob.Response],
) -> None:
    wants = operation(
        handler=since(1, 5, answer),
        body=since(1, 5, NAMED),
        deviation=Deviation.MEDIA_TYPE_FIRST,
    )
    assert serve(wants, method="PUT", version="1.4").status_int == 415


def test_a_body_is_read_only_where_there_is_a_schema(
    serve: Callable[..., webob.Response],
) -> None:
    wants = operation(body=ByVersion({(1, 2): NAMED, (1, 7): None}))
    old = serve(
        wants,
        method="PUT",
        version="1.6",
        body=b'{"name": "x"}',
        content_type="application/json",
    )
    assert json.loads(old.body)["body"] == {"name": "x"}
    new = serve(
        wants, method="PUT", version="1.7", body=b"what", content_type="text/plain"
    )
    assert json.loads(new.body)["body"] is None


def test_flags_follow_the_version(serve: Callable[..., webob.Response]) -> None:
    wants = operation(flags={"bold": (1, 5)})
    flags = [
        json.loads(serve(wants, version=version).body)["flags"]
        for version in ("1.4", "1.5")
    ]
    assert flags == [{"bold": False}, {"bold": True}]


def test_what_was_made_is_created_and_located(
    serve: Callable[..., webob.Response],
) -> None:
    def make(call: Call[Any]) -> Reply:
        return Reply(location="/thing/cow", created=True)

    wants = operation(handler=always(make), status=always(204), reply=None)
    response = serve(wants, method="PUT", environ={"SCRIPT_NAME": "/placement"})
    assert response.status_int == 201
    assert response.headers["location"] == "http://localhost/placement/thing/cow"
    assert response.headers["content-length"] == "0"
    assert "content-type" not in response.headers


def test_caching_headers_come_with_their_version(
    serve: Callable[..., webob.Response],
) -> None:
    wants = operation(dated=(1, 15))
    old, new = (serve(wants, version=version) for version in ("1.14", "1.15"))
    assert "cache-control" not in old.headers
    assert new.headers["cache-control"] == "no-cache"
    assert "last-modified" not in new.headers


@pytest.mark.parametrize("length", ["", "0", "-5"])
def test_an_empty_length_means_no_body(
    serve: Callable[..., webob.Response], length: str
) -> None:
    environ = {"CONTENT_LENGTH": length, "CONTENT_TYPE": "application/json"}
    response = serve(operation(body=always(NAMED)), method="PUT", environ=environ)
    assert "Malformed JSON" in detail(response)


def test_a_length_must_be_a_number(serve: Callable[..., webob.Response]) -> None:
    response = serve(operation(), environ={"CONTENT_LENGTH": "many"})
    assert response.status_int == 400
    assert "content-length header must be an integer" in detail(response)


def test_a_body_without_a_type_is_refused(
    serve: Callable[..., webob.Response],
) -> None:
    response = serve(operation(), environ={"CONTENT_LENGTH": "2", "CONTENT_TYPE": ""})
    assert response.status_int == 400
    assert "content-type header required when content-length > 0" in detail(response)


def test_a_body_that_ends_early_is_refused(
    serve: Callable[..., webob.Response],
) -> None:
    environ = {
        "CONTENT_LENGTH": "99",
        "CONTENT_TYPE": "application/json",
        "wsgi.input": io.BytesIO(b'{"name": "x"}'),
    }
    response = serve(operation(body=always(NAMED)), method="PUT", environ=environ)
    assert response.status_int == 400
    assert "Malformed JSON" in detail(response)


def test_a_body_in_chunks_is_read(serve: Callable[..., webob.Response]) -> None:
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


def test_one_heavy_request_is_answered_at_a_time(database: NoDatabase) -> None:
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
    application = make(table, database)

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


def test_a_heavy_request_that_fails_makes_room_for_the_next(
    database: NoDatabase,
) -> None:
    def fail(call: Call[Any]) -> Reply:
        raise errors.BadRequest("no")

    row = Operation(handler=always(fail), policy=None, heavy=True)
    application = make({"/heavy": {"GET": row}}, database)
    for _ in range(3):
        request = webob.Request.blank("/heavy")
        assert request.get_response(application).status_int == 400


def test_without_keystone_only_the_root_itself_is_open() -> None:
    assert app.SURROUNDINGS.identify({"PATH_INFO": "/"})
    assert not app.SURROUNDINGS.identify({"PATH_INFO": ""})
    assert "" in app.SURROUNDINGS.open_paths
