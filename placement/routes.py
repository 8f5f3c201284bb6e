"""The API as a table: path -> method -> Operation.

If you read one file, read this one. Methods are in the order in which ``Allow`` lists
them. ``Operation`` explains the fields of a row.
"""

from placement import errors, measure
from placement.handlers import (
    aggregate,
    allocation,
    allocation_candidate,
    inventory,
    reshaper,
    resource_class,
    root,
    trait,
    usage,
)
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

ROUTES: dict[str, dict[str, Operation]] = {
    "/": {
        "GET": Operation(
            handler=always(root.show_versions),
            policy=None,
            reply=always(root_wire.render_versions),
            deviation=Deviation.ACCEPTS_ANYTHING,
            dated=(1, 15),
        ),
    },
    "/allocation_candidates": {
        "GET": Operation(
            handler=since(1, 10, allocation_candidate.list_candidates),
            policy="placement:allocation_candidates:list",
            query=candidate_wire.QUERY,
            reply=always(candidate_wire.render),
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
            counted=measure.CLAIMS,
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
            parse_path=allocation_wire.parse_consumer_uuid,
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
            counted=measure.CLAIMS,
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
            reply=always(allocation_wire.render_provider),
            dated=(1, 15),
        ),
    },
    "/ledger/v1": {
        "GET": Operation(
            handler=always(ledger.show_index),
            policy=None,
            reply=always(ledger_wire.render_index),
            newest_by_default=True,
        ),
    },
    "/ledger/v1/explanation": {
        "GET": Operation(
            handler=since(1, 10, explanation.explain),
            policy="placement:ledger:explanation",
            query=explanation_wire.QUERY,
            reply=always(explanation_wire.render),
            newest_by_default=True,
            heavy=True,
        ),
    },
    "/ledger/v1/capacity": {
        "GET": Operation(
            handler=since(1, 10, capacity.show_capacity),
            policy="placement:ledger:capacity",
            query=capacity_wire.QUERY,
            reply=always(capacity_wire.render),
            newest_by_default=True,
            heavy=True,
        ),
    },
    "/ledger/v1/what-if": {
        "POST": Operation(
            handler=since(1, 10, what_if.answer),
            policy="placement:ledger:what_if",
            query=what_if_wire.QUERIES,
            body=always(what_if_wire.BODY),
            reply=always(what_if_wire.render),
            newest_by_default=True,
            heavy=True,
        ),
    },
    "/ledger/v1/apply": {
        "POST": Operation(
            handler=always(declaration.apply),
            policy="placement:ledger:apply",
            body=always(declaration_wire.BODY),
            reply=always(declaration_wire.render_outcome),
            newest_by_default=True,
            heavy=True,
        ),
    },
    "/ledger/v1/declared": {
        "GET": Operation(
            handler=always(declaration.list_declared),
            policy="placement:ledger:declared",
            query=always(declaration_wire.QUERY),
            reply=always(declaration_wire.render_declared),
            newest_by_default=True,
            heavy=True,
        ),
    },
    "/ledger/v1/names": {
        "GET": Operation(
            handler=always(declaration.list_names),
            policy="placement:ledger:names",
            query=always(declaration_wire.OWNER_QUERY),
            reply=always(declaration_wire.render_names),
            newest_by_default=True,
        ),
    },
    "/ledger/v1/audits": {
        "GET": Operation(
            handler=always(audit.list_audits),
            policy="placement:ledger:audits:list",
            reply=always(audit_wire.render_list),
            newest_by_default=True,
        ),
    },
    "/ledger/v1/audits/{name}": {
        "PUT": Operation(
            handler=always(audit.record),
            policy="placement:ledger:audits:update",
            parse_path=audit_wire.parse_name,
            body=always(audit_wire.BODY),
            status=always(204),
            newest_by_default=True,
        ),
        "DELETE": Operation(
            handler=always(audit.forget),
            policy="placement:ledger:audits:delete",
            parse_path=audit_wire.parse_name,
            status=always(204),
            newest_by_default=True,
        ),
    },
    "/ledger/v1/fleet": {
        "GET": Operation(
            handler=always(fleet.list_fleet),
            policy="placement:ledger:fleet",
            query=always(fleet_wire.PARSER),
            reply=always(fleet_wire.render),
            formats={LINES: fleet_wire.render_lines},
            tagged=True,
            newest_by_default=True,
            heavy=True,
        ),
    },
    "/ledger/v1/placements": {
        "POST": Operation(
            handler=since(1, 10, placing.place),
            policy="placement:ledger:placements",
            query=placing_wire.QUERY,
            body=always(placing_wire.BODY),
            reply=always(placing_wire.render),
            may_create=True,
            newest_by_default=True,
            heavy=placing_wire.is_heavy,
        ),
    },
    "/ledger/v1/changes": {
        "GET": Operation(
            handler=always(journal.list_changes),
            policy="placement:ledger:changes",
            query=always(journal_wire.FEED_PARSER),
            reply=always(journal_wire.render_feed),
            formats={
                LINES: journal_wire.render_feed_lines,
                journal_wire.EVENTS: journal_wire.render_events,
            },
            newest_by_default=True,
        ),
    },
    "/ledger/v1/history": {
        "GET": Operation(
            handler=always(journal.list_history),
            policy="placement:ledger:history",
            query=always(journal_wire.HISTORY_PARSER),
            reply=always(journal_wire.render_history),
            newest_by_default=True,
        ),
    },
    "/ledger/v1/history/allocations": {
        "GET": Operation(
            handler=always(journal.show_allocations),
            policy="placement:ledger:history",
            query=always(journal_wire.PAST_PARSER),
            reply=always(journal_wire.render_past),
            newest_by_default=True,
            heavy=True,
        ),
    },
    "/ledger/v1/leases": {
        "GET": Operation(
            handler=always(lease.list_leases),
            policy="placement:ledger:leases:list",
            query=always(lease_wire.PARSER),
            reply=always(lease_wire.render_list),
            newest_by_default=True,
        ),
    },
    "/ledger/v1/leases/{consumer_uuid}": {
        "GET": Operation(
            handler=always(lease.show),
            policy="placement:ledger:leases:show",
            parse_path=allocation_wire.parse_consumer_uuid,
            reply=always(lease_wire.render),
            newest_by_default=True,
        ),
        "PUT": Operation(
            handler=always(lease.renew),
            policy="placement:ledger:leases:update",
            parse_path=allocation_wire.parse_consumer_uuid,
            body=always(lease_wire.BODY),
            reply=always(lease_wire.render),
            newest_by_default=True,
        ),
        "DELETE": Operation(
            handler=always(lease.confirm),
            policy="placement:ledger:leases:delete",
            parse_path=allocation_wire.parse_consumer_uuid,
            status=always(204),
            newest_by_default=True,
        ),
    },
    "/reshaper": {
        "POST": Operation(
            handler=since(1, 30, reshaper.reshape),
            policy="placement:reshaper:reshape",
            body=ByVersion(
                {
                    (1, 30): reshaper_wire.POST_V1_30,
                    (1, 34): reshaper_wire.POST_V1_34,
                    (1, 38): reshaper_wire.POST_V1_38,
                }
            ),
            status=always(204),
        ),
    },
    "/resource_classes": {
        "GET": Operation(
            handler=since(1, 2, resource_class.list_classes),
            policy="placement:resource_classes:list",
            reply=always(class_wire.render_classes),
            dated=(1, 15),
        ),
        "POST": Operation(
            handler=since(1, 2, resource_class.create_class),
            policy="placement:resource_classes:create",
            body=always(class_wire.RESOURCE_CLASS),
            status=always(201),
        ),
    },
    "/resource_classes/{name}": {
        "GET": Operation(
            handler=since(1, 2, resource_class.show_class),
            policy="placement:resource_classes:show",
            reply=always(class_wire.render_class),
            dated=(1, 15),
        ),
        "PUT": Operation(
            handler=ByVersion(
                {
                    (1, 2): resource_class.rename_class,
                    (1, 7): resource_class.ensure_class,
                }
            ),
            policy="placement:resource_classes:update",
            body=ByVersion({(1, 2): class_wire.RESOURCE_CLASS, (1, 7): None}),
            status=ByVersion({(1, 2): 200, (1, 7): 204}),
            may_create=True,
            reply=ByVersion({(1, 2): class_wire.render_class, (1, 7): None}),
        ),
        "DELETE": Operation(
            handler=since(1, 2, resource_class.delete_class),
            policy="placement:resource_classes:delete",
            status=always(204),
        ),
    },
    "/resource_providers": {
        "GET": Operation(
            handler=always(provider.list_providers),
            policy="placement:resource_providers:list",
            query=provider_wire.LIST,
            reply=always(provider_wire.render_providers),
            dated=(1, 15),
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
        "GET": Operation(
            handler=always(provider.show_provider),
            policy="placement:resource_providers:show",
            reply=always(provider_wire.render_provider),
            dated=(1, 15),
        ),
        "DELETE": Operation(
            handler=always(provider.delete_provider),
            policy="placement:resource_providers:delete",
            subject=always(provider.load_for_deletion),
            status=always(204),
        ),
        "PUT": Operation(
            handler=always(provider.update_provider),
            policy="placement:resource_providers:update",
            subject=always(resource_provider.get_by_uuid),
            body=provider_wire.UPDATE,
            flags={"allow_reparenting": (1, 37)},
            reply=always(provider_wire.render_provider),
            dated=(1, 15),
        ),
    },
    "/resource_providers/{uuid}/inventories": {
        "GET": Operation(
            handler=always(inventory.list_inventories),
            policy="placement:resource_providers:inventories:list",
            reply=always(inventory_wire.render_inventories),
            dated=(1, 15),
        ),
        "POST": Operation(
            handler=always(inventory.create_inventory),
            policy="placement:resource_providers:inventories:create",
            subject=always(resource_provider.get_by_uuid),
            body=always(inventory_wire.POST_INVENTORY),
            flags={"reserved_may_be_total": (1, 26)},
            status=always(201),
            reply=always(inventory_wire.render_inventory),
            dated=(1, 15),
        ),
        "PUT": Operation(
            handler=always(inventory.replace_inventories),
            policy="placement:resource_providers:inventories:update",
            subject=always(resource_provider.get_by_uuid),
            body=always(inventory_wire.PUT_INVENTORIES),
            flags={"reserved_may_be_total": (1, 26)},
            reply=always(inventory_wire.render_inventories),
            dated=(1, 15),
        ),
        "DELETE": Operation(
            handler=since(1, 5, inventory.delete_inventories),
            absent=errors.MethodNotAllowed,
            policy="placement:resource_providers:inventories:delete",
            subject=always(resource_provider.get_by_uuid),
            status=always(204),
        ),
    },
    "/resource_providers/{uuid}/inventories/{resource_class}": {
        "GET": Operation(
            handler=always(inventory.show_inventory),
            policy="placement:resource_providers:inventories:show",
            reply=always(inventory_wire.render_inventory),
            dated=(1, 15),
        ),
        "PUT": Operation(
            handler=always(inventory.update_inventory),
            policy="placement:resource_providers:inventories:update",
            subject=always(inventory.load_provider),
            body=always(inventory_wire.PUT_INVENTORY),
            flags={"reserved_may_be_total": (1, 26)},
            reply=always(inventory_wire.render_inventory),
            dated=(1, 15),
        ),
        "DELETE": Operation(
            handler=always(inventory.delete_inventory),
            policy="placement:resource_providers:inventories:delete",
            subject=always(inventory.load_provider),
            status=always(204),
        ),
    },
    "/resource_providers/{uuid}/aggregates": {
        "GET": Operation(
            handler=since(1, 1, aggregate.list_aggregates),
            policy="placement:resource_providers:aggregates:list",
            reply=aggregate_wire.RENDER_AGGREGATES,
            dated=(1, 15),
            deviation=Deviation.MEDIA_TYPE_FIRST,
        ),
        "PUT": Operation(
            handler=since(1, 1, aggregate.replace_aggregates),
            policy="placement:resource_providers:aggregates:update",
            subject=always(resource_provider.get_by_uuid),
            body=aggregate_wire.PUT_AGGREGATES,
            reply=aggregate_wire.RENDER_AGGREGATES,
            dated=(1, 15),
            deviation=Deviation.MEDIA_TYPE_FIRST,
        ),
    },
    "/resource_providers/{uuid}/traits": {
        "GET": Operation(
            handler=since(1, 6, trait.list_provider_traits),
            policy="placement:resource_providers:traits:list",
            reply=always(trait_wire.render_provider_traits),
            dated=(1, 15),
        ),
        "PUT": Operation(
            handler=since(1, 6, trait.replace_provider_traits),
            policy="placement:resource_providers:traits:update",
            subject=always(resource_provider.get_by_uuid),
            body=always(trait_wire.PUT_TRAITS),
            deviation=Deviation.BODY_FIRST,
            reply=always(trait_wire.render_provider_traits),
            dated=(1, 15),
        ),
        "DELETE": Operation(
            handler=since(1, 6, trait.delete_provider_traits),
            policy="placement:resource_providers:traits:delete",
            subject=always(resource_provider.get_by_uuid),
            status=always(204),
        ),
    },
    "/resource_providers/{uuid}/usages": {
        "GET": Operation(
            handler=always(usage.list_provider_usages),
            policy="placement:resource_providers:usages",
            reply=always(usage_wire.render_provider_usages),
            dated=(1, 15),
        ),
    },
    "/traits": {
        "GET": Operation(
            handler=since(1, 6, trait.list_traits),
            policy="placement:traits:list",
            query=always(trait_wire.QUERY),
            reply=always(trait_wire.render_traits),
            dated=(1, 15),
        ),
    },
    "/traits/{name}": {
        "GET": Operation(
            handler=since(1, 6, trait.show_trait),
            policy="placement:traits:show",
            status=always(204),
            dated=(1, 15),
        ),
        "PUT": Operation(
            handler=since(1, 6, trait.ensure_trait),
            policy="placement:traits:update",
            status=always(204),
            may_create=True,
            dated=(1, 15),
        ),
        "DELETE": Operation(
            handler=since(1, 6, trait.delete_trait),
            policy="placement:traits:delete",
            status=always(204),
        ),
    },
    "/usages": {
        "GET": Operation(
            handler=since(1, 9, usage.list_usages),
            policy="placement:usages",
            policy_project="project_id",
            query=usage_wire.PARSE_OWNER,
            reply=usage_wire.RENDER_USAGES,
            dated=(1, 15),
        ),
    },
}
