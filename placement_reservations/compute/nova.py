"""The compute service is Nova, reached through openstacksdk."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from keystoneauth1 import exceptions as keystone
from openstack import connection, exceptions
from oslo_config import cfg

from placement_clients import access
from placement_clients.client import Client
from placement_clients.errors import may_pass
from placement_reservations import provider
from placement_reservations.capacity import Size
from placement_reservations.compute import ComputeError
from placement_reservations.store.flavor import Flavor
from placement_reservations.store.host import Details
from placement_reservations.store.lease import Reservation

GROUP, SERVICE_TYPE = "nova", "compute"
# From 2.88 on, Nova queries the host for its uptime, and answers 500 if that hangs.
HYPERVISOR_VERSION = "2.53"


@dataclasses.dataclass(frozen=True, slots=True)
class NovaCompute:
    """Hosts are hypervisors; the pool of reservable ones is a host aggregate.

    :param nova: openstacksdk's proxy of the compute service
    :param placement: has the capacity of a host: the compute API has totals at most,
        and none since its microversion 2.88
    :param pool: the name of the host aggregate
    :param use_ratio: whether allocation ratios above one count
    """

    nova: Any
    placement: Client
    pool: str
    use_ratio: bool = False

    def for_request(self, request_id: str | None) -> Self:
        """Return this service on behalf of an inbound request."""
        client = self.placement.for_request(request_id)
        return dataclasses.replace(self, placement=client)

    def find_host(self, name: str) -> Details | None:
        """Return the details of a host, None if there is no host with that name."""
        hypervisor = self._find_hypervisor(name)
        if hypervisor is None:
            return None
        root = provider.find_root(self.placement, hypervisor.name)
        if root is None:
            return None
        with provider.MayBeGone():
            size, limits = provider.get_size(
                self.placement, root, use_ratio=self.use_ratio
            )
            return Details(
                name=hypervisor.name,
                size=size,
                available=hypervisor.state == "up" and hypervisor.status == "enabled",
                service_name=_service_of(hypervisor),
                cpu_info=str(hypervisor.cpu_info or "{}"),
                hypervisor_type=hypervisor.hypervisor_type or "",
                hypervisor_version=hypervisor.hypervisor_version or 0,
                limits=limits,
            )
        return None

    def list_servers_on(self, host: str) -> list[str]:
        """Return the ids of the servers that run on a host."""
        return self._list_servers(compute_host=self._service_host(host))

    def make_flavor(self, flavor: Flavor) -> None:
        """Make sure that a flavor exists: flavors of Nova never change."""
        with _translated():
            existing = _find(self.nova.find_flavor, flavor.id, get_extra_specs=True)
            if existing and _is(existing, flavor):
                return
            if existing:
                self.nova.delete_flavor(flavor.id)
            self.nova.create_flavor(
                id=flavor.id,
                name=flavor.name,
                vcpus=flavor.size.vcpus,
                ram=flavor.size.memory_mb,
                disk=flavor.size.disk_gb,
                is_public=False,
            )
            self.nova.create_flavor_extra_specs(flavor.id, flavor.extra_specs)

    def delete_flavor(self, flavor_id: str) -> None:
        """Make sure that a flavor does not exist."""
        with _translated(), _MayBeGone():
            self.nova.delete_flavor(flavor_id, ignore_missing=False)

    def give_access(self, flavor_id: str, project_id: str) -> None:
        """Give a project access to a flavor."""
        with _translated(), contextlib.suppress(exceptions.ConflictException):
            self.nova.flavor_add_tenant_access(flavor_id, project_id)

    def take_access(self, flavor_id: str, project_id: str) -> None:
        """Take access to a flavor from a project, if the flavor exists."""
        with _translated(), _MayBeGone():
            self.nova.flavor_remove_tenant_access(flavor_id, project_id)

    def list_servers_of(
        self, reservation: Reservation, hosts: Sequence[str], go_on: Callable[[], None]
    ) -> list[str]:
        """Return the ids of the servers of a reservation, which Nova finds at once."""
        return self._list_servers(flavor=reservation.id)

    def _list_servers(self, **filters: str) -> list[str]:
        with _translated():
            servers = self.nova.servers(details=False, all_projects=True, **filters)
            return sorted(server.id for server in servers)

    def delete_server(self, server: str) -> None:
        """Start to delete a server."""
        with _translated(), _MayBeGone():
            self.nova.delete_server(server, ignore_missing=False)

    def join_pool(self, host: str) -> None:
        """Add a host to the pool of reservable hosts, which is created if needed."""
        with _translated():
            pool = _find(self.nova.find_aggregate, self.pool)
            if pool is None:
                pool = self.nova.create_aggregate(name=self.pool)
            member = self._service_host(host)
            if member not in (pool.hosts or ()):
                self.nova.add_host_to_aggregate(pool, member)

    def list_pool(self) -> set[str]:
        """Return the hosts in the pool of reservable hosts: names of their services."""
        with _translated():
            pool = _find(self.nova.find_aggregate, self.pool)
            return set(pool.hosts or ()) if pool else set()

    def leave_pool(self, host: str) -> None:
        """Remove a host from the pool of reservable hosts."""
        with _translated():
            pool = _find(self.nova.find_aggregate, self.pool)
            member = self._service_host(host)
            if pool and member in (pool.hosts or ()):
                self.nova.remove_host_from_aggregate(pool, member)

    def _service_host(self, name: str) -> str:
        """Return the host of the compute service that runs a hypervisor.

        Aggregates and servers have this name. Another name of the hypervisor is mostly
        longer: the name of its domain follows.
        """
        hypervisor = self._find_hypervisor(name)
        return name if hypervisor is None else _service_of(hypervisor)

    def _find_hypervisor(self, name: str) -> Any:
        """Return the hypervisor with a name, None if there is none."""
        with _translated(), _MayBeGone():
            hypervisors = self.nova.hypervisors(
                details=True,
                hypervisor_hostname_pattern=name,
                microversion=HYPERVISOR_VERSION,
            )
            return next((each for each in hypervisors if each.name == name), None)
        return None


class _MayBeGone:
    """A block of code that ends early if Nova says that something does not exist.

    A 404 without its error document is that of a proxy, and means nothing.
    """

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, kind: object, exc: object, traceback: object) -> bool:
        """Suppress the error if it is Nova's, or that of a search in Nova's answer."""
        if not isinstance(exc, exceptions.NotFoundException):
            return False
        try:
            return exc.response is None or isinstance(exc.response.json(), dict)
        except ValueError:
            return False


def _find(find: Callable[..., Any], name: str, **options: Any) -> Any:
    """Return the object with a name or an id, None if there is none."""
    with _MayBeGone():
        return find(name, ignore_missing=False, **options)
    return None


def _service_of(hypervisor: Any) -> str:
    details: dict[str, str] = hypervisor.service_details or {}
    return details.get("host", str(hypervisor.name))


def _is(known: Any, flavor: Flavor) -> bool:
    size = Size(known.vcpus, known.ram, known.disk)
    return size == flavor.size and known.extra_specs == flavor.extra_specs


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Raise errors of openstacksdk as failures of the compute service.

    Errors in the discovery of versions come from keystoneauth unchanged.
    """
    try:
        yield
    except (exceptions.SDKException, keystone.ClientException, OSError) as exc:
        status = getattr(exc, "status_code", getattr(exc, "http_status", None))
        raise ComputeError(
            f"Nova refused or failed: {exc}", may_pass=may_pass(status)
        ) from exc


def from_config(config: cfg.ConfigOpts, placement: Client) -> NovaCompute:
    """Return the compute service that a group of the configuration describes.

    :raises Misconfigured: the group does not say how to reach Nova
    """
    way = access.from_config(config, GROUP, SERVICE_TYPE).adapter
    cloud = connection.Connection(
        session=way.session,
        compute_endpoint_override=way.endpoint_override,
        region_name=way.region_name,
    )
    return NovaCompute(
        cloud.compute,
        placement,
        config.free_pool.name,
        config.reservations.use_allocation_ratio,
    )
