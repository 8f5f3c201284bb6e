"""Assembly: options, database, policy and middleware make the service."""

from typing import TYPE_CHECKING

from oslo_config import cfg

from placement_foundation import option
from placement_foundation.database.storage import Database
from placement_foundation.http import middleware as surroundings
from placement_foundation.http import monitoring
from placement_foundation.http.application import Application, Service
from placement_foundation.http.middleware import Surrounded, Surroundings
from placement_foundation.serving import assembly
from placement_nodes import conf, errors, measure, middleware, policy, version
from placement_nodes.db import migration
from placement_nodes.routes import ROUTES

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

SERVICE = Service(
    name="Bare metal API",
    routes=ROUTES,
    negotiate=version.negotiate,
    version_headers=version.headers,
    document=errors.document,
)

SURROUNDINGS = Surroundings(
    log_name="placement_nodes.requestlog",
    open_paths={"", "/", "/v1", "/v1/", "/healthcheck"},
    identify=surroundings.identify_as_administrator,
    # Clients negotiate by these.
    headers=version.headers(None),
)


def start_from_environment() -> "WSGIApplication":
    """Return the service that configuration files and the environment describe."""
    return assembly.start_from_environment(conf.read, conf.PROJECT, start)


def start(config: cfg.ConfigOpts) -> "WSGIApplication":
    """Return the service on the database that the configuration names.

    :raises Exception: the policy file cannot be parsed, or the database cannot be
        reached
    """
    settings = option.database_settings(config.database)
    return build(config, assembly.connect(settings, migration.SCHEMA))


def build(config: cfg.ConfigOpts, database: Database) -> "WSGIApplication":
    """Return the service on a database that is ready, as one WSGI application.

    :raises Exception: the policy file cannot be parsed
    """
    enforcer = policy.make_enforcer(config)
    application: WSGIApplication = Application(
        SERVICE,
        database,
        conf.settings(config),
        enforcer,
        largest_body=config.api.max_request_body_size,
    )
    if config.api.public_endpoint:
        application = middleware.at_endpoint(application, config.api.public_endpoint)
    pages = monitoring.health_pages(database, migration.SCHEMA)
    elsewhere = monitoring.elsewhere(
        config, lambda: monitoring.metrics_page(database, measure.PREFIX)
    )
    wrapped = surroundings.surround(application, config, SURROUNDINGS)
    return Surrounded(wrapped, pages, elsewhere)
