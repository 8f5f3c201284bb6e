"""The API as a table: path -> method -> Operation.

If you read one file, read this one.
"""

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

# A parameter that is not known may be a filter that was mistyped.
NO_QUERY = always(query_string.refuse_all)

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
        "GET": Operation(
            handler=always(lease.list_leases),
            policy="reservation:leases:list",
            query=NO_QUERY,
            reply=always(lease_wire.render_leases),
        ),
        "POST": Operation(
            handler=always(lease.create_lease),
            policy="reservation:leases:create",
            query=NO_QUERY,
            body=always(lease_wire.POST_LEASE),
            reply=always(lease_wire.render_lease),
        ),
    },
    "/v1/leases/free": {
        "GET": Operation(
            handler=always(lease.list_free),
            policy="reservation:leases:list_free",
            query=always(free_wire.parse_query),
            reply=always(free_wire.render),
        ),
    },
    "/v1/leases/{lease_id}": {
        "GET": Operation(
            handler=always(lease.show_lease),
            policy="reservation:leases:show",
            query=NO_QUERY,
            subject=always(leases.get),
            owner=leases.owner_of,
            reply=always(lease_wire.render_lease),
        ),
        "PUT": Operation(
            handler=always(lease.update_lease),
            policy="reservation:leases:update",
            query=NO_QUERY,
            subject=always(leases.get),
            owner=leases.owner_of,
            body=always(lease_wire.PUT_LEASE),
            reply=always(lease_wire.render_lease),
        ),
        "DELETE": Operation(
            handler=always(lease.delete_lease),
            policy="reservation:leases:delete",
            query=NO_QUERY,
            subject=always(leases.get),
            owner=leases.owner_of,
        ),
    },
    "/v1/os-hosts": {
        "GET": Operation(
            handler=always(host.list_hosts),
            policy="reservation:hosts:list",
            query=NO_QUERY,
            reply=always(host_wire.render_hosts),
        ),
        "POST": Operation(
            handler=always(host.create_host),
            policy="reservation:hosts:create",
            query=NO_QUERY,
            body=always(host_wire.POST_HOST),
            reply=always(host_wire.render_host),
        ),
    },
    "/v1/os-hosts/allocations": {
        "GET": Operation(
            handler=always(host.list_allocations),
            policy="reservation:hosts:allocations:list",
            query=always(allocation_wire.parse_query),
            reply=always(allocation_wire.render_allocations),
        ),
    },
    "/v1/os-hosts/properties": {
        "GET": Operation(
            handler=always(host.list_properties),
            policy="reservation:hosts:properties:list",
            query=always(host_wire.parse_properties_query),
            reply=always(host_wire.render_properties),
        ),
    },
    "/v1/os-hosts/properties/{name}": {
        "PATCH": Operation(
            handler=always(host.update_property),
            policy="reservation:hosts:properties:update",
            query=NO_QUERY,
            body=always(host_wire.PATCH_PROPERTY),
            reply=always(host_wire.render_property),
        ),
    },
    "/v1/os-hosts/{identifier}": {
        "GET": Operation(
            handler=always(host.show_host),
            policy="reservation:hosts:show",
            query=NO_QUERY,
            subject=always(hosts.get),
            reply=always(host_wire.render_host),
        ),
        "PUT": Operation(
            handler=always(host.update_host),
            policy="reservation:hosts:update",
            query=NO_QUERY,
            subject=always(hosts.get),
            body=always(host_wire.PUT_HOST),
            reply=always(host_wire.render_host),
        ),
        "DELETE": Operation(
            handler=always(host.delete_host),
            policy="reservation:hosts:delete",
            query=NO_QUERY,
            subject=always(hosts.get),
        ),
    },
    "/v1/os-hosts/{identifier}/allocation": {
        "GET": Operation(
            handler=always(host.show_allocation),
            policy="reservation:hosts:allocations:show",
            query=NO_QUERY,
            subject=always(hosts.get),
            reply=always(allocation_wire.render_allocation),
        ),
    },
    "/v1/flavors": {
        "GET": Operation(
            handler=always(flavor.list_flavors),
            policy="reservation:flavors:list",
            query=NO_QUERY,
            reply=always(flavor_wire.render_flavors),
        ),
    },
    "/v1/flavors/{flavor_id}": {
        "GET": Operation(
            handler=always(flavor.show_flavor),
            policy="reservation:flavors:show",
            query=NO_QUERY,
            reply=always(flavor_wire.render_flavor),
        ),
    },
}
