"""Lists declarations, and how the stored providers differ from them."""

from placement.declaration import reading, unit
from placement.forest.cache import CachedForest
from placement.model.declaration import Remembered
from placement.objects import declared as stored
from placement.objects.transaction import Connection


def list_declared(
    connection: Connection,
    owner: str | None,
    *,
    drift: bool = False,
    cache: CachedForest | None = None,
) -> list[Remembered]:
    """Return declarations, by owner and then by UUID of the provider.

    :param owner: whose declarations; None means those of all
    :param drift: leave out providers that are as declared
    :param cache: keeps the forest, if it is kept
    :raises UnusableTable: there is no table to remember declarations in
    """
    stored.check_table(connection)
    world = reading.load_declared(connection, owner, cache)
    every = []
    for uuid, owners in world.declared.items():
        provider = world.by_uuid.get(uuid)
        for each, what in owners.items():
            name = provider.name if provider else what.name
            differences = tuple(unit.drift_of(what, provider, name or uuid))
            root_uuid = provider.root_uuid if provider else None
            every.append(Remembered(each, uuid, name, root_uuid, what, differences))
    every.sort(key=lambda each: (each.owner, each.uuid))
    return [each for each in every if each.drift or not drift]
