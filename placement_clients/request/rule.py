"""Additions of a deployment to every request, each rule a small function.

A rule takes a request and returns another; rules with settings are returned by a
function that takes the settings.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Set

from placement_clients.request.request import Request, Rule

DISABLED = "COMPUTE_STATUS_DISABLED"
RESERVATION = "CUSTOM_RESERVATION_"


def without_disabled_hosts(request: Request) -> Request:
    """Exclude hosts whose compute service is disabled."""
    unwanted = f"!{DISABLED}"
    return dataclasses.replace(
        request, root_required=(*request.root_required, unwanted)
    )


def isolated_aggregates(traits_by_aggregate: Mapping[str, Set[str]]) -> Rule:
    """Exclude aggregates with a trait that a request does not require.

    :param traits_by_aggregate: the traits that open an aggregate, by its UUID
    """

    def rule(request: Request) -> Request:
        closed = sorted(
            aggregate
            for aggregate, traits in traits_by_aggregate.items()
            if not traits <= request.required
        )
        return request.with_member_of(f"!in:{','.join(closed)}") if closed else request

    return rule


def within_aggregates(aggregates: Iterable[str]) -> Rule:
    """Require a host in one of some aggregates: those of a tenant, or of a zone."""
    value = f"in:{','.join(sorted(aggregates))}"
    return lambda request: request.with_member_of(value)


def outside_free_pool(aggregate: str) -> Rule:
    """Exclude the pool of hosts for reservations, unless the request has one."""

    def rule(request: Request) -> Request:
        if any(name.startswith(RESERVATION) for name in request.resource_classes):
            return request
        return request.with_member_of(f"!in:{aggregate}")

    return rule
