"""Resource classes."""

from placement import errors
from placement.objects import clock, resource_class
from placement.objects.transaction import Transaction
from placement.operation import Call
from placement.schemas import resource_class as wire
from placement_foundation.http.operation import Connection, Reply, reading, writing


@reading
def list_classes(call: Call[None], connection: Connection) -> Reply:
    """List all resource classes."""
    classes = resource_class.list_all(connection)
    return Reply(classes, modified=clock.newest(each.modified for each in classes))


@reading
def show_class(call: Call[None], connection: Connection) -> Reply:
    """Show a resource class.

    :raises NotFound: there is none
    """
    found = resource_class.get_by_name(connection, call.path["name"])
    return Reply(found, modified=clock.newest([found.modified]))


@writing
def create_class(call: Call[None], tx: Transaction) -> Reply:
    """Create a custom resource class.

    :raises Conflict: there is one of that name
    """
    name = call.body["name"]
    if not resource_class.ensure(tx, [name]):
        raise errors.Conflict(f"Conflicting resource class already exists: {name}")
    return Reply(location=wire.path(name))


@writing
def ensure(call: Call[None], tx: Transaction) -> Reply:
    """Create a custom resource class, or confirm that it exists.

    :raises BadRequest: the name is not valid for a custom class
    """
    name = call.path["name"]
    wire.check_name(name)
    new = resource_class.ensure(tx, [name])
    return Reply(location=wire.path(name), created=bool(new))


@writing
def rename(call: Call[None], tx: Transaction) -> Reply:
    """Rename a custom resource class.

    :raises NotFound: there is none
    :raises BadRequest: it is a standard one
    :raises Conflict: another class has that name
    """
    found = resource_class.lock_by_name(tx, call.path["name"])
    if found.is_standard:
        raise errors.BadRequest(f"Cannot update standard resource class {found.name}")
    name = call.body["name"]
    other = resource_class.find_by_name(tx.connection, name)
    if other and other.id != found.id:
        raise errors.Conflict(f"Resource class already exists: {name}")
    resource_class.rename(tx, found, name)
    return Reply(resource_class.get_by_name(tx.connection, name))


@writing
def delete_class(call: Call[None], tx: Transaction) -> Reply:
    """Delete a custom resource class.

    :raises NotFound: there is none
    :raises BadRequest: it is a standard one
    :raises Conflict: a provider has an inventory of it
    """
    failed = "Error in delete resource class: "
    found = resource_class.lock_by_name(tx, call.path["name"])
    if found.is_standard:
        raise errors.BadRequest(
            f"{failed}Cannot delete standard resource class {found.name}."
        )
    with errors.retold(errors.Conflict, failed):
        resource_class.delete(tx, found)
    return Reply()
