"""Access to Placement: keystoneauth sessions built from settings."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from keystoneauth1 import adapter, loading, session
from keystoneauth1.exceptions import ClientException
from keystoneauth1.loading import opts
from oslo_config import cfg

SERVICE_TYPE = "placement"
GROUP = "placement"
USER_AGENT = "placement-consumers"
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 60.0

OPTIONS = [
    cfg.FloatOpt(
        "connect_timeout",
        default=CONNECT_SECONDS,
        min=0,
        help="Seconds to wait until the service accepts a connection. The option "
        "timeout says how long to wait for an answer.",
    ),
]


class Misconfigured(Exception):
    """The settings do not say how to reach Placement. The message says why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """A way to reach a service: its address, credentials, and timeouts in seconds.

    Its session keeps its connections and its token; a process needs only one.
    """

    adapter: adapter.Adapter
    connect_seconds: float = CONNECT_SECONDS
    answer_seconds: float = ANSWER_SECONDS

    def keep_open(self, connections: int) -> None:
        """Keep so many connections open, one for each thread; the default is ten.

        Further ones are closed after each request, with a warning.
        """
        pool = session.TCPKeepAliveAdapter(pool_maxsize=connections)
        for scheme in ("https://", "http://"):
            self.adapter.session.session.mount(scheme, pool)


def list_options() -> list[cfg.Opt]:
    """Return the options for reaching a service, for a sample configuration.

    The options of ``auth_type = password`` stand for those of other types.
    """
    return [
        *OPTIONS,
        *loading.get_auth_common_conf_options(),
        *loading.get_auth_plugin_conf_options("password"),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(include_deprecated=False),
    ]


def register_options(
    config: cfg.ConfigOpts, group: str = GROUP, service_type: str = SERVICE_TYPE
) -> None:
    """Register the options for reaching a service, with the names of keystoneauth.

    These are ``auth_type``, ``endpoint_override``, ``valid_interfaces``,
    ``region_name``, ``cafile``, ``insecure``, ``timeout`` and so on, and
    ``connect_timeout``. Options that an ``auth_type`` needs (``token``; ``auth_url``,
    ``username``, ``password``, ``project_name`` and so on) are registered when they are
    read.
    """
    loading.register_auth_conf_options(config, group)
    loading.register_session_conf_options(config, group)
    loading.register_adapter_conf_options(config, group)
    config.register_opts(OPTIONS, group)
    config.set_default("timeout", ANSWER_SECONDS, group)
    config.set_default("service_type", service_type, group)
    config.set_default("valid_interfaces", ["internal", "public"], group)


def read(
    path: str, group: str = GROUP, service_type: str = SERVICE_TYPE
) -> cfg.ConfigOpts:
    """Return the configuration in a file, with the options for reaching a service.

    :raises cfg.Error: it cannot be read or parsed
    """
    config = cfg.ConfigOpts()
    register_options(config, group, service_type)
    config([], default_config_files=[path], default_config_dirs=[])
    return config


def from_config(
    config: cfg.ConfigOpts, group: str = GROUP, service_type: str = SERVICE_TYPE
) -> Access:
    """Return the access that a group of a configuration describes.

    :raises Misconfigured: ``auth_type`` is not set, or an option that it needs is
        missing
    """
    register_options(config, group, service_type)
    try:
        auth = loading.load_auth_from_conf_options(config, group)
        if auth is None:
            raise Misconfigured(f"[{group}] auth_type is not set")
        keystone = loading.load_session_from_conf_options(config, group, auth=auth)
        reached = loading.load_adapter_from_conf_options(
            config, group, session=keystone, user_agent=USER_AGENT
        )
        settings = config[group]
        return Access(reached, settings.connect_timeout, settings.timeout)
    except (ClientException, cfg.Error, TypeError, ValueError) as exc:
        raise Misconfigured(f"[{group}] {exc}") from exc


def from_environment(
    environ: Mapping[str, str] = os.environ,
    *,
    url: str | None = None,
    token: str | None = None,
    connect_seconds: float = CONNECT_SECONDS,
    answer_seconds: float = ANSWER_SECONDS,
) -> Access:
    """Return the access that the ``OS_*`` variables of a terminal describe.

    They are those of the ``openstack`` command line, but for ``OS_CLOUD``: no
    ``clouds.yaml`` is read, as that needs openstacksdk. A given URL replaces theirs,
    and a given token is sent unchanged, without requesting another from Keystone.

    :raises Misconfigured: something that is needed is missing
    """
    given = {name: value for name, value in environ.items() if value}
    endpoint = (
        url
        or given.get("OS_PLACEMENT_ENDPOINT_OVERRIDE")
        or given.get("OS_ENDPOINT_OVERRIDE")
        or given.get("OS_ENDPOINT")
    )
    auth_type = "admin_token" if token else _auth_type(given, endpoint)
    needed = {"endpoint": endpoint, "token": token}

    def wanted(option: opts.Opt) -> Any:
        named = (given.get(name) for name in option.argparse_envvars)
        return needed.get(option.dest) or next(filter(None, named), option.default)

    try:
        loader: Any = loading.get_plugin_loader(auth_type)
        auth = loader.load_from_options_getter(wanted)
    except (ClientException, ValueError) as exc:
        raise Misconfigured(f"auth_type {auth_type}: {exc}") from exc
    if auth_type in ("none", "admin_token") and not endpoint:
        raise Misconfigured("no URL of Placement is given, nor OS_ENDPOINT_OVERRIDE")
    keystone = loading.session.Session().load_from_options(
        auth=auth,
        timeout=answer_seconds,
        cacert=given.get("OS_CACERT"),
        cert=given.get("OS_CERT"),
        key=given.get("OS_KEY"),
    )
    reached = adapter.Adapter(
        keystone,
        service_type=SERVICE_TYPE,
        interface=given.get("OS_INTERFACE"),
        region_name=given.get("OS_REGION_NAME"),
        endpoint_override=endpoint,
        user_agent=USER_AGENT,
    )
    return Access(reached, connect_seconds, answer_seconds)


def _auth_type(given: Mapping[str, str], url: str | None) -> str:
    """Return the requested type, or else the one for which the settings suffice."""
    if "OS_AUTH_TYPE" in given:
        return given["OS_AUTH_TYPE"]
    if "OS_AUTH_URL" in given:
        return "password" if "OS_PASSWORD" in given else "token"
    if url:
        return "admin_token" if "OS_TOKEN" in given else "none"
    raise Misconfigured(
        "the URL of Placement is not known: give it, or set the OS_* variables "
        "of the openstack command line, but for OS_CLOUD: clouds.yaml is not read"
    )
