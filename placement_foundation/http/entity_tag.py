"""Entity tags: an answer that the caller already has is not sent again.

A tag stands for everything that an answer depends on: the basis that the handler
names, and the request.
"""

import hashlib
from collections.abc import Sequence

import webob

from placement_foundation.http import address
from placement_foundation.http.operation import Reply
from placement_foundation.http.version import Version

TAG_BYTES = 16
# The headers that decide the form of an answer.
FORM = ("accept", "accept-encoding")
# Only the caller may keep an answer, and must revalidate it each time.
CACHING = "private, no-cache"


class Tags:
    """The tags of the answers to one request."""

    def __init__(self, request: webob.Request, version: Version) -> None:
        self._request = request
        self._version = version

    def knows(self, basis: str | None) -> bool:
        """Return whether the caller has the answer with a basis."""
        return basis is not None and self._tag(basis) in self._request.if_none_match

    def add(self, response: webob.Response, reply: Reply) -> webob.Response:
        """Return the response to a reply, with its tag; without a body if unchanged."""
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
        request = self._request
        where = (address.url(request.environ), request.query_string)
        form: Sequence[str] = [request.headers.get(name, "") for name in FORM]
        parts = (basis, str(self._version), *where, *form)
        seen = repr(parts).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(seen, digest_size=TAG_BYTES).hexdigest()
