"""The errors of Placement, or of reaching it: one exception for each kind."""

import socket
from http import HTTPStatus
from typing import Any

CONCURRENT_UPDATE = "placement.concurrent_update"
INVENTORY_IN_USE = "placement.inventory.inuse"
PROVIDER_IN_USE = "placement.resource_provider.inuse"
CANNOT_DELETE_PARENT = "placement.resource_provider.cannot_delete_parent"
DATABASE_UNAVAILABLE = "placement.database_unavailable"
TABLE_UNUSABLE = "placement.table_unusable"

# Conflicts have a code since microversion 1.23. Before that, these words show that a
# generation was out of date.
LOST_RACE_WORDS = ("generation", "update conflict")


# Answers after which the same request may succeed another time. 401 and 403 are about
# this caller, whose password or roles an operator mends; 404 and 409 are about a state
# that changes; 408, 413, 425, 429 and 499 come from proxies; the rest of 4xx is about
# the request itself.
PASSING = (None, 401, 403, 404, 408, 409, 413, 425, 429, 499)


def may_pass(status: int | None) -> bool:
    """Return whether the same request may succeed another time.

    :param status: of the answer, None if there was none
    """
    return status in PASSING or not 400 <= (status or 0) < 500


# The errors of the operating system without a connection, and the statuses of a service
# that has done nothing. Only if its database went away, it may have done something.
NOT_CONNECTED = (ConnectionRefusedError, socket.gaierror)
NOTHING_DONE = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


class PlacementError(Exception):
    """Placement did not carry out a request.

    ``status`` is that of the answer, None if there was none. ``code`` and ``detail``
    are those of the error document; ``code`` is empty if the document has none, as
    before microversion 1.23. ``request_id`` finds the request in the log of the
    service. ``document`` is all of the error document, if there is one.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        code: str = "",
        request_id: str | None = None,
        document: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.code = code
        self.request_id = request_id
        self.document = document

    @property
    def is_own(self) -> bool:
        """Whether the error is Placement's, and not that of a proxy before it."""
        return isinstance((self.document or {}).get("errors"), list)

    @property
    def reason(self) -> str:
        """The part of the detail that is about this request, not about the status."""
        usual, _, message = self.detail.partition("\n\n")
        return message.strip() or usual.strip()

    def __str__(self) -> str:
        marks = [
            f"HTTP {self.status}" if self.status else "",
            self.code,
            f"request {self.request_id}" if self.request_id else "",
        ]
        details = ", ".join(mark for mark in marks if mark)
        return f"{self.reason} ({details})" if details else self.reason


class BadRequest(PlacementError):
    """The request is malformed, or names something that does not exist (400)."""


class Unauthorized(PlacementError):
    """The caller is not known: the token or the password is wrong (401)."""


class Forbidden(PlacementError):
    """Policy does not allow this to the caller (403)."""


class NotFound(PlacementError):
    """What the path names does not exist (404)."""


class NotSupported(PlacementError):
    """The service is too old for the microversion, or is not Placement (405, 406)."""


class Conflict(PlacementError):
    """The stored state forbids it (409). ``code`` says why."""

    @property
    def in_use(self) -> bool:
        """Whether allocations, inventories or children prevent it.

        For the inventory of one class, only the detail says so: the code is that of a
        lost race.
        """
        return (
            self.code in (INVENTORY_IN_USE, PROVIDER_IN_USE, CANNOT_DELETE_PARENT)
            or self.detail.rstrip().endswith("in use.")
            or "Class is in use in inventory" in self.detail
        )

    @property
    def lost_race(self) -> bool:
        """Whether a generation was out of date, so that reading again may help."""
        if self.in_use:
            return False
        if self.code:
            return self.code == CONCURRENT_UPDATE
        detail = self.detail.lower()
        return any(words in detail for words in LOST_RACE_WORDS)


class Unavailable(PlacementError):
    """Placement could not be reached, or could not answer: no connection, or 5xx."""

    @property
    def may_have_succeeded(self) -> bool:
        """Whether the request may have been carried out, and only its answer lost.

        It is false only where that is certain: a refused connection, an unknown host
        name, 429, or a 503 for another reason than the database.
        """
        if self.status is None:
            return not isinstance(origin_of(self), NOT_CONNECTED)
        return self.status not in NOTHING_DONE or self.code == DATABASE_UNAVAILABLE


class Timeout(Unavailable):
    """There was no answer in time. The request may have succeeded all the same.

    ``status`` is None, or 504 if a server in between gave up.
    """


KINDS: dict[int, type[PlacementError]] = {
    HTTPStatus.BAD_REQUEST: BadRequest,
    HTTPStatus.UNAUTHORIZED: Unauthorized,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.METHOD_NOT_ALLOWED: NotSupported,
    HTTPStatus.NOT_ACCEPTABLE: NotSupported,
    HTTPStatus.CONFLICT: Conflict,
    HTTPStatus.REQUEST_TIMEOUT: Timeout,
    HTTPStatus.TOO_MANY_REQUESTS: Unavailable,
    HTTPStatus.GATEWAY_TIMEOUT: Timeout,
}


def kind_of(status: int) -> type[PlacementError]:
    """Return the exception for the status of an answer."""
    return KINDS.get(status, Unavailable if status >= 500 else PlacementError)


def origin_of(exc: BaseException) -> BaseException:
    """Return the first cause of an exception.

    An earlier failure of ours, whose handler made the request, is not its origin.
    """
    while cause := exc.__cause__ or exc.__context__:
        if isinstance(cause, PlacementError):
            break
        exc = cause
    return exc
