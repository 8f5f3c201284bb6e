"""Assembly: settings, database, policy and middleware make the service."""

import functools
import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from oslo_config import cfg
from oslo_log import log

from placement import conf, errors, microversion, openapi, policy
from placement.console import site as console
from placement.db import migration
from placement.forest import cache
from placement.forest.cache import CachedForest
from placement.monitoring import site
from placement.objects import leasing, standard_name
from placement.objects.journal import filing, tidying
from placement.objects.journal.keeping import Keeper
from placement.objects.ledger import Ledger
from placement.operation import Call, Context, context_of
from placement_foundation.database.origin import Origin
from placement_foundation.database.storage import Database
from placement_foundation.http import (
    middleware,
    monitoring,
    thread_limit,
)
from placement_foundation.http.application import Application, Service
from placement_foundation.http.middleware import Surrounded, Surroundings
from placement_foundation.http.policy import Enforcer
from placement_foundation.http.version import Version
from placement_foundation.observing import tracing
from placement_foundation.serving import assembly
from placement_foundation.serving.background import Chore, Chores

if TYPE_CHECKING:
    import socket

    from _typeshed.wsgi import WSGIApplication

LOG = log.getLogger(__name__)

# The origin of the service's own writes, for the journal.
STARTING = "start of the service"


@functools.cache
def _version_headers(version: Version | None) -> Mapping[str, str]:
    if version is None:
        return {}
    return {
        "openstack-api-version": f"{microversion.SERVICE} {version}",
        "vary": "openstack-api-version",
    }


SERVICE = Service(
    name="Placement API",
    routes=openapi.TABLE,
    negotiate=microversion.negotiate,
    version_headers=_version_headers,
    document=errors.document,
    other_errors=True,
    call=Call,
    newest=microversion.MAXIMUM,
)


SURROUNDINGS = Surroundings(
    log_name="placement.requestlog",
    open_paths={"", *openapi.OPEN},
    # Without an identity service, the empty path is not open.
    identify=functools.partial(middleware.identify_by_token, open_paths=openapi.OPEN),
)


def start_from_environment() -> "WSGIApplication":
    """Return the service that configuration files and the environment describe."""
    read = functools.partial(conf.read, [])
    return assembly.start_from_environment(read, conf.PROJECT, start)


def start(config: cfg.ConfigOpts) -> "WSGIApplication":
    """Return the service on the database that the configuration names.

    Also store the standard traits and resource classes of the installed libraries.

    :raises Exception: the policy file cannot be parsed, the address for metrics is
        taken, or the database cannot be reached, or has no tables
    """
    if config.log_options:
        config.log_opt_values(LOG, logging.DEBUG)
    LOG.debug("callers are authenticated by %s", config.api.auth_strategy)
    # Before any migration: do not migrate for a service that will not start.
    enforcer = policy.make_enforcer(config)
    if config.metrics.enabled and config.metrics.address:
        monitoring.check_free(config.metrics.address)
    connected = assembly.connect(conf.database_settings(config), migration.SCHEMA)
    context = make_context(config, connected)
    ledger = Ledger(connected, context.journal, Origin(STARTING))
    standard_name.synchronise(ledger)
    chores = _list_chores(config, ledger, context)
    if context.forest_cache:
        LOG.info("reading all resource providers, to keep them in memory")
        began = time.monotonic()
        cache.warm_up(connected, context.forest_cache)
        LOG.info("read them in %.1f s", time.monotonic() - began)
    application = _assemble(config, connected, enforcer, context, chores)
    # Servers may fork from here on.
    connected.rest()
    return application


def _list_chores(
    config: cfg.ConfigOpts, ledger: Ledger, context: Context
) -> list[Chore]:
    """Return the chores of a process, which run beside its requests."""
    chores = []
    if context.forest_cache:
        compare = functools.partial(context.forest_cache.watch, ledger.database)
        chores.append(Chore("comparing the forest", compare, cache.WATCH_EVERY))
        read = functools.partial(context.forest_cache.read_again, ledger.database)
        chores.append(Chore("reading the forest again", read, cache.READ_EVERY))
    if config.ledger.expire_leases:
        end = functools.partial(leasing.end_all_due, ledger)
        chores.append(Chore("ending leases", end, leasing.EVERY))
    if context.journal:
        record = functools.partial(tidying.record_gap, context.journal)
        chores.append(Chore("recording gaps", record, tidying.LOOK_EVERY))
        tidy = functools.partial(tidying.tidy, context.journal)
        chores.append(Chore("tidying the journal", tidy, tidying.EVERY))
    return chores


def build(
    config: cfg.ConfigOpts, connected: Database, context: Context | None = None
) -> "WSGIApplication":
    """Return the service on a database that is ready, as one WSGI application.

    :param context: the context of its handlers; None makes it from the configuration
    :raises Exception: the policy file cannot be parsed
    """
    enforcer = policy.make_enforcer(config)
    context = context or make_context(config, connected)
    return _assemble(config, connected, enforcer, context)


def make_context(config: cfg.ConfigOpts, connected: Database) -> Context:
    """Return the context of the handlers of a service on a database."""
    settings, journal = conf.settings(config), _keep_journal(config, connected)
    forest_cache = CachedForest(journal) if settings.keep_forest else None
    return context_of(settings, forest_cache, journal)


def _keep_journal(config: cfg.ConfigOpts, connected: Database) -> Keeper | None:
    days = config.ledger.keep_journal_days
    try:
        filing.switch(connected, on=bool(days))
    except errors.DatabaseUnavailable as exc:
        LOG.warning("the journal is not switched on or off: %s", exc)

    def most_waiting() -> int:
        # Half of the threads are left for all other requests.
        return min(
            int(config.ledger.waiting_readers), thread_limit.count_threads() // 2
        )

    return Keeper(connected, days, most_waiting) if days else None


def _assemble(
    config: cfg.ConfigOpts,
    connected: Database,
    enforcer: Enforcer,
    context: Context,
    chores: Sequence[Chore] = (),
) -> "WSGIApplication":
    application: WSGIApplication = Application(
        SERVICE,
        connected,
        context,
        enforcer,
        config.placement.max_heavy_requests,
        config.api.max_request_body_size,
    )
    tracing.switch_on()
    pages = site.health_pages(connected)
    elsewhere: Sequence[tuple[socket.socket, WSGIApplication]] = ()
    if config.metrics.enabled:
        metrics = site.metrics_page(config, connected)
        elsewhere = monitoring.elsewhere(config, lambda: metrics)
        if config.api.auth_strategy == "noauth2":
            # A service without authentication needs no guard.
            pages[monitoring.METRICS] = metrics
        guarded = site.Guarded(metrics, enforcer)
        application = Surrounded(application, {monitoring.METRICS: guarded})
    beside = functools.partial(console.Site, config=config)
    wrapped = middleware.surround(
        application, config, SURROUNDINGS, beside if config.console.enabled else None
    )
    return Surrounded(wrapped, pages, elsewhere, Chores(chores).start)
