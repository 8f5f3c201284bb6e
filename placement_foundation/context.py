"""The caller of a request: user, project, roles, request id."""

from oslo_context import context

# The library's class has all that policy and log need.
RequestContext = context.RequestContext

REQUEST_ID = "openstack.request_id"
GLOBAL_REQUEST_ID = "openstack.global_request_id"
ENVIRONMENT_KEY = "placement.context"
