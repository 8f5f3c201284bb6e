"""How to reach Placement, and as whom: sessions of keystoneauth from settings."""

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
        help="Seconds to wait until the service takes a connection. How long to wait "
        "for an answer is said by timeout.",
    ),
]


class Misconfigured(Exception):
    """The settings do not tell how to reach Placement. The message says why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """A way to Placement: whom to ask, as whom, and how many seconds to wait.

    Its session is kept, with its connections and its token; a process needs one.
    """

    adapter: adapter.Adapter
    connect_seconds: float = CONNECT_SECONDS
    answer_seconds: float = ANSWER_SECONDS


def list_options() -> list[cfg.Opt]:
    """Return the options that tell how to reach a service, for a sample.

    Those of ``auth_type = password`` stand for what other types need.
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
    """Register how to reach a service, in the names that keystoneauth gives them.

    These are ``auth_type``, ``endpoint_override``, ``valid_interfaces``,
    ``region_name``, ``cafile``, ``insecure``, ``timeout`` and their like, and
    ``connect_timeout``. What an ``auth_type`` needs besides (``token``; ``auth_url``,
    ``username``, ``password``, ``project_name`` and so on) is registered when read.
    """
    loading.register_auth_conf_options(config, group)
    loading.register_session_conf_options(config, group)
    loading.register_adapter_conf_options(config, group)
    config.register_opts(OPTIONS, group)
    config.set_default("timeout", ANSWER_SECONDS, group)
    config.set_default("service_type", service_type, group)
    config.set_default("valid_interfaces", ["internal", "public"], group)


def from_config(
    config: cfg.ConfigOpts, group: str = GROUP, service_type: str = SERVICE_TYPE
) -> Access:
    """Return the access that a group of a configuration describes.

    :raises Misconfigured: no ``auth_type`` is given, or it lacks what it needs
    """
    register_options(config, group, service_type)
    try:
        auth = loading.load_auth_from_conf_options(config, group)
        if auth is None:
            raise Misconfigured(f"[{group}] auth_type is not set")
        known = loading.load_session_from_conf_options(config, group, auth=auth)
        reached = loading.load_adapter_from_conf_options(
            config, group, session=known, user_agent=USER_AGENT
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

    They are those of the ``openstack`` command line. A URL that is given is asked in
    place of the one they name, and a token that is given is shown as it is, without
    asking Keystone for another.

    :raises Misconfigured: something that is needed is not there
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
    known = session.Session(
        auth, timeout=answer_seconds, verify=given.get("OS_CACERT", True)
    )
    reached = adapter.Adapter(
        known,
        service_type=SERVICE_TYPE,
        interface=given.get("OS_INTERFACE"),
        region_name=given.get("OS_REGION_NAME"),
        endpoint_override=endpoint,
        user_agent=USER_AGENT,
    )
    return Access(reached, connect_seconds, answer_seconds)


def _auth_type(given: Mapping[str, str], url: str | None) -> str:
    """Return what is asked for, or else what the settings are enough for."""
    if "OS_AUTH_TYPE" in given:
        return given["OS_AUTH_TYPE"]
    if "OS_AUTH_URL" in given:
        return "password" if "OS_PASSWORD" in given else "token"
    if url:
        return "admin_token" if "OS_TOKEN" in given else "none"
    raise Misconfigured(
        "it is not said where Placement is: give its URL, or set the OS_* variables "
        "of the openstack command line"
    )
