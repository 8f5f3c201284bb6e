"""The errors of every service.

An exception class is a row of a service's error table. Its docstring is the meaning,
its attributes are the answer, and the sentence that it is raised with names what was
wrong. Each service adds its own rows.
"""

import types
from collections.abc import Iterable, Mapping
from http import HTTPStatus

# How much of what the caller sent a message quotes, in characters. A quotation is cut
# in the middle, because an explanation follows it.
QUOTED = 300


def quote(text: str, length: int = QUOTED) -> str:
    """Return a string for quoting: only its beginning and its end if it is long."""
    if len(text) <= length:
        return text
    end = length // 4
    return f"{text[: length - end]} [...] {text[-end:]}"


class ServiceError(Exception):
    """Something the caller can act on. Never a bug of ours."""

    status = HTTPStatus.BAD_REQUEST
    code = "undefined_code"
    # Those of the answer that belong to the error.
    headers: Mapping[str, str] = types.MappingProxyType({})


class BadRequest(ServiceError):
    """The request cannot be understood, or names what does not exist."""


class MalformedVersion(BadRequest):
    """The microversion header cannot be read."""


class Forbidden(ServiceError):
    """Policy does not let this caller do this."""

    status = HTTPStatus.FORBIDDEN


class NotFound(ServiceError):
    """What the path names does not exist, at this microversion at least."""

    status = HTTPStatus.NOT_FOUND


class MethodNotAllowed(ServiceError):
    """The path exists, but does not serve this method."""

    status = HTTPStatus.METHOD_NOT_ALLOWED

    def __init__(self, message: str = "", allow: Iterable[str] = ()) -> None:
        super().__init__(message)
        allowed = ", ".join(allow)
        self.headers = {"allow": allowed} if allowed else {}


class NotAcceptable(ServiceError):
    """The caller accepts none of the media types that can be served."""

    status = HTTPStatus.NOT_ACCEPTABLE


class UnavailableVersion(NotAcceptable):
    """The service does not have the requested microversion."""


class Conflict(ServiceError):
    """The request is well formed, but the stored state forbids it."""

    status = HTTPStatus.CONFLICT


class ConcurrentUpdate(Conflict):
    """The generation the caller saw is no longer the current one."""

    code = "concurrent_update"


class UnsupportedMediaType(ServiceError):
    """The body is not of a type that can be read."""

    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE


class BodyTooLarge(ServiceError):
    """The body is larger than the service reads."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class AddressTooLong(ServiceError):
    """The address is longer than the service accepts."""

    status = HTTPStatus.REQUEST_URI_TOO_LONG


class InternalError(ServiceError):
    """A bug of ours. The log has details that the caller may not see."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR


class Unavailable(ServiceError):
    """The service cannot answer at the moment; the same request may succeed later."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    # Seconds after which a new attempt is worthwhile.
    retry_after = 1

    @property
    def headers(self) -> Mapping[str, str]:  # type: ignore[override]
        """How long to wait."""
        return {"retry-after": str(self.retry_after)}


class Busy(Unavailable):
    """Too many requests of this kind are in progress."""

    code = "busy"
    retry_after = 2


class DatabaseUnavailable(Unavailable):
    """The database cannot be reached, or does not answer in time."""

    code = "database_unavailable"
