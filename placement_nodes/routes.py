"""The API as a table: path -> method -> Operation.

``Operation`` describes the fields of a row.
"""

from functools import partial

from placement_foundation import errors
from placement_foundation.http.operation import Deviation, Handler, Operation
from placement_foundation.http.version import ByVersion, always, since
from placement_nodes import version
from placement_nodes.handlers import node, root
from placement_nodes.objects import node as ledger
from placement_nodes.schemas import node as node_wire
from placement_nodes.schemas import patch as patch_wire
from placement_nodes.schemas import query
from placement_nodes.schemas import root as root_wire
from placement_nodes.schemas import state as state_wire
from placement_nodes.schemas import trait as trait_wire

# Rows about a node, and about its traits, which came with a later version.
of_node = partial(
    Operation,
    subject=ByVersion(
        {
            version.MINIMUM: partial(ledger.get_by_ident, by_name=False),
            version.NAMES: partial(ledger.get_by_ident, by_name=True),
        }
    ),
)
of_traits = partial(of_node, absent=errors.NotAcceptable)


def with_traits(handler: Handler) -> ByVersion[Handler]:
    """Return the history of an operation that came with traits."""
    return since(*version.TRAITS, handler)


V1 = {
    "GET": Operation(
        handler=always(root.show),
        policy=None,
        reply=always(root_wire.render_v1),
        deviation=Deviation.ACCEPTS_ANYTHING,
    ),
}
NODES = {
    "GET": Operation(
        handler=always(node.list_nodes),
        policy="baremetal:node:list",
        query=query.by_version(query.parse_list),
        reply=always(node_wire.render_list),
    ),
    "POST": Operation(
        handler=always(node.create_node),
        policy="baremetal:node:create",
        body=node_wire.POST,
        status=always(201),
        reply=always(node_wire.render_node),
    ),
}

ROUTES: dict[str, dict[str, Operation]] = {
    "/": {
        "GET": Operation(
            handler=always(root.show),
            policy=None,
            reply=always(root_wire.render_root),
            deviation=Deviation.ACCEPTS_ANYTHING,
        ),
    },
    "/healthcheck": {
        "GET": Operation(
            handler=always(root.check_health),
            policy=None,
            reply=always(root_wire.render_health),
            deviation=Deviation.ACCEPTS_ANYTHING,
        ),
    },
    # Clients send the path with and without the slash.
    "/v1": V1,
    "/v1/": V1,
    "/v1/drivers": {
        "GET": Operation(
            handler=always(root.list_drivers),
            policy="baremetal:driver:list",
            reply=always(root_wire.render_drivers),
        ),
    },
    "/v1/nodes": NODES,
    "/v1/nodes/": NODES,
    "/v1/nodes/detail": {
        "GET": Operation(
            handler=always(node.list_nodes),
            policy="baremetal:node:list",
            query=query.by_version(query.parse_whole_list),
            reply=always(node_wire.render_whole_list),
        ),
    },
    "/v1/nodes/{ident}": {
        "GET": of_node(
            handler=always(node.show_node),
            policy="baremetal:node:show",
            query=query.by_version(query.parse_fields),
            reply=always(node_wire.render_shown),
        ),
        "PATCH": of_node(
            handler=always(node.update_node),
            policy="baremetal:node:update",
            body=patch_wire.BODY,
            reply=always(node_wire.render_node),
        ),
        "DELETE": of_node(
            handler=always(node.delete_node),
            policy="baremetal:node:delete",
        ),
    },
    "/v1/nodes/{ident}/validate": {
        "GET": of_node(
            handler=always(node.load_node),
            policy="baremetal:node:validate",
            reply=always(state_wire.render_validation),
        ),
    },
    "/v1/nodes/{ident}/states": {
        "GET": of_node(
            handler=always(node.load_node),
            policy="baremetal:node:states:show",
            reply=always(node_wire.render_states),
        ),
    },
    "/v1/nodes/{ident}/states/provision": {
        "PUT": of_node(
            handler=always(node.provision_node),
            policy="baremetal:node:states:provision",
            body=always(state_wire.PROVISION),
            status=always(202),
        ),
    },
    "/v1/nodes/{ident}/states/power": {
        "PUT": of_node(
            handler=always(node.switch_power),
            policy="baremetal:node:states:power",
            body=always(state_wire.POWER),
            status=always(202),
        ),
    },
    "/v1/nodes/{ident}/maintenance": {
        "PUT": of_node(
            handler=always(node.set_maintenance),
            policy="baremetal:node:maintenance:set",
            body=always(state_wire.MAINTENANCE),
            deviation=Deviation.BODY_OPTIONAL,
            status=always(202),
        ),
        "DELETE": of_node(
            handler=always(node.clear_maintenance),
            policy="baremetal:node:maintenance:clear",
            status=always(202),
        ),
    },
    "/v1/nodes/{ident}/traits": {
        "GET": of_traits(
            handler=with_traits(node.list_traits),
            policy="baremetal:node:traits:list",
            reply=always(trait_wire.render_traits),
        ),
        "PUT": of_traits(
            handler=with_traits(node.replace_traits),
            policy="baremetal:node:traits:set",
            body=always(trait_wire.REPLACEMENT),
            reply=always(trait_wire.render_traits),
        ),
        "DELETE": of_traits(
            handler=with_traits(node.delete_traits),
            policy="baremetal:node:traits:delete",
        ),
    },
    "/v1/nodes/{ident}/traits/{trait}": {
        "PUT": of_traits(
            handler=with_traits(node.add_trait),
            policy="baremetal:node:traits:set",
            body=always(trait_wire.NOTHING),
            deviation=Deviation.BODY_OPTIONAL,
        ),
        "DELETE": of_traits(
            handler=with_traits(node.delete_trait),
            policy="baremetal:node:traits:delete",
        ),
    },
}
