"""Validation of tokens by the identity service, with a limit on waiting for it."""

import contextlib
import importlib
import time
from typing import TYPE_CHECKING, Any

import webob.exc
from keystoneauth1 import exceptions, loading
from keystonemiddleware import auth_token
from oslo_config import cfg
from oslo_log import log

from placement_foundation import errors, option
from placement_foundation.http.thread_limit import ThreadLimit

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

LOG = log.getLogger(__name__)

# A quarter of the threads may validate tokens at a time. Others wait for their turn as
# long as the identity service answers within this time, in seconds.
PART = 4
PATIENCE = 1.0
MOST_REMEMBERED = 10_000
BUSY = "The identity service does not answer in time. Please retry."
UNKNOWN = "This service is not configured to reach an identity service."


class _Validation(auth_token.AuthProtocol):  # type: ignore[misc]
    """Validates tokens; only some threads may wait for the identity service.

    Cached tokens need no such thread, so their owners are served even if the identity
    service hangs.
    """

    def __init__(self, application: "WSGIApplication", config: cfg.ConfigOpts) -> None:
        super().__init__(application, {"oslo_config_config": config})
        self._limit = ThreadLimit(PART, PATIENCE)
        self._lasts = config.keystone_authtoken.token_cache_time
        # When cached tokens expire, by hash.
        self._remembered: dict[int, float] = {}

    def fetch_token(self, token: str, **options: Any) -> Any:
        """Return the data of a token.

        :raises HTTPServiceUnavailable: the identity service does not answer
        """
        now = time.monotonic()
        is_cached = self._remembered.get(hash(token), now) > now
        try:
            # The cache may have lost it meanwhile.
            with contextlib.nullcontext() if is_cached else self._limit.turn(BUSY):
                data = super().fetch_token(token, **options)
        except (errors.Busy, exceptions.ConnectTimeout) as exc:
            # The library does not count these errors as a missing identity service.
            LOG.warning("a token cannot be validated: %s", exc)
            raise _unavailable() from exc
        except exceptions.AuthPluginException as exc:
            LOG.error("set the options of [keystone_authtoken]: %s", exc)
            raise _unavailable(UNKNOWN) from exc
        if not is_cached:
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[hash(token)] = now + self._lasts
        return data


def _unavailable(detail: str = BUSY) -> webob.exc.HTTPServiceUnavailable:
    retry_after = str(errors.Busy.retry_after)
    return webob.exc.HTTPServiceUnavailable(
        detail, headers=[("Retry-After", retry_after)]
    )


def authenticated(
    application: "WSGIApplication", config: cfg.ConfigOpts
) -> "WSGIApplication":
    """Return an application that gets the caller of each request from a token.

    :raises ValueError: the options need a package that is not installed, or lack one
        that the identity service requires
    """
    option.register_keystone(config)
    _require_packages(config.keystone_authtoken)
    validation: WSGIApplication = _Validation(application, config)
    _require_password(config)
    return validation


# keystonemiddleware imports these for the first request, and would fail each one.
def _require_packages(settings: Any) -> None:
    if not settings.memcached_servers:
        return
    is_binary = settings.memcache_sasl_enabled or settings.memcache_tls_enabled
    required = {"bmemcached": "python-binary-memcached"} if is_binary else {}
    required = required or {"memcache": "python-memcached"}
    if str(settings.memcache_security_strategy).upper() == "ENCRYPT":
        required["cryptography"] = "cryptography"
    for module, package in required.items():
        try:
            importlib.import_module(module)
        except ImportError as exc:
            raise ValueError(
                "The options memcache* of [keystone_authtoken] need a package that is "
                f"not installed: pip install {package}"
            ) from exc


def _require_password(config: cfg.ConfigOpts) -> None:
    group = config.keystone_authtoken.auth_section or "keystone_authtoken"
    kind = config[group].auth_type
    if not kind:
        return
    options = {each.dest for each in loading.get_plugin_loader(kind).get_options()}
    if "password" in options and not config[group].password:
        raise ValueError(f"auth_type = {kind} in [{group}] needs a password")
