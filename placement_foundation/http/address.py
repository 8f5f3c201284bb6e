"""The address at which clients know the service, for links and ``Location``.

It is made of what the caller or a proxy says. What cannot be part of a URL is left out
or encoded, so that an address always is one.
"""

import email.utils
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# What a path has besides letters and digits without being encoded.
SAFE = "/~!$&'()*+,;=:@"
# A name or an address, and maybe a port.
HOST = re.compile(r"(?:[\w.~!$&'()*+;=%-]+|\[[0-9A-Fa-f:.]+\])(?::\d*)?", re.ASCII)
DEFAULT_PORTS = {"http": ":80", "https": ":443"}
# Of the header Forwarded. A quotation that does not end goes to the end of the header.
QUOTED = r'"(?:\\.|[^"\\])*+"?'
FIRST = re.compile(rf'(?:{QUOTED}|[^",])*+')
PAIR = re.compile(rf'(?:{QUOTED}|[^";])++')
# Characters that could end a line of the log and forge another one.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def escape_controls(text: str) -> str:
    """Return a string with its control characters percent-encoded."""
    return CONTROL.sub(lambda found: f"%{ord(found[0]):02X}", text)


def prefix(environment: "WSGIEnvironment") -> str:
    """Return the path at which the service is mounted, encoded as in a URL."""
    return _quote(environment.get("SCRIPT_NAME", ""))


def root(environment: "WSGIEnvironment") -> str:
    """Return the URL at which the service is mounted.

    The name of the server stands for a host that cannot be one.
    """
    scheme = environment["wsgi.url_scheme"]
    host = environment.get("HTTP_HOST", "")
    if not HOST.fullmatch(host):
        name = environment["SERVER_NAME"]
        # The address that a server listens on may be one of IPv6, or a path.
        name = f"[{name}]" if ":" in name else name
        host = f"{name}:{environment['SERVER_PORT']}"
        host = host if HOST.fullmatch(host) else "localhost"
    host = host.removesuffix(DEFAULT_PORTS.get(scheme, ":")).removesuffix(":")
    return f"{scheme}://{host}{prefix(environment)}"


def url(environment: "WSGIEnvironment") -> str:
    """Return the URL of a request, without its query."""
    return root(environment) + _quote(environment.get("PATH_INFO", ""))


def _quote(path: str) -> str:
    # Bytes of a request are characters of Latin-1 in its environment.
    return urllib.parse.quote(path, SAFE, "latin-1", "replace") if path else ""


def behind_proxy(application: "WSGIApplication") -> "WSGIApplication":
    """Let the proxy in front of an application say how clients reach it.

    Of several proxies, the first one is what the client has talked to.
    """

    def placed(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        said = _said(environment)
        scheme = said.get("proto", "").lower()
        if scheme in DEFAULT_PORTS:
            environment["wsgi.url_scheme"] = scheme
        if HOST.fullmatch(said.get("host", "")):
            environment["HTTP_HOST"] = said["host"]
        if said.get("for"):
            environment["REMOTE_ADDR"] = escape_controls(said["for"])
        # In an environment, paths are not encoded.
        sent = environment.get("HTTP_X_FORWARDED_PREFIX", "")
        before = urllib.parse.unquote(sent, "latin-1").strip("/ ")
        if before:
            mount = environment.get("SCRIPT_NAME", "")
            environment["SCRIPT_NAME"] = f"/{before}{mount}"
        return application(environment, start_response)

    return placed


def _said(environment: "WSGIEnvironment") -> Mapping[str, str]:
    """Return scheme, host and client as ``proto``, ``host`` and ``for``."""
    forwarded = environment.get("HTTP_FORWARDED")
    if forwarded:
        return dict(map(_parse_pair, PAIR.findall(_first_element(forwarded))))
    return {
        "proto": _first(environment.get("HTTP_X_FORWARDED_PROTO", "")),
        "host": _first(environment.get("HTTP_X_FORWARDED_HOST", "")),
        "for": environment.get("HTTP_X_FORWARDED_FOR", ""),
    }


def _first_element(forwarded: str) -> str:
    found = FIRST.match(forwarded)
    return found[0] if found else ""


def _parse_pair(pair: str) -> tuple[str, str]:
    name, _, value = pair.partition("=")
    return name.strip().lower(), email.utils.unquote(value.strip())


def _first(listed: str) -> str:
    return listed.split(",", 1)[0].strip()
