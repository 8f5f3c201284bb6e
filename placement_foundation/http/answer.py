"""The answer to a request: a reply in the form that the caller prefers."""

import contextlib
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import IO, Any
from wsgiref.util import FileWrapper

import webob
from oslo_log import log
from webob import datetime_utils

from placement_foundation import errors
from placement_foundation.http import (
    address,
    entity_tag,
    query_string,
    stream,
)
from placement_foundation.http.operation import Edition, Operation, Renderer, Reply
from placement_foundation.http.schema import View, encode
from placement_foundation.observing import telemetry

LOG = log.getLogger(__name__)

JSON = "application/json"
# JSON documents, one per line.
LINES = "application/x-ndjson"
GZIP = "gzip"
# How much of a file is read at once, if the server does not send it by itself.
CHUNK = 1 << 16
FULL = "This reply does not fit on disk. Please retry later, or request less."


class Answer:
    """Renders the reply to a request."""

    def __init__(
        self,
        request: webob.Request,
        operation: Operation,
        edition: Edition,
    ) -> None:
        self._request = request
        self._operation = operation
        self._edition = edition
        self.tags = entity_tag.Tags(request, edition.version)

    @telemetry.timed("rendering")
    def render(self, reply: Reply) -> webob.Response:
        """Return the response with a reply."""
        operation = self._operation
        status = self._status(reply)
        if reply.unchanged:
            return self.tags.add(webob.Response(status=status), reply)
        body = b""
        # Setting each header as an attribute takes longer than all other steps.
        headers = []
        if self._edition.renderer:
            media_type, renderer = self._renderer()
            body = self._written(media_type, renderer, reply)
            headers.append(("Content-Type", media_type))
            if operation.formats:
                headers.append(("Vary", "accept"))
        headers.append(("Content-Length", str(len(body))))
        environment = self._request.environ
        if reply.location:
            headers.append(("Location", address.root(environment) + reply.location))
        if reply.following:
            headers.append(("link", _link(self._request, reply.following)))
        if self._edition.is_dated:
            headers.append(("cache-control", "no-cache"))
            if reply.modified:
                modified = datetime_utils.serialize_date(reply.modified)
                headers.append(("Last-Modified", modified))
        response = webob.Response(headerlist=headers, app_iter=[body])
        if status != HTTPStatus.OK:
            response.status = status
        return self.tags.add(response, reply)

    @telemetry.timed("rendering")
    def store(self, reply: Reply) -> webob.Response:
        """Return the response with a large reply, which is sent from a file.

        Its value may still be read from the database while it is rendered.

        :raises Busy: there is no room for it
        """
        response = webob.Response(status=self._status(reply))
        response.vary = entity_tag.FORM
        if reply.unchanged:
            return self.tags.add(response, reply)
        media_type, renderer = self._renderer()
        response.content_type = media_type
        response.charset = None
        form: Any = stream.lines if media_type == LINES else stream.document
        chunks: Iterator[bytes] = form(self._rendered(renderer, reply))
        if _prefers(self._request.accept_encoding, [GZIP, "identity"], GZIP):
            chunks = stream.compress(chunks)
            response.content_encoding = GZIP
        file = _write(chunks)
        size = file.tell()
        file.seek(0)
        wrapper = self._request.environ.get("wsgi.file_wrapper", FileWrapper)
        response.app_iter = wrapper(file, CHUNK)
        # Set after the body, which would reset it.
        response.content_length = size
        return self.tags.add(response, reply)

    def _status(self, reply: Reply) -> int:
        return 201 if reply.created else self._edition.status

    def _renderer(self) -> tuple[str, Renderer]:
        """Return the media type that the caller prefers, and its renderer."""
        operation = self._operation
        for media_type, renderer in operation.formats.items():
            if _prefers(self._request.accept, offers_of(operation), media_type):
                return media_type, renderer
        if self._edition.renderer is None:
            raise ValueError("a row without a reply has nothing to render")
        return JSON, self._edition.renderer

    def _rendered(self, renderer: Renderer, reply: Reply) -> Any:
        environment = self._request.environ
        prefix, root = address.prefix(environment), address.root(environment)
        return renderer(reply.value, View(self._edition.version, prefix, root))

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
    return f'<{address.url(request.environ)}?{query}>; rel="next"'


def _prefers(header: Any, offers: list[str], wanted: str) -> bool:
    """Return whether a caller's header prefers one offer to all others."""
    accepted = header.acceptable_offers(offers) if header.header_value else []
    return any(offer == wanted for offer, _ in accepted[:1])
