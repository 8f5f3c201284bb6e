"""What the log says of each request."""

import json
import logging
import re
from typing import TYPE_CHECKING

import pytest
import webob
from oslo_log import formatters

from tests import settings

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

LOGGER = "placement.requestlog"
INBOUND = "req-5b7b9d2c-8f3e-4c1d-9a76-1f5f0a8f2b11"


@pytest.fixture(autouse=True)
def everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, LOGGER)


def ask(application: "WSGIApplication", path: str, **headers: str) -> webob.Response:
    request = webob.Request.blank(path, environ={"REMOTE_ADDR": "192.0.2.7"})
    request.headers["x-auth-token"] = "admin"
    request.headers.update(
        {name.replace("_", "-"): text for name, text in headers.items()}
    )
    return request.get_response(application)


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == LOGGER and record.levelno == level
    ]


def test_a_request_is_one_line(
    application: "WSGIApplication", caplog: pytest.LogCaptureFixture
) -> None:
    response = ask(
        application,
        "/resource_providers?name=a",
        openstack_api_version="placement 1.39",
    )
    assert lines(caplog, logging.INFO) == [
        '192.0.2.7 "GET /resource_providers?name=a" status: 200 '
        f"len: {response.content_length} microversion: 1.39"
    ]


def test_its_start_is_a_line_for_debugging(
    application: "WSGIApplication", caplog: pytest.LogCaptureFixture
) -> None:
    ask(application, "/traits")
    assert lines(caplog, logging.DEBUG) == ['Starting request: 192.0.2.7 "GET /traits"']


def test_the_mount_is_part_of_the_line(
    application: "WSGIApplication", caplog: pytest.LogCaptureFixture
) -> None:
    request = webob.Request.blank("/", environ={"SCRIPT_NAME": "/placement"})
    request.get_response(application)
    (line,) = lines(caplog, logging.INFO)
    assert line.startswith('- "GET /placement/" status: 200')


def test_a_version_that_was_not_agreed_on_is_a_dash(
    application: "WSGIApplication", caplog: pytest.LogCaptureFixture
) -> None:
    ask(application, "/", openstack_api_version="placement 9.9")
    (line,) = lines(caplog, logging.INFO)
    assert line.endswith("microversion: -")
    assert "status: 406" in line


def test_the_same_goes_for_refused_callers(
    application: "WSGIApplication", caplog: pytest.LogCaptureFixture
) -> None:
    webob.Request.blank("/traits").get_response(application)
    (line,) = lines(caplog, logging.INFO)
    assert "status: 401" in line
    assert line.endswith("microversion: -")


def test_each_request_has_an_id_of_its_own(application: "WSGIApplication") -> None:
    ids = [ask(application, "/").headers["x-openstack-request-id"] for _ in range(2)]
    assert ids[0] != ids[1]
    assert all(re.fullmatch(r"req-[0-9a-f-]{36}", one) for one in ids)


def test_an_id_of_the_caller_is_never_sent_back(application: "WSGIApplication") -> None:
    response = ask(application, "/cows", x_openstack_request_id=INBOUND)
    own = response.headers["x-openstack-request-id"]
    assert own != INBOUND
    assert json.loads(response.body)["errors"][0]["request_id"] == own


def test_an_id_of_the_caller_reaches_the_log_if_it_is_one(
    application: "WSGIApplication",
) -> None:
    for sent, known in ((INBOUND, INBOUND), (INBOUND.upper(), None), ("cow", None)):
        request = webob.Request.blank("/")
        request.headers["x-openstack-request-id"] = sent
        request.get_response(application)
        asking = request.environ["placement.context"]
        assert asking.global_request_id == known
        assert asking.request_id == request.environ["openstack.request_id"]


def test_a_path_cannot_forge_a_line(
    application: "WSGIApplication", caplog: pytest.LogCaptureFixture
) -> None:
    ask(application, "/cows%0D%0A192.0.2.8%20GET")
    (line,) = lines(caplog, logging.INFO)
    assert '"GET /cows%0D%0A192.0.2.8 GET" status: 404' in line


def test_a_line_of_json_has_fields(
    application: "WSGIApplication", caplog: pytest.LogCaptureFixture
) -> None:
    response = ask(
        application,
        "/resource_providers/cow/traits",
        openstack_api_version="placement 1.39",
        x_auth_token="ann:blue",
        x_roles="admin",
    )
    record = next(one for one in caplog.records if one.levelno == logging.INFO)
    line = json.loads(formatters.JSONFormatter().format(record))
    assert line["message"].startswith('192.0.2.7 "GET /resource_providers/cow/traits"')
    duration = line["extra"].pop("duration")
    assert 0 < duration < 60
    # What the request was sent with is in the context as well, the token masked.
    assert line["context"]["auth_token"] == "***"
    # That one is of oslo.log.
    del line["extra"]["version"]
    assert line["extra"] == {
        "request_id": response.headers["x-openstack-request-id"],
        "operation": "/resource_providers/{uuid}/traits",
        "method": "GET",
        "status": 404,
        "microversion": "1.39",
        "user": "ann",
        "project": "blue",
    }


def test_no_line_shows_the_request_before(
    application: "WSGIApplication", caplog: pytest.LogCaptureFixture
) -> None:
    ask(application, "/", x_openstack_request_id=INBOUND)
    ask(application, "/traits")
    caplog.clear()
    caplog.handler.setFormatter(
        formatters.ContextFormatter(config=settings.make_config())
    )
    stranger = webob.Request.blank("/traits").get_response(application)
    own = stranger.headers["x-openstack-request-id"]
    assert re.findall(r"\[.*?\]", caplog.text) == [f"[None {own} - - - - - -]"] * 2
