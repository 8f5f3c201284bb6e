"""Sign-in: a token from the identity service in exchange for a password.

The service keeps nothing: the page has the token, and sends it with each request.
"""

import dataclasses
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from oslo_config import cfg

from placement import errors
from placement_foundation import option
from placement_foundation.http.thread_limit import ThreadLimit

LONGEST = 4_096
# Signing in is open to all callers: an eighth of the threads are for that. Others wait
# for their turn as long as the identity service answers within this time, in seconds.
PART = 8
PATIENCE = 1.0
BUSY = "Too many sign-ins are in progress. Please retry."


class NotKnown(errors.ServiceError):
    """The identity service does not accept the password."""

    status = HTTPStatus.UNAUTHORIZED


@dataclasses.dataclass(frozen=True, slots=True)
class Credentials:
    """The user and the project of a token to request."""

    user: str
    password: str
    project: str
    user_domain: str = "Default"
    project_domain: str = "Default"


@dataclasses.dataclass(frozen=True, slots=True)
class Session:
    """A token, when it expires, in UTC, and its user, project and roles."""

    token: str
    expires_at: str
    user: str
    project_id: str
    roles: tuple[str, ...]


def parse(document: Any) -> Credentials:
    """Return the credentials in a body.

    :raises BadRequest: a member is missing, unknown or not a string of the right length
    """
    fields = dataclasses.fields(Credentials)
    if not isinstance(document, Mapping):
        raise errors.BadRequest("The body is not an object.")
    unknown = sorted(document.keys() - {field.name for field in fields})
    if unknown:
        raise errors.BadRequest(f"Unknown members of the body: {unknown}.")
    values = {}
    for field in fields:
        value = document.get(field.name, field.default)
        if not isinstance(value, str) or not 0 < len(value) <= LONGEST:
            raise errors.BadRequest(
                f"{field.name} is not a string of 1 to {LONGEST} characters."
            )
        values[field.name] = value
    return Credentials(**values)


def describe(config: cfg.ConfigOpts, caller: str) -> str:
    """Return what a caller at an address needs to sign in.

    Without authentication, callers on the same machine need nothing, and others a
    token. Otherwise all need a password, or a token instead.
    """
    if config.api.auth_strategy != "noauth2":
        return "password"
    return "none" if option.is_loopback(caller) else "token"


def begin(
    config: cfg.ConfigOpts, credentials: Credentials, limit: ThreadLimit
) -> Session:
    """Return a token for a password.

    :param limit: the threads that may do this at a time
    :raises BadRequest: the service has no authentication, so there are no tokens
    :raises NotKnown: the identity service refuses the password
    :raises Busy: all of these threads are occupied
    :raises Unavailable: the identity service cannot be reached
    """
    if config.api.auth_strategy == "noauth2":
        raise errors.BadRequest(
            "The service authenticates no users: no token is needed."
        )
    # A service without authentication never loads the library for this.
    from placement.console import token

    with limit.turn(BUSY):
        return token.load(config, credentials)
