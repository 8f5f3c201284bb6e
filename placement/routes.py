"""The API as a table: path -> method -> Operation.

If you read one file, read this one. Methods stand in the order in which ``Allow`` lists
them. How a row is read is told by ``Operation``.
"""

from placement.handlers import root
from placement.microversion import always
from placement.operation import Operation
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
}
