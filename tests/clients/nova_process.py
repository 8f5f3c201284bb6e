"""What runs in processes of Nova, for ``test_real_nova.py``: its API, and its database.

Nova has no tokens of its own, so that this stands for the middleware that reads them.
"""

import datetime
import json
import sys
from collections.abc import Callable
from typing import Any

IDENTITY = {
    "HTTP_X_IDENTITY_STATUS": "Confirmed",
    "HTTP_X_USER_ID": "reservations",
    "HTTP_X_PROJECT_ID": "service",
    "HTTP_X_ROLES": "admin,member,reader,service",
}


def trust(conf: object, **local: object) -> Callable[[Any], Any]:
    """Return middleware for paste that takes every caller for an administrator."""

    def surround(application: Any) -> Any:
        def answer(environ: dict[str, Any], start_response: Any) -> Any:
            environ.update(IDENTITY)
            return application(environ, start_response)

        return answer

    return surround


def serve(directory: str, port: int) -> None:
    """Serve Nova's API."""
    from socketserver import ThreadingMixIn
    from wsgiref import simple_server

    # Nova reads the arguments of its process, and its files from the environment.
    sys.argv = ["nova-api"]
    from nova.wsgi.osapi_compute import application

    class Server(ThreadingMixIn, simple_server.WSGIServer):
        daemon_threads = True

    simple_server.make_server(
        "127.0.0.1", port, application, server_class=Server
    ).serve_forever()


def fill(path: str, *hosts: str) -> None:
    """Store compute nodes.

    :param hosts: ``host of the service=hypervisor=UUID``
    """
    objects, admin, cell = _prepare(path)
    from nova import context

    with context.target_cell(admin, cell) as inside:
        for each in hosts:
            host, node, uuid = each.split("=")
            service = objects.Service(
                inside, host=host, binary="nova-compute", topic="compute"
            )
            service.create()
            service.last_seen_up = datetime.datetime.now(datetime.UTC)
            service.save()
            objects.ComputeNode(
                inside,
                service_id=service.id,
                host=host,
                hypervisor_hostname=node,
                uuid=uuid,
                vcpus=8,
                memory_mb=8192,
                local_gb=100,
                vcpus_used=0,
                memory_mb_used=0,
                local_gb_used=0,
                free_ram_mb=8192,
                free_disk_gb=100,
                current_workload=0,
                running_vms=0,
                hypervisor_type="QEMU",
                hypervisor_version=8_000_000,
                cpu_info="{}",
                disk_available_least=100,
                mapped=1,
                host_ip="127.0.0.1",
            ).create()
            objects.HostMapping(admin, cell_mapping=cell, host=host).create()


def boot(path: str, server: str, host: str, node: str, flavor: str) -> None:
    """Store a server that runs on a host."""
    objects, admin, cell = _prepare(path)
    from nova import context
    from nova.network import model

    kind = objects.Flavor.get_by_flavor_id(admin, flavor)
    with context.target_cell(admin, cell) as inside:
        objects.Instance(
            inside,
            uuid=server,
            user_id="ann",
            project_id="blue",
            host=host,
            node=node,
            vm_state="active",
            flavor=kind,
            old_flavor=None,
            new_flavor=None,
            instance_type_id=kind.id,
            vcpus=kind.vcpus,
            memory_mb=kind.memory_mb,
            root_gb=kind.root_gb,
            ephemeral_gb=0,
            display_name="server",
            launched_on=host,
            image_ref="",
            info_cache=objects.InstanceInfoCache(
                instance_uuid=server, network_info=model.NetworkInfo()
            ),
            system_metadata={},
            metadata={},
            compute_id=objects.ComputeNode.get_by_host_and_nodename(
                inside, host, node
            ).id,
        ).create()
    objects.InstanceMapping(
        admin,
        instance_uuid=server,
        project_id="blue",
        user_id="ann",
        cell_mapping=cell,
        queued_for_delete=False,
    ).create()


def down(path: str) -> None:
    """Let all services of hosts be down, so that Nova deletes servers by itself."""
    objects, admin, cell = _prepare(path)
    from nova import context

    with context.target_cell(admin, cell) as inside:
        for service in objects.ServiceList.get_all(inside):
            service.forced_down = True
            service.save()


def filter_hosts(path: str) -> None:
    """Print what the filters of ``available_filters`` make of hosts and servers.

    As the scheduler does: it loads the filters, and takes those that are enabled by the
    names of their classes.
    """
    objects, _, cell = _prepare(path)
    from nova import conf
    from nova.scheduler import filters, host_manager

    handler = filters.HostFilterHandler()
    options = conf.CONF.filter_scheduler
    loaded = handler.get_matching_classes(options.available_filters)
    known = {each.__name__: each for each in loaded}
    enabled = [known[name]() for name in options.enabled_filters]
    hosts = []
    for name, aggregates in (("service-1", ["freepool"]), ("service-2", ["rack"])):
        host = host_manager.HostState(name, name, cell.uuid)
        host.aggregates = [
            objects.Aggregate(name=each, metadata={}, hosts=[name])
            for each in aggregates
        ]
        hosts.append(host)
    found = {}
    for kind, extra_specs in (
        ("ordinary", {}),
        ("reserved", {"resources:CUSTOM_RESERVATION_X": "1"}),
    ):
        flavor = objects.Flavor(extra_specs=extra_specs)
        spec = objects.RequestSpec(flavor=flavor, instance_uuid=cell.uuid)
        spec.scheduler_hints, spec.is_bfv = {}, False
        passed = handler.get_filtered_objects(enabled, hosts, spec) or []
        found[kind] = [host.host for host in passed]
    print(json.dumps(found))


def _prepare(path: str) -> Any:
    from nova import monkey_patch

    monkey_patch.patch(backend="threading")
    from nova import config, context, objects

    config.parse_args(["fill", "--config-file", path])
    objects.register_all()
    admin = context.get_admin_context()
    cells = objects.CellMappingList.get_all(admin)
    (cell,) = [each for each in cells if not each.is_cell0()]
    return objects, admin, cell


if __name__ == "__main__":
    work, *words = sys.argv[1:]
    if work == "serve":
        serve(words[0], int(words[1]))
    else:
        works: dict[str, Callable[..., None]] = {
            "fill": fill,
            "boot": boot,
            "down": down,
            "filter": filter_hosts,
        }
        works[work](*words)
