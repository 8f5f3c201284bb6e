"""The fields of a node: their names, and since which microversion they exist."""

from placement_foundation.http.version import Version
from placement_nodes import version

# The interfaces of a node, and the default of each: none of them controls any hardware.
INTERFACES = {
    "boot": "fake",
    "console": "fake",
    "deploy": "fake",
    "inspect": "fake",
    "management": "fake",
    "network": "noop",
    "power": "fake",
    "raid": "fake",
    "storage": "noop",
    "vendor": "fake",
}
INTERFACE_FIELDS = {f"{kind}_interface": kind for kind in INTERFACES}

STATE_FIELDS = (
    "power_state",
    "target_power_state",
    "provision_state",
    "target_provision_state",
    "provision_updated_at",
    "last_error",
)
OBJECT_FIELDS = ("properties", "extra", "driver_info", "instance_info")
# The fields that a PATCH may change.
CHANGEABLE = (
    "name",
    "driver",
    "resource_class",
    *OBJECT_FIELDS,
    "instance_uuid",
    "chassis_uuid",
    "maintenance",
    *INTERFACE_FIELDS,
)
ALL_FIELDS = (
    "uuid",
    *CHANGEABLE,
    "maintenance_reason",
    *STATE_FIELDS,
    "reservation",
    "created_at",
    "updated_at",
    "traits",
    "links",
)
SHORT_FIELDS = (
    "uuid",
    "name",
    "instance_uuid",
    "maintenance",
    "power_state",
    "provision_state",
    "links",
)
# The fields that came with a later microversion.
SINCE = {"resource_class": version.RESOURCE_CLASS, "traits": version.TRAITS}


def is_known(field: str, at: Version) -> bool:
    """Return whether nodes have a field at a microversion."""
    return field in ALL_FIELDS and at >= SINCE.get(field, version.MINIMUM)
