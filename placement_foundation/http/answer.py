"""The answer to a request: a reply in the form that the caller prefers.

An answer that the caller already has is not sent again: its entity tag stands for
everything that it depends on, the basis that the handler names, and the request.

Links and ``Location`` begin with the address at which clients reach the service. It is
made of headers of the caller or a proxy. Parts that no URL can have are left out or
encoded, so an address is always valid.
"""

import contextlib
import dataclasses
import hashlib
import re
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import IO, TYPE_CHECKING, Any
from wsgiref.util import FileWrapper

import webob
from oslo_log import log
from webob import datetime_utils

from placement_foundation import errors
from placement_foundation.http import query_string, stream
from placement_foundation.http.operation import Edition, Operation, Renderer, Reply
from placement_foundation.http.schema import View, encode
from placement_foundation.observing import telemetry

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

LOG = log.getLogger(__name__)

JSON = "application/json"
# JSON documents, one per line.
LINES = "application/x-ndjson"
GZIP = "gzip"
# How much of a file is read at once, if the server does not send it by itself.
CHUNK = 1 << 16
TAG_BYTES = 16
# The headers that decide the form of an answer.
FORM = ("accept", "accept-encoding")
# Only the caller may keep an answer with a tag, and must revalidate it each time.
CACHING = "private, no-cache"
# The characters of a path besides letters and digits that are not encoded.
SAFE = "/~!$&'()*+,;=:@"
# A name or an address, and maybe a port.
HOST = re.compile(r"(?:[\w.~!$&'()*+;=%-]+|\[[0-9A-Fa-f:.]+\])(?::\d*)?", re.ASCII)
DEFAULT_PORTS = {"http": ":80", "https": ":443"}
FULL = "This reply does not fit on disk. Please retry later, or request less."


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request for an operation, which renders the reply."""

    request: webob.Request
    edition: Edition

    def knows(self, basis: str | None) -> bool:
        """Return whether the caller has the answer with a basis."""
        return basis is not None and self._tag(basis) in self.request.if_none_match

    @telemetry.timed("rendering")
    def render(self, reply: Reply) -> webob.Response:
        """Return the response with a reply."""
        operation = self.edition.operation
        status = self._status(reply)
        if reply.unchanged:
            return self._tagged(webob.Response(status=status), reply)
        body = b""
        # Setting each header as an attribute takes longer than all other steps.
        headers = []
        if self.edition.renderer:
            media_type, renderer = self._renderer()
            body = self._written(media_type, renderer, reply)
            headers.append(("Content-Type", media_type))
            if operation.formats:
                headers.append(("Vary", "accept"))
        headers.append(("Content-Length", str(len(body))))
        environment = self.request.environ
        if reply.location:
            headers.append(("Location", root(environment) + reply.location))
        if reply.following:
            headers.append(("link", _link(self.request, reply.following)))
        if self.edition.is_dated:
            headers.append(("cache-control", "no-cache"))
            if reply.modified:
                modified = datetime_utils.serialize_date(reply.modified)
                headers.append(("Last-Modified", modified))
        response = webob.Response(headerlist=headers, app_iter=[body])
        if status != HTTPStatus.OK:
            response.status = status
        return self._tagged(response, reply)

    @telemetry.timed("rendering")
    def store(self, reply: Reply) -> webob.Response:
        """Return the response with a large reply, which is sent from a file.

        Its value may still be read from the database while it is rendered.

        :raises Busy: there is no room for it
        """
        response = webob.Response(status=self._status(reply))
        response.vary = FORM
        if reply.unchanged:
            return self._tagged(response, reply)
        media_type, renderer = self._renderer()
        response.content_type = media_type
        response.charset = None
        form: Any = stream.lines if media_type == LINES else stream.document
        chunks: Iterator[bytes] = form(self._rendered(renderer, reply))
        if _prefers(self.request.accept_encoding, [GZIP, "identity"], GZIP):
            chunks = stream.compress(chunks)
            response.content_encoding = GZIP
        file = _write(chunks)
        size = file.tell()
        file.seek(0)
        wrapper = self.request.environ.get("wsgi.file_wrapper", FileWrapper)
        response.app_iter = wrapper(file, CHUNK)
        # Set after the body, which would reset it.
        response.content_length = size
        return self._tagged(response, reply)

    def _tagged(self, response: webob.Response, reply: Reply) -> webob.Response:
        """Return a response with the tag of a reply; without a body if unchanged."""
        if reply.basis is None:
            return response
        if reply.unchanged:
            response = webob.Response(status=304, vary=response.vary)
            del response.content_type
            del response.content_length
        response.etag = self._tag(reply.basis)
        response.headers["cache-control"] = CACHING
        return response

    def _tag(self, basis: str) -> str:
        request = self.request
        where = (url(request.environ), request.query_string)
        form: Sequence[str] = [request.headers.get(name, "") for name in FORM]
        parts = (basis, str(self.edition.version), *where, *form)
        seen = repr(parts).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(seen, digest_size=TAG_BYTES).hexdigest()

    def _status(self, reply: Reply) -> int:
        return 201 if reply.created else self.edition.status

    def _renderer(self) -> tuple[str, Renderer]:
        """Return the media type that the caller prefers, and its renderer."""
        operation = self.edition.operation
        for media_type, renderer in operation.formats.items():
            if _prefers(self.request.accept, offers_of(operation), media_type):
                return media_type, renderer
        if self.edition.renderer is None:
            raise ValueError("a row without a reply has nothing to render")
        return JSON, self.edition.renderer

    def _rendered(self, renderer: Renderer, reply: Reply) -> Any:
        environment = self.request.environ
        view = View(self.edition.version, prefix(environment), root(environment))
        return renderer(reply.value, view)

    def _written(self, media_type: str, renderer: Renderer, reply: Reply) -> bytes:
        """Return a body."""
        document = self._rendered(renderer, reply)
        if media_type == LINES:
            return b"".join(stream.lines(document))
        return encode(document)


def _write(chunks: Iterator[bytes]) -> IO[bytes]:
    """Return a temporary file with the parts of a reply.

    :raises Busy: the disk is full, or cannot be written
    """
    try:
        with contextlib.ExitStack() as unless_written:
            file = unless_written.enter_context(tempfile.TemporaryFile())
            file.writelines(chunks)
            file.flush()
            unless_written.pop_all()
    except OSError as exc:
        LOG.warning("a reply cannot be stored in %s: %s", tempfile.gettempdir(), exc)
        raise errors.Busy(FULL) from exc
    return file


def offers_of(operation: Operation) -> list[str]:
    """Return the media types of a reply, the preferred one first."""
    return [JSON, *operation.formats]


def _link(request: webob.Request, following: Mapping[str, str]) -> str:
    """Return the header that links to the next page."""
    pairs = query_string.decode(request.query_string)
    kept = [(name, value) for name, value in pairs if name not in following]
    query = urllib.parse.urlencode([*following.items(), *kept])
    return f'<{url(request.environ)}?{query}>; rel="next"'


def _prefers(header: Any, offers: list[str], wanted: str) -> bool:
    """Return whether a caller's header prefers one offer to all others."""
    accepted = header.acceptable_offers(offers) if header.header_value else []
    return any(offer == wanted for offer, _ in accepted[:1])


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
