"""Errors as answers."""

from collections.abc import Callable
from typing import Any, TypeAlias

import webob
import webob.exc

from placement_foundation import context, errors
from placement_foundation.schema import Json
from placement_foundation.version import Version

# Makes the document of an error: from the error, its message as it is shown, the
# microversion of the request if one was agreed on, and the id of the request.
Document: TypeAlias = Callable[
    [errors.ServiceError, str, Version | None, str | None], Json
]


def as_wanted(document: Document) -> Callable[..., webob.Response]:
    """Return what renders errors as the caller likes to read them.

    That is JSON, or HTML or plain text with the same words.
    """

    def refuse(
        request: webob.Request, error: errors.ServiceError, version: Version | None
    ) -> webob.Response:
        def as_json(body: str, **unused: Any) -> Json:
            detail = webob.exc.strip_tags(body)
            return document(error, detail, version, _request_id(request))

        return webob.exc.status_map[error.status](
            detail=str(error), json_formatter=as_json
        )

    return refuse


def as_json(document: Document) -> Callable[..., webob.Response]:
    """Return what renders errors as JSON, whatever the caller wants."""

    def refuse(
        request: webob.Request, error: errors.ServiceError, version: Version | None
    ) -> webob.Response:
        told = document(error, str(error), version, _request_id(request))
        return webob.Response(status=int(error.status), json_body=told)

    return refuse


def _request_id(request: webob.Request) -> str | None:
    found: str | None = request.environ.get(context.REQUEST_ID)
    return found
