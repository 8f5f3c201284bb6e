"""The address that clients see, whatever they and proxies say of it."""

import re
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import webob
from hypothesis import strategies
from oslo_middleware import http_proxy_to_wsgi

from placement_foundation.http import answer
from tests import settings

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

SERVER = {
    "wsgi.url_scheme": "http",
    "SERVER_NAME": "server.example",
    "SERVER_PORT": "8778",
    "HTTP_HOST": "inside.example:8778",
    "SCRIPT_NAME": "",
    "PATH_INFO": "/traits",
    "REMOTE_ADDR": "10.0.0.1",
    "REQUEST_METHOD": "GET",
}
BEHIND = {("oslo_middleware", "enable_proxy_headers_parsing"): True}
HEADERS = ("FORWARDED", "X_FORWARDED_PROTO", "X_FORWARDED_HOST", "X_FORWARDED_PREFIX")
# What a header can have: bytes, as characters of Latin-1.
SENT = strategies.text(strategies.characters(max_codepoint=255)) | strategies.lists(
    strategies.sampled_from(['"', ",", ";", "=", "\\", "host", "proto", "https", "/"])
).map("".join)
ADDRESS = re.compile(r"https?://[\w.~!$&'()*+;=%:\[\]-]+(/[\w/.~!$&'()*+,;=:@%-]*)?")


CONFIG = settings.make_config(BEHIND)


def behind(**headers: str) -> "WSGIEnvironment":
    """Return the environment that an application gets behind a proxy."""
    seen: list[WSGIEnvironment] = []

    def application(environment: "WSGIEnvironment", start_response: Any) -> list[bytes]:
        seen.append(environment)
        start_response("200 OK", [])
        return []

    sent = {f"HTTP_{name.upper()}": value for name, value in headers.items()}
    webob.Request({**SERVER, **sent}).get_response(
        http_proxy_to_wsgi.HTTPProxyToWSGI(application, CONFIG)
    )
    return seen[0]


def root_behind(**headers: str) -> str:
    return answer.root(behind(**headers))


@pytest.mark.parametrize(
    ("host", "root"),
    [
        ("cloud.example:9000", "http://cloud.example:9000"),
        ("cloud.example:80", "http://cloud.example"),
        ("cloud.example:443", "http://cloud.example:443"),
        ("cloud.example:", "http://cloud.example"),
        ("[2001:db8::80]", "http://[2001:db8::80]"),
        ("[2001:db8::80]:80", "http://[2001:db8::80]"),
    ],
)
def test_the_host_is_that_of_the_header(host: str, root: str) -> None:
    assert answer.root({**SERVER, "HTTP_HOST": host}) == root


@pytest.mark.parametrize(
    "host", ["", ":80", "\xe9", "a b", "a/b", "a?b", "a#b", "u@a", "a:b", "a\0"]
)
def test_the_name_of_the_server_stands_for_what_is_no_host(host: str) -> None:
    given = {**SERVER, "HTTP_HOST": host}
    assert answer.root(given) == "http://server.example:8778"


@pytest.mark.parametrize(
    ("mount", "prefix"),
    [
        ("/placement", "/placement"),
        ("/a b", "/a%20b"),
        ("/a\r\n", "/a%0D%0A"),
        ("/50%", "/50%25"),
        # UTF-8, and what is not.
        ("/\xc3\xa9", "/%C3%A9"),
        ("/\xe9", "/%E9"),
        # Decoded already, without a server.
        ("/\u20ac", "/%3F"),
    ],
)
def test_a_mount_is_encoded(mount: str, prefix: str) -> None:
    given = {**SERVER, "SCRIPT_NAME": mount}
    assert answer.prefix(given) == prefix
    assert answer.url(given) == f"http://inside.example:8778{prefix}/traits"


@pytest.mark.parametrize(
    ("said", "prefix"),
    [
        ("/placement", "/placement"),
        ("placement/", "/placement"),
        ("/", ""),
        (" ", ""),
        ("//other.example", "/other.example"),
        ("/a b", "/a%20b"),
        ("/a\r\nSet-Cookie: b", "/a%0D%0ASet-Cookie:%20b"),
        ("/a\0", "/a%00"),
        ("/a?b#c", "/a%3Fb%23c"),
        ("/\xe9", "/%E9"),
        ("/\u20ac", "/%3F"),
    ],
)
def test_the_prefix_is_a_path(said: str, prefix: str) -> None:
    assert answer.prefix(behind(x_forwarded_prefix=said)) == prefix


@hypothesis.given(strategies.dictionaries(strategies.sampled_from(HEADERS), SENT))
def test_an_address_is_a_url_whatever_is_sent(headers: dict[str, str]) -> None:
    assert ADDRESS.fullmatch(root_behind(**headers))


@pytest.mark.parametrize(
    ("name", "port", "root"),
    [
        ("::1", "8778", "http://[::1]:8778"),
        ("::1", "80", "http://[::1]"),
        ("/run/placement.sock", "", "http://localhost"),
        ("localhost", "/run/placement.sock", "http://localhost"),
    ],
)
def test_a_server_may_listen_on_ipv6_or_in_the_file_system(
    name: str, port: str, root: str
) -> None:
    given = {**SERVER, "HTTP_HOST": "", "SERVER_NAME": name, "SERVER_PORT": port}
    assert answer.root(given) == root
