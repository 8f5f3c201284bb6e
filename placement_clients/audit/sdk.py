"""Answers of openstacksdk, and the meaning of its errors."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from keystoneauth1.exceptions import ClientException
from openstack import connection, exceptions
from oslo_config import cfg

from placement_clients import access
from placement_clients.access import Misconfigured
from placement_clients.audit.life import NotAnswered


def listed(service: str, ask: Callable[..., Any], **options: Any) -> Iterator[Any]:
    """Yield the resources that a service lists.

    :raises NotAnswered: it does not
    """
    with _translated(service):
        yield from ask(**options)


def find(service: str, ask: Callable[[str], Any], name: str) -> Any:
    """Return one resource, None if it does not exist.

    :raises NotAnswered: the service does not answer
    """
    with _translated(service):
        try:
            return ask(name)
        except exceptions.NotFoundException:
            return None


@contextlib.contextmanager
def _translated(service: str) -> Iterator[None]:
    try:
        yield
    except (exceptions.SDKException, ClientException, OSError) as exc:
        raise NotAnswered(f"{service} does not list living consumers: {exc}") from exc


def connect(config_file: str | None, group: str) -> Any:
    """Return a connection to a cloud: of a group of a file, or of the environment.

    The environment is that of the ``openstack`` command line: ``OS_CLOUD`` and
    ``clouds.yaml``, or ``OS_AUTH_URL`` and so on.

    :raises Misconfigured: neither says how to reach it
    """
    try:
        if config_file is None:
            return connection.from_config(load_envvars=True)
        return _from_file(config_file, group)
    except (
        *(exceptions.SDKException, ClientException, cfg.Error),
        *(TypeError, ValueError, OSError, Misconfigured),
    ) as exc:
        where = config_file or os.environ.get("OS_CLOUD") or "the OS_* variables"
        raise Misconfigured(f"{where}: {exc}") from exc


def _from_file(config_file: str, group: str) -> Any:
    service = {"nova": "compute", "ironic": "baremetal"}[group]
    config = access.read(config_file, group, service)
    way = access.from_config(config, group, service).adapter
    override: dict[str, Any] = {f"{service}_endpoint_override": way.endpoint_override}
    return connection.Connection(
        session=way.session, region_name=way.region_name, **override
    )
