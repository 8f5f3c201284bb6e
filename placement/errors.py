"""Every way in which the API says no: status, code and meaning.

An exception class is a row of the API's error table. Its docstring is the meaning,
its attributes are the answer, and the sentence that it is raised with names what was
wrong.
"""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from placement.microversion import MAXIMUM, MINIMUM, Version

CODES_SINCE = Version(1, 23)


class PlacementError(Exception):
    """Something the caller can act on. Never a bug of ours."""

    status = HTTPStatus.BAD_REQUEST
    code = "placement.undefined_code"


class BadRequest(PlacementError):
    """The request cannot be understood, or names what does not exist."""


class BadQueryValue(BadRequest):
    """A query parameter contradicts itself or another one."""

    code = "placement.query.bad_value"


class MissingQueryValue(BadRequest):
    """The query lacks what would make it a question."""

    code = "placement.query.missing_value"


class DuplicateQueryKey(BadRequest):
    """A query parameter that may be given once was given again."""

    code = "placement.query.duplicate_key"


class UnknownProvider(BadRequest):
    """A body names a resource provider that does not exist."""

    code = "placement.resource_provider.not_found"


class MalformedVersion(BadRequest):
    """The microversion header cannot be read."""


class Forbidden(PlacementError):
    """Policy does not let this caller do this."""

    status = HTTPStatus.FORBIDDEN


class NotFound(PlacementError):
    """What the path names does not exist, at this microversion at least."""

    status = HTTPStatus.NOT_FOUND


class MethodNotAllowed(PlacementError):
    """The path exists, and does not serve this method."""

    status = HTTPStatus.METHOD_NOT_ALLOWED

    def __init__(self, message: str = "", allow: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.allow = ", ".join(allow)


class NotAcceptable(PlacementError):
    """The caller does not want any of what can be served."""

    status = HTTPStatus.NOT_ACCEPTABLE


class UnavailableVersion(NotAcceptable):
    """The microversion asked for is not one that this service has."""


class Conflict(PlacementError):
    """The request is well formed, but the stored state forbids it."""

    status = HTTPStatus.CONFLICT


class ConcurrentUpdate(Conflict):
    """The generation the caller saw is no longer the current one."""

    code = "placement.concurrent_update"


class DuplicateName(Conflict):
    """A resource provider of that name or UUID exists."""

    code = "placement.duplicate_name"


class InventoryInUse(Conflict):
    """Allocations keep the inventory from being removed."""

    code = "placement.inventory.inuse"


class ProviderInUse(Conflict):
    """Allocations keep the resource provider from being deleted."""

    code = "placement.resource_provider.inuse"


class CannotDeleteParent(Conflict):
    """Children keep the resource provider from being deleted."""

    code = "placement.resource_provider.cannot_delete_parent"


class UnsupportedMediaType(PlacementError):
    """The body is not of a type that can be read."""

    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE


class InternalError(PlacementError):
    """A bug of ours. The log tells more than the caller may know."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR


def document(
    error: PlacementError,
    detail: str,
    version: Version | None,
    request_id: str | None,
) -> dict[str, Any]:
    """Return the error document.

    :param detail: the error's message as it is shown, stock sentence included
    :param version: the microversion of the request; None if none was agreed on,
        which leaves the code out
    """
    row: dict[str, Any] = {
        "status": int(error.status),
        "title": error.status.phrase,
        "detail": detail,
    }
    if request_id:
        row["request_id"] = request_id
    if version and version >= CODES_SINCE:
        row["code"] = error.code
    if isinstance(error, UnavailableVersion):
        row["max_version"] = str(MAXIMUM)
        row["min_version"] = str(MINIMUM)
    return {"errors": [row]}
