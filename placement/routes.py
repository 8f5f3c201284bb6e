"""The API as a table: path -> method -> Operation.

If you read one file, read this one. Methods stand in the order in which ``Allow`` lists
them. How a row is read is told by ``Operation``.
"""

import functools

from placement.handlers import allocation, root
from placement.microversion import ByVersion, always, since
from placement.objects import consumer, resource_provider
from placement.operation import Operation
from placement.schemas import allocation as allocation_wire
from placement.schemas import root as root_wire

ROUTES: dict[str, dict[str, Operation]] = {
    "/": {
        "GET": Operation(
            handler=always(root.show_versions),
            policy=None,
            reply=always(root_wire.render_versions),
            accepts_anything=True,
            dated=(1, 15),
        ),
    },
    "/allocations": {
        "POST": Operation(
            handler=since(1, 13, allocation.replace_of_consumers),
            policy="placement:allocations:manage",
            body=ByVersion(
                {
                    (1, 13): allocation_wire.POST_V1_13,
                    (1, 28): allocation_wire.POST_V1_28,
                    (1, 34): allocation_wire.POST_V1_34,
                    (1, 38): allocation_wire.POST_V1_38,
                }
            ),
            status=always(204),
        ),
    },
    "/allocations/{consumer_uuid}": {
        "GET": Operation(
            handler=always(allocation.list_by_consumer),
            policy="placement:allocations:list",
            reply=always(allocation_wire.render_consumer),
            dated=(1, 15),
        ),
        "PUT": Operation(
            handler=always(allocation.replace_of_consumer),
            policy="placement:allocations:update",
            subject=consumer.parse_uuid,
            body=ByVersion(
                {
                    (1, 0): allocation_wire.PUT_V1_0,
                    (1, 8): allocation_wire.PUT_V1_8,
                    (1, 12): allocation_wire.PUT_V1_12,
                    (1, 28): allocation_wire.PUT_V1_28,
                    (1, 34): allocation_wire.PUT_V1_34,
                    (1, 38): allocation_wire.PUT_V1_38,
                }
            ),
            status=always(204),
        ),
        "DELETE": Operation(
            handler=always(allocation.delete_of_consumer),
            policy="placement:allocations:delete",
            status=always(204),
        ),
    },
    "/resource_providers/{uuid}/allocations": {
        "GET": Operation(
            handler=always(allocation.list_by_provider),
            policy="placement:resource_providers:allocations:list",
            subject=functools.partial(
                resource_provider.get_by_uuid,
                missing="Resource provider '{uuid}' not found",
            ),
            reply=always(allocation_wire.render_provider),
            dated=(1, 15),
        ),
    },
}
