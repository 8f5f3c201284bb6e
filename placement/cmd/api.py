"""``placement-api``: the service, with its own web server and embedded database."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oslo_config import cfg

from placement import conf
from placement.db import migration
from placement.objects import standard_name
from placement.objects.ledger import Ledger
from placement_foundation.http import monitoring
from placement_foundation.http.policy import Enforcer
from placement_foundation.serving import completion, program

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


# The two that follow need all of the API, for which commands that look here for the
# embedded database should not wait.
def _make_enforcer(config: cfg.ConfigOpts) -> Enforcer:
    from placement import policy

    return policy.make_enforcer(config)


def _start(config: cfg.ConfigOpts) -> "WSGIApplication":
    from placement import app

    return app.start(config)


def _read(files: list[str] | None, connection: str) -> cfg.ConfigOpts:
    config = conf.read([], files, connection=connection, prog=PROGRAM.name)
    if config.placement_database.connection == connection:
        # Without configuration, the service is being tried out: enable its pages.
        config.set_default("enabled", True, "console")
        config.set_default("enabled", True, "metrics")
    if config.metrics.enabled and config.metrics.address:
        monitoring.check_free(config.metrics.address)
    return config


def _example(url: str) -> str:
    return (
        "curl -H 'X-Auth-Token: admin' "
        f"-H 'OpenStack-API-Version: placement latest' {url}/resource_providers"
    )


def _list_places(config: cfg.ConfigOpts, url: str) -> list[str]:
    places = []
    if config.console.enabled:
        places.append(f"Console: {url}/console/")
    if config.metrics.enabled:
        places.append(f"Metrics: {url}/metrics")
    return places


PROGRAM = program.Program(
    name="placement-api",
    title="Placement",
    project=conf.PROJECT,
    port=8778,
    database_group="placement_database",
    read=_read,
    make_enforcer=_make_enforcer,
    schema=migration.SCHEMA,
    fill=lambda database: standard_name.synchronise(Ledger(database)),
    start=_start,
    sync_command="placement-manage db sync",
    example=_example,
    list_places=_list_places,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the API until it is stopped; return the exit code."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM.name,
        description="Serve the placement API. Without any configuration it uses an "
        "embedded database, believes what callers say about themselves, and listens "
        "on the loopback interface only.",
    )
    program.add_arguments(parser, PROGRAM)
    completion.add(parser)
    return program.serve(PROGRAM, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
