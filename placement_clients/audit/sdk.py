"""Answers of openstacksdk, and the meaning of its errors."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from keystoneauth1 import loading
from keystoneauth1.exceptions import ClientException
from openstack import connection, exceptions
from oslo_config import cfg

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
        *(TypeError, ValueError, OSError),
    ) as exc:
        where = config_file or os.environ.get("OS_CLOUD") or "the OS_* variables"
        raise Misconfigured(f"{where}: {exc}") from exc


def _from_file(config_file: str, group: str) -> Any:
    config = cfg.ConfigOpts()
    loading.register_auth_conf_options(config, group)
    loading.register_session_conf_options(config, group)
    loading.register_adapter_conf_options(config, group)
    config([], default_config_files=[config_file], default_config_dirs=[])
    auth = loading.load_auth_from_conf_options(config, group)
    if auth is None:
        raise ValueError(f"[{group}] auth_type is not set")
    session = loading.load_session_from_conf_options(config, group, auth=auth)
    overrides = {}
    if config[group].endpoint_override:
        service = {"nova": "compute", "ironic": "baremetal"}[group]
        overrides[f"{service}_endpoint_override"] = config[group].endpoint_override
    region = config[group].region_name
    return connection.Connection(session=session, region_name=region, **overrides)
