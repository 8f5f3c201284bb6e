"""Every way in which the API refuses a request: status, code and meaning.

Errors common to all services are in ``placement_foundation.errors`` and can be imported
from here as well. Callers see each code with ``placement.`` in front.
"""

import contextlib
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from placement.microversion import MAXIMUM, MINIMUM
from placement_foundation.errors import (
    BadRequest,
    Busy,
    ConcurrentUpdate,
    Conflict,
    DatabaseUnavailable,
    Forbidden,
    InternalError,
    MethodNotAllowed,
    NotFound,
    ServiceError,
    Unavailable,
    UnavailableVersion,
    UnsupportedMediaType,
)
from placement_foundation.http.schema import (
    INTEGER,
    TEXT,
    Json,
    closed_object,
    extend,
    listed,
)
from placement_foundation.http.version import Version

CODES_SINCE = Version(1, 23)


class BadQueryValue(BadRequest):
    """A query parameter contradicts itself or another one."""

    code = "query.bad_value"


class MissingQueryValue(BadRequest):
    """The query lacks a parameter that it needs."""

    code = "query.missing_value"


class DuplicateQueryKey(BadRequest):
    """A query parameter that may be given once was given again."""

    code = "query.duplicate_key"


class UnknownProvider(BadRequest):
    """A body names a resource provider that does not exist."""

    code = "resource_provider.not_found"


class SearchExhausted(Unavailable):
    """The search for candidates used up its budget before it found any.

    There may still be some. The same request may succeed once the data has changed.
    """

    code = "search_exhausted"
    retry_after = 30


class NoLeases(Unavailable):
    """The database has no table for leases, or does not let the service write it."""

    code = "no_leases"
    retry_after = 60


class NoRoom(Conflict):
    """There is no room for as many consumers as must be placed at least.

    ``explanation`` is why no host serves, as the ledger API renders it; None if some
    consumers could be placed.
    """

    code = "no_room"

    def __init__(self, message: str, explanation: Json | None = None) -> None:
        super().__init__(message)
        self.explanation = explanation


class DuplicateName(Conflict):
    """A resource provider of that name or UUID exists."""

    code = "duplicate_name"


class InventoryInUse(Conflict):
    """Allocations keep the inventory from being removed."""

    code = "inventory.inuse"


class ProviderInUse(Conflict):
    """Allocations keep the resource provider from being deleted."""

    code = "resource_provider.inuse"


class CursorGone(ServiceError):
    """What came after a cursor of the journal is not known any more."""

    status = HTTPStatus.GONE
    code = "cursor_gone"


class CannotDeleteParent(Conflict):
    """Children keep the resource provider from being deleted."""

    code = "resource_provider.cannot_delete_parent"


class UnusableTable(Unavailable):
    """A table that this service adds to the schema is missing, or may not be used."""

    code = "table_unusable"


@contextlib.contextmanager
def retold(
    kinds: type[ServiceError] | tuple[type[ServiceError], ...],
    beginning: str,
    told: type[ServiceError] | None = None,
) -> Iterator[None]:
    """Raise errors of some kinds again, with something in front of their messages.

    :param told: the error to raise; None means the same
    """
    try:
        yield
    except kinds as exc:
        raise (told or type(exc))(f"{beginning}{exc}") from exc


def describe(version: Version) -> Json:
    """Describe the error document.

    The error has no code if the request failed before its microversion was known. Only
    the error for an unavailable microversion lists those that are available, and only
    the one for placements without room may have an explanation.
    """
    row = closed_object(status=INTEGER, title=TEXT, detail=TEXT)
    further = ["request_id", "max_version", "min_version"]
    if version >= CODES_SINCE:
        further.append("code")
    row = extend(row, properties=dict.fromkeys(further, TEXT))
    return extend(
        closed_object(errors={**listed(row), "minItems": 1, "maxItems": 1}),
        properties={"explanation": {"type": "object"}},
    )


def document(
    error: ServiceError,
    detail: str,
    version: Version | None,
    request_id: str | None,
) -> dict[str, Any]:
    """Return the error document.

    :param detail: the error's message as it is shown, its usual sentence included
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
        row["code"] = f"placement.{error.code}"
    if isinstance(error, UnavailableVersion):
        row["max_version"] = str(MAXIMUM)
        row["min_version"] = str(MINIMUM)
    if isinstance(error, NoRoom) and error.explanation is not None:
        return {"errors": [row], "explanation": error.explanation}
    return {"errors": [row]}
