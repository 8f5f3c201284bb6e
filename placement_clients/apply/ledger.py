"""What the ledger API answers, which this command needs."""

from collections.abc import Mapping

from placement_clients.client import Client
from placement_clients.errors import NotFound
from placement_clients.output import Unusable
from placement_clients.record import Json

VERSION = "latest"
NEEDED = "this Placement has no /ledger/v1, which placement-apply needs"


def get(placement: Client, name: str, query: Mapping[str, str] | None = None) -> Json:
    """Return a document of the ledger API.

    :raises Unusable: the service does not have it
    """
    try:
        return placement.get(f"/ledger/v1/{name}", version=VERSION, query=query or {})
    except NotFound as exc:
        raise Unusable(NEEDED) from exc
