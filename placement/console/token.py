"""A token from the identity service of this service, in exchange for a password."""

from typing import Any

from keystoneauth1 import exceptions, loading
from keystoneauth1 import session as keystone
from keystoneauth1.identity import generic
from oslo_config import cfg
from oslo_log import log

from placement import errors
from placement.console.session import Credentials, NotKnown, Session
from placement_foundation import option

LOG = log.getLogger(__name__)


def load(config: cfg.ConfigOpts, credentials: Credentials) -> Session:
    """Return a token for a password.

    :raises NotKnown: the identity service refuses the password
    :raises Unavailable: the identity service cannot be reached
    """
    try:
        return _ask(config, credentials)
    except exceptions.HttpServerError as exc:
        raise _unavailable(exc) from exc
    except exceptions.HttpError as exc:
        raise NotKnown(
            "The identity service does not know this user, password and project."
        ) from exc
    except exceptions.ClientException as exc:
        raise _unavailable(exc) from exc


def _unavailable(exc: Exception) -> errors.Unavailable:
    LOG.warning("no token for the console: %s", exc)
    return errors.Unavailable("The identity service does not answer as it should.")


def _ask(config: cfg.ConfigOpts, credentials: Credentials) -> Session:
    """Query the service's own identity service, with the certificates set for it."""
    option.register_keystone(config)
    service: Any = loading.load_auth_from_conf_options(config, option.KEYSTONE_GROUP)
    settings = config[option.KEYSTONE_GROUP]
    reached = keystone.Session(
        verify=not settings.insecure and (settings.cafile or True),
        cert=(settings.certfile, settings.keyfile) if settings.certfile else None,
        timeout=settings.http_connect_timeout,
    )
    password = generic.Password(
        auth_url=service.auth_url,
        username=credentials.user,
        password=credentials.password,
        user_domain_name=credentials.user_domain,
        project_name=credentials.project,
        project_domain_name=credentials.project_domain,
    )
    access: Any = password.get_access(reached)
    return Session(
        access.auth_token,
        access.expires.isoformat(),
        access.username,
        access.project_id,
        tuple(sorted(access.role_names)),
    )
