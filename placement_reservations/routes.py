"""The API as a table: path -> method -> Operation.

If you read one file, read this one.
"""

from functools import partial
from operator import attrgetter

from placement_foundation.http import query_string
from placement_foundation.http.operation import Deviation, Operation
from placement_foundation.http.version import always
from placement_reservations.handlers import flavor, host, lease, root
from placement_reservations.schemas import allocation as allocation_wire
from placement_reservations.schemas import flavor as flavor_wire
from placement_reservations.schemas import free as free_wire
from placement_reservations.schemas import host as host_wire
from placement_reservations.schemas import lease as lease_wire
from placement_reservations.schemas import root as root_wire
from placement_reservations.store import host as hosts
from placement_reservations.store import lease as leases

# An unknown parameter may be a mistyped filter.
row = partial(Operation, query=always(query_string.refuse_all))
of_lease = partial(row, subject=always(leases.get), owner=attrgetter("project_id"))
of_host = partial(row, subject=always(hosts.get))

VERSIONS = {
    "GET": Operation(
        handler=always(root.show_versions),
        policy=None,
        status=always(300),
        reply=always(root_wire.render_versions),
        deviation=Deviation.ACCEPTS_ANYTHING,
    ),
}

ROUTES: dict[str, dict[str, Operation]] = {
    "/": VERSIONS,
    "/versions": VERSIONS,
    "/healthcheck": {
        "GET": Operation(
            handler=always(root.show_health),
            policy=None,
            reply=always(root_wire.render_health),
            deviation=Deviation.ACCEPTS_ANYTHING,
        ),
    },
    "/v1/leases": {
        "GET": row(
            handler=always(lease.list_leases),
            policy="reservation:leases:list",
            reply=always(lease_wire.render_leases),
        ),
        "POST": row(
            handler=always(lease.create_lease),
            policy="reservation:leases:create",
            body=always(lease_wire.POST_LEASE),
            reply=always(lease_wire.render_lease),
        ),
    },
    "/v1/leases/free": {
        "GET": row(
            handler=always(lease.list_free),
            policy="reservation:leases:list_free",
            query=always(free_wire.parse_query),
            reply=always(free_wire.render),
        ),
    },
    "/v1/leases/{lease_id}": {
        "GET": of_lease(
            handler=always(lease.show_lease),
            policy="reservation:leases:show",
            reply=always(lease_wire.render_lease),
        ),
        "PUT": of_lease(
            handler=always(lease.update_lease),
            policy="reservation:leases:update",
            body=always(lease_wire.PUT_LEASE),
            reply=always(lease_wire.render_lease),
        ),
        "DELETE": of_lease(
            handler=always(lease.delete_lease),
            policy="reservation:leases:delete",
        ),
    },
    "/v1/os-hosts": {
        "GET": row(
            handler=always(host.list_hosts),
            policy="reservation:hosts:list",
            reply=always(host_wire.render_hosts),
        ),
        "POST": row(
            handler=always(host.create_host),
            policy="reservation:hosts:create",
            body=always(host_wire.POST_HOST),
            reply=always(host_wire.render_host),
        ),
    },
    "/v1/os-hosts/allocations": {
        "GET": row(
            handler=always(host.list_allocations),
            policy="reservation:hosts:allocations:list",
            query=always(allocation_wire.parse_query),
            reply=always(allocation_wire.render_allocations),
        ),
    },
    "/v1/os-hosts/properties": {
        "GET": row(
            handler=always(host.list_properties),
            policy="reservation:hosts:properties:list",
            query=always(host_wire.parse_properties_query),
            reply=always(host_wire.render_properties),
        ),
    },
    "/v1/os-hosts/properties/{name}": {
        "PATCH": row(
            handler=always(host.update_property),
            policy="reservation:hosts:properties:update",
            body=always(host_wire.PATCH_PROPERTY),
            reply=always(host_wire.render_property),
        ),
    },
    "/v1/os-hosts/{identifier}": {
        "GET": of_host(
            handler=always(host.show_host),
            policy="reservation:hosts:show",
            reply=always(host_wire.render_host),
        ),
        "PUT": of_host(
            handler=always(host.update_host),
            policy="reservation:hosts:update",
            body=always(host_wire.PUT_HOST),
            reply=always(host_wire.render_host),
        ),
        "DELETE": of_host(
            handler=always(host.delete_host),
            policy="reservation:hosts:delete",
        ),
    },
    "/v1/os-hosts/{identifier}/allocation": {
        "GET": of_host(
            handler=always(host.show_allocation),
            policy="reservation:hosts:allocations:show",
            reply=always(allocation_wire.render_allocation),
        ),
    },
    "/v1/flavors": {
        "GET": row(
            handler=always(flavor.list_flavors),
            policy="reservation:flavors:list",
            reply=always(flavor_wire.render_flavors),
        ),
    },
    "/v1/flavors/{flavor_id}": {
        "GET": row(
            handler=always(flavor.show_flavor),
            policy="reservation:flavors:show",
            reply=always(flavor_wire.render_flavor),
        ),
    },
}
