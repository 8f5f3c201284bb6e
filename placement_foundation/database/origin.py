"""Where a write comes from: the request, or the command, that makes it."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """What makes a write, and for whom.

    ``request`` is the method and the path, or the command with its arguments.
    ``global_request_id`` is the id that the caller has given to its own request. What
    is unknown is None.
    """

    request: str | None = None
    request_id: str | None = None
    global_request_id: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    project_id: str | None = None
    project_name: str | None = None


UNKNOWN = Origin()
