"""The caller of a request: user, project, roles, request id."""

from collections.abc import Mapping
from typing import Any

from oslo_context import context

# The library's class has all that policy and log need.
RequestContext = context.RequestContext

REQUEST_ID = "openstack.request_id"
GLOBAL_REQUEST_ID = "openstack.global_request_id"
ENVIRONMENT_KEY = "placement.context"


def begin(request_id: str, global_request_id: str | None) -> None:
    """Let log records of this thread carry a new request, with no identity yet.

    Otherwise they would carry the request that the thread served before.
    """
    RequestContext(request_id=request_id, global_request_id=global_request_id)


def from_environment(environment: Mapping[str, Any]) -> RequestContext:
    """Return the context that the identity headers of a request describe.

    Log records of this thread carry it from here on.
    """
    return RequestContext.from_environ(dict(environment))


def is_anonymous(asking: RequestContext) -> bool:
    """Return whether the caller is unknown. A user with an empty name is known."""
    return asking.user_id is None
