"""Errors as answers."""

from collections.abc import Callable
from typing import Any, TypeAlias

import webob
import webob.exc

from placement_foundation import context, errors
from placement_foundation.http.schema import Json
from placement_foundation.http.version import Version

# Makes the document of an error from the error, its message as it is shown, the
# microversion of the request if one was agreed on, and the id of the request.
Document: TypeAlias = Callable[
    [errors.ServiceError, str, Version | None, str | None], Json
]

# Of a whole message, including the part of a schema that it shows, in characters.
LONGEST_MESSAGE = 4000
# The parts of a request that messages for people quote.
QUOTED = ("REQUEST_METHOD", "HTTP_ACCEPT", "CONTENT_TYPE")


def as_wanted(document: Document) -> Callable[..., webob.Response]:
    """Return the function that renders errors in the form that the caller accepts.

    That is JSON, or HTML or plain text with the same message.
    """

    def refuse(
        request: webob.Request, error: errors.ServiceError, version: Version | None
    ) -> webob.Response:
        def as_json(body: str, **unused: Any) -> Json:
            detail = webob.exc.strip_tags(body)
            return document(error, detail, version, _request_id(request))

        environment = request.environ
        for name in QUOTED:
            if name in environment:
                environment[name] = errors.quote(environment[name])
        kind = webob.exc.status_map[error.status]
        return kind(detail=_message(error), json_formatter=as_json)

    return refuse


def as_json(document: Document) -> Callable[..., webob.Response]:
    """Return the function that renders errors as JSON, whatever the caller accepts."""

    def refuse(
        request: webob.Request, error: errors.ServiceError, version: Version | None
    ) -> webob.Response:
        shown = document(error, _message(error), version, _request_id(request))
        return webob.Response(status=int(error.status), json_body=shown)

    return refuse


def _message(error: errors.ServiceError) -> str:
    return errors.quote(str(error), LONGEST_MESSAGE)


def _request_id(request: webob.Request) -> str | None:
    request_id: str | None = request.environ.get(context.REQUEST_ID)
    return request_id
