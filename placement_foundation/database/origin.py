"""The origin of a write: the request or the command that makes it."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """The request or command that makes a write, and its caller.

    ``request`` is the method and the path, or the command with its arguments.
    ``global_request_id`` is the id that the caller has given to its own request.
    Unknown fields are None.
    """

    request: str | None = None
    request_id: str | None = None
    global_request_id: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    project_id: str | None = None
    project_name: str | None = None


UNKNOWN = Origin()
