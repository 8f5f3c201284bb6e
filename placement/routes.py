"""The API as a table: path -> method -> Operation.

If you read one file, read this one. Methods are in the order in which ``Allow`` lists
them. ``Operation`` explains the fields of a row.
"""

import functools

from placement import errors, measure
from placement.handlers import (
    aggregate,
    allocation,
    allocation_candidate,
    inventory,
    reshaper,
    root,
    trait,
    usage,
)
from placement.handlers import resource_class as classes
from placement.handlers import resource_provider as provider
from placement.handlers.ledger import (
    audit,
    capacity,
    declaration,
    explanation,
    fleet,
    journal,
    lease,
    placing,
    what_if,
)
from placement.handlers.ledger import root as ledger
from placement.objects import resource_provider
from placement.schemas import aggregate as aggregate_wire
from placement.schemas import allocation as allocation_wire
from placement.schemas import allocation_candidate as candidate_wire
from placement.schemas import audit as audit_wire
from placement.schemas import capacity as capacity_wire
from placement.schemas import declaration as declaration_wire
from placement.schemas import explanation as explanation_wire
from placement.schemas import fleet as fleet_wire
from placement.schemas import inventory as inventory_wire
from placement.schemas import journal as journal_wire
from placement.schemas import lease as lease_wire
from placement.schemas import ledger as ledger_wire
from placement.schemas import placing as placing_wire
from placement.schemas import query as query_wire
from placement.schemas import reshaper as reshaper_wire
from placement.schemas import resource_class as class_wire
from placement.schemas import resource_provider as provider_wire
from placement.schemas import root as root_wire
from placement.schemas import trait as trait_wire
from placement.schemas import usage as usage_wire
from placement.schemas import what_if as what_if_wire
from placement_foundation.http.answer import LINES
from placement_foundation.http.operation import Deviation, Operation
from placement_foundation.http.version import ByVersion, always, since

# Answers of these rows carry the time of the last change since one microversion.
dated = functools.partial(Operation, dated=(1, 15))
of_provider = functools.partial(dated, subject=always(resource_provider.get_by_uuid))
# Only our own clients know the ledger API. Some of its answers take long.
of_ledger = functools.partial(Operation, newest_by_default=True)
heavy = functools.partial(of_ledger, heavy=True)
of_lease = functools.partial(of_ledger, parse_path=allocation_wire.parse_consumer_uuid)

ROUTES: dict[str, dict[str, Operation]] = {
    "/": {
        "GET": dated(
            handler=always(root.show_versions),
            policy=None,
            reply=always(root_wire.render_versions),
            deviation=Deviation.ACCEPTS_ANYTHING,
        ),
    },
    "/allocation_candidates": {
        "GET": dated(
            handler=since(1, 10, allocation_candidate.list_candidates),
            policy="placement:allocation_candidates:list",
            query=query_wire.CANDIDATES,
            reply=always(candidate_wire.render),
        ),
    },
    "/allocations": {
        "POST": Operation(
            handler=since(1, 13, allocation.replace_of_consumers),
            policy="placement:allocations:manage",
            body=allocation_wire.POST,
            counted=measure.CLAIMS,
        ),
    },
    "/allocations/{consumer_uuid}": {
        "GET": dated(
            handler=always(allocation.list_by_consumer),
            policy="placement:allocations:list",
            reply=always(allocation_wire.render_consumer),
        ),
        "PUT": Operation(
            handler=always(allocation.replace_of_consumer),
            policy="placement:allocations:update",
            parse_path=allocation_wire.parse_consumer_uuid,
            body=allocation_wire.PUT,
            counted=measure.CLAIMS,
        ),
        "DELETE": Operation(
            handler=always(allocation.delete_of_consumer),
            policy="placement:allocations:delete",
        ),
    },
    "/resource_providers/{uuid}/allocations": {
        "GET": dated(
            handler=always(allocation.list_by_provider),
            policy="placement:resource_providers:allocations:list",
            reply=always(allocation_wire.render_provider),
        ),
    },
    "/ledger/v1": {
        "GET": of_ledger(
            handler=always(ledger.show_index),
            policy=None,
            reply=always(ledger_wire.render_index),
        ),
    },
    "/ledger/v1/explanation": {
        "GET": heavy(
            handler=since(1, 10, explanation.explain),
            policy="placement:ledger:explanation",
            query=explanation_wire.QUERY,
            reply=always(explanation_wire.render),
        ),
    },
    "/ledger/v1/capacity": {
        "GET": heavy(
            handler=since(1, 10, capacity.show_capacity),
            policy="placement:ledger:capacity",
            query=capacity_wire.QUERY,
            reply=always(capacity_wire.render),
        ),
    },
    "/ledger/v1/what-if": {
        "POST": heavy(
            handler=since(1, 10, what_if.answer),
            policy="placement:ledger:what_if",
            query=what_if_wire.QUERIES,
            body=always(what_if_wire.BODY),
            reply=always(what_if_wire.render),
        ),
    },
    "/ledger/v1/apply": {
        "POST": heavy(
            handler=always(declaration.apply),
            policy="placement:ledger:apply",
            body=always(declaration_wire.BODY),
            reply=always(declaration_wire.render_outcome),
        ),
    },
    "/ledger/v1/declared": {
        "GET": heavy(
            handler=always(declaration.list_declared),
            policy="placement:ledger:declared",
            query=always(declaration_wire.parse_query),
            reply=always(declaration_wire.render_declared),
        ),
    },
    "/ledger/v1/names": {
        "GET": of_ledger(
            handler=always(declaration.list_names),
            policy="placement:ledger:names",
            query=always(declaration_wire.parse_owner),
            reply=always(declaration_wire.render_names),
        ),
    },
    "/ledger/v1/audits": {
        "GET": of_ledger(
            handler=always(audit.list_audits),
            policy="placement:ledger:audits:list",
            reply=always(audit_wire.render_list),
        ),
    },
    "/ledger/v1/audits/{name}": {
        "PUT": of_ledger(
            handler=always(audit.record),
            policy="placement:ledger:audits:update",
            parse_path=audit_wire.parse_name,
            body=always(audit_wire.BODY),
        ),
        "DELETE": of_ledger(
            handler=always(audit.forget),
            policy="placement:ledger:audits:delete",
            parse_path=audit_wire.parse_name,
        ),
    },
    "/ledger/v1/fleet": {
        "GET": heavy(
            handler=always(fleet.list_fleet),
            policy="placement:ledger:fleet",
            query=always(fleet_wire.PARSER),
            reply=always(fleet_wire.render),
            formats={LINES: fleet_wire.render_lines},
            tagged=True,
        ),
    },
    "/ledger/v1/placements": {
        "POST": of_ledger(
            handler=since(1, 10, placing.place),
            policy="placement:ledger:placements",
            query=placing_wire.QUERY,
            body=always(placing_wire.BODY),
            reply=always(placing_wire.render),
            may_create=True,
            heavy=placing_wire.is_heavy,
        ),
    },
    "/ledger/v1/changes": {
        "GET": of_ledger(
            handler=always(journal.list_changes),
            policy="placement:ledger:changes",
            query=always(journal_wire.parse_feed),
            reply=always(journal_wire.render_feed),
            formats=journal_wire.FEED_FORMATS,
        ),
    },
    "/ledger/v1/history": {
        "GET": of_ledger(
            handler=always(journal.list_history),
            policy="placement:ledger:history",
            query=always(journal_wire.parse_history),
            reply=always(journal_wire.render_history),
        ),
    },
    "/ledger/v1/history/allocations": {
        "GET": heavy(
            handler=always(journal.show_allocations),
            policy="placement:ledger:history",
            query=always(journal_wire.parse_past),
            reply=always(journal_wire.render_past),
        ),
    },
    "/ledger/v1/leases": {
        "GET": of_ledger(
            handler=always(lease.list_leases),
            policy="placement:ledger:leases:list",
            query=always(lease_wire.parse),
            reply=always(lease_wire.render_list),
        ),
    },
    "/ledger/v1/leases/{consumer_uuid}": {
        "GET": of_lease(
            handler=always(lease.show),
            policy="placement:ledger:leases:show",
            reply=always(lease_wire.render),
        ),
        "PUT": of_lease(
            handler=always(lease.renew),
            policy="placement:ledger:leases:update",
            body=always(lease_wire.BODY),
            reply=always(lease_wire.render),
        ),
        "DELETE": of_lease(
            handler=always(lease.confirm),
            policy="placement:ledger:leases:delete",
        ),
    },
    "/reshaper": {
        "POST": Operation(
            handler=since(1, 30, reshaper.reshape),
            policy="placement:reshaper:reshape",
            body=reshaper_wire.POST,
        ),
    },
    "/resource_classes": {
        "GET": dated(
            handler=since(1, 2, classes.list_classes),
            policy="placement:resource_classes:list",
            reply=always(class_wire.render_classes),
        ),
        "POST": Operation(
            handler=since(1, 2, classes.create_class),
            policy="placement:resource_classes:create",
            body=always(class_wire.RESOURCE_CLASS),
            status=always(201),
        ),
    },
    "/resource_classes/{name}": {
        "GET": dated(
            handler=since(1, 2, classes.show_class),
            policy="placement:resource_classes:show",
            reply=always(class_wire.render_class),
        ),
        "PUT": Operation(
            handler=ByVersion({(1, 2): classes.rename, (1, 7): classes.ensure}),
            policy="placement:resource_classes:update",
            body=ByVersion({(1, 2): class_wire.RESOURCE_CLASS, (1, 7): None}),
            may_create=True,
            reply=ByVersion({(1, 2): class_wire.render_class, (1, 7): None}),
        ),
        "DELETE": Operation(
            handler=since(1, 2, classes.delete_class),
            policy="placement:resource_classes:delete",
        ),
    },
    "/resource_providers": {
        "GET": dated(
            handler=always(provider.list_providers),
            policy="placement:resource_providers:list",
            query=provider_wire.LIST,
            reply=always(provider_wire.render_providers),
        ),
        "POST": Operation(
            handler=always(provider.create_provider),
            policy="placement:resource_providers:create",
            body=provider_wire.CREATE,
            status=ByVersion({(1, 0): 201, (1, 20): 200}),
            reply=since(1, 20, provider_wire.render_provider),
            dated=(1, 20),
        ),
    },
    "/resource_providers/{uuid}": {
        "GET": dated(
            handler=always(provider.show_provider),
            policy="placement:resource_providers:show",
            reply=always(provider_wire.render_provider),
        ),
        "DELETE": Operation(
            handler=always(provider.delete_provider),
            policy="placement:resource_providers:delete",
            subject=always(provider.load_for_deletion),
        ),
        "PUT": of_provider(
            handler=always(provider.update_provider),
            policy="placement:resource_providers:update",
            body=provider_wire.UPDATE,
            flags={"allow_reparenting": (1, 37)},
            reply=always(provider_wire.render_provider),
        ),
    },
    "/resource_providers/{uuid}/inventories": {
        "GET": dated(
            handler=always(inventory.list_inventories),
            policy="placement:resource_providers:inventories:list",
            reply=always(inventory_wire.render_inventories),
        ),
        "POST": of_provider(
            handler=always(inventory.create_inventory),
            policy="placement:resource_providers:inventories:create",
            body=always(inventory_wire.POST_INVENTORY),
            flags={"reserved_may_be_total": (1, 26)},
            status=always(201),
            reply=always(inventory_wire.render_inventory),
        ),
        "PUT": of_provider(
            handler=always(inventory.replace_inventories),
            policy="placement:resource_providers:inventories:update",
            body=always(inventory_wire.PUT_INVENTORIES),
            flags={"reserved_may_be_total": (1, 26)},
            reply=always(inventory_wire.render_inventories),
        ),
        "DELETE": Operation(
            handler=since(1, 5, inventory.delete_inventories),
            absent=errors.MethodNotAllowed,
            policy="placement:resource_providers:inventories:delete",
            subject=always(resource_provider.get_by_uuid),
        ),
    },
    "/resource_providers/{uuid}/inventories/{resource_class}": {
        "GET": dated(
            handler=always(inventory.show_inventory),
            policy="placement:resource_providers:inventories:show",
            reply=always(inventory_wire.render_inventory),
        ),
        "PUT": dated(
            handler=always(inventory.update_inventory),
            policy="placement:resource_providers:inventories:update",
            subject=always(inventory.load_provider),
            body=always(inventory_wire.PUT_INVENTORY),
            flags={"reserved_may_be_total": (1, 26)},
            reply=always(inventory_wire.render_inventory),
        ),
        "DELETE": Operation(
            handler=always(inventory.delete_inventory),
            policy="placement:resource_providers:inventories:delete",
            subject=always(inventory.load_provider),
        ),
    },
    "/resource_providers/{uuid}/aggregates": {
        "GET": dated(
            handler=since(1, 1, aggregate.list_aggregates),
            policy="placement:resource_providers:aggregates:list",
            reply=always(aggregate_wire.render_aggregates),
            deviation=Deviation.MEDIA_TYPE_FIRST,
        ),
        "PUT": of_provider(
            handler=since(1, 1, aggregate.replace_aggregates),
            policy="placement:resource_providers:aggregates:update",
            body=aggregate_wire.PUT_AGGREGATES,
            reply=always(aggregate_wire.render_aggregates),
            deviation=Deviation.MEDIA_TYPE_FIRST,
        ),
    },
    "/resource_providers/{uuid}/traits": {
        "GET": dated(
            handler=since(1, 6, trait.list_provider_traits),
            policy="placement:resource_providers:traits:list",
            reply=always(trait_wire.render_provider_traits),
        ),
        "PUT": of_provider(
            handler=since(1, 6, trait.replace_provider_traits),
            policy="placement:resource_providers:traits:update",
            body=always(trait_wire.PUT_TRAITS),
            deviation=Deviation.BODY_FIRST,
            reply=always(trait_wire.render_provider_traits),
        ),
        "DELETE": Operation(
            handler=since(1, 6, trait.delete_provider_traits),
            policy="placement:resource_providers:traits:delete",
            subject=always(resource_provider.get_by_uuid),
        ),
    },
    "/resource_providers/{uuid}/usages": {
        "GET": dated(
            handler=always(usage.list_provider_usages),
            policy="placement:resource_providers:usages",
            reply=always(usage_wire.render_provider_usages),
        ),
    },
    "/traits": {
        "GET": dated(
            handler=since(1, 6, trait.list_traits),
            policy="placement:traits:list",
            query=always(trait_wire.parse_filters),
            reply=always(trait_wire.render_traits),
        ),
    },
    "/traits/{name}": {
        "GET": dated(
            handler=since(1, 6, trait.show_trait),
            policy="placement:traits:show",
        ),
        "PUT": dated(
            handler=since(1, 6, trait.ensure_trait),
            policy="placement:traits:update",
            may_create=True,
        ),
        "DELETE": Operation(
            handler=since(1, 6, trait.delete_trait),
            policy="placement:traits:delete",
        ),
    },
    "/usages": {
        "GET": dated(
            handler=since(1, 9, usage.list_usages),
            policy="placement:usages",
            policy_project="project_id",
            query=usage_wire.PARSE_OWNER,
            reply=usage_wire.RENDER_USAGES,
        ),
    },
}
