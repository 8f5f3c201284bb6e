"""The address at which clients reach the service, for links and ``Location``.

It is made of headers of the caller or a proxy. Parts that no URL can have are left out
or encoded, so an address is always valid.
"""

import ipaddress
import re
import urllib.parse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

# The characters of a path besides letters and digits that are not encoded.
SAFE = "/~!$&'()*+,;=:@"
# A name or an address, and maybe a port.
HOST = re.compile(r"(?:[\w.~!$&'()*+;=%-]+|\[[0-9A-Fa-f:.]+\])(?::\d*)?", re.ASCII)
DEFAULT_PORTS = {"http": ":80", "https": ":443"}
# Characters that could end a line of the log and forge another one.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def escape_controls(text: str) -> str:
    """Return a string with its control characters percent-encoded."""
    return CONTROL.sub(lambda found: f"%{ord(found[0]):02X}", text)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, as only this machine reaches it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        # A name, or a web server that is reached in another way than by IP.
        return False


def prefix(environment: "WSGIEnvironment") -> str:
    """Return the path at which the service is mounted, encoded as in a URL."""
    # A server has decoded it; oslo.middleware takes it from a header as it was sent.
    mount = urllib.parse.unquote(environment.get("SCRIPT_NAME", ""), "latin-1")
    mount = mount.strip("/ ")
    return _quote(f"/{mount}") if mount else ""


def root(environment: "WSGIEnvironment") -> str:
    """Return the URL at which the service is mounted.

    The name of the server replaces an invalid host. Of several proxies, the first one
    received the request of the client.
    """
    scheme = _first(environment["wsgi.url_scheme"]).lower()
    scheme = scheme if scheme in DEFAULT_PORTS else "http"
    host = _first(environment.get("HTTP_HOST", ""))
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


def _first(listed: str) -> str:
    """Return the first of several, as proxies list them, each maybe in quotes."""
    return listed.split(",", 1)[0].strip(' "')
