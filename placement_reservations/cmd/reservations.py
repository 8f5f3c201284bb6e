"""``placement-reservations``: the service, its events and its database."""

import argparse
import dataclasses
import signal
import sys
import threading
from collections.abc import Sequence

from oslo_config import cfg

from placement_clients.access import Misconfigured
from placement_foundation.observing.log import set_up_logging
from placement_foundation.serving import command, completion, program
from placement_reservations import app, conf, policy
from placement_reservations.cmd import free, takeover
from placement_reservations.db import migration


def _example(url: str) -> str:
    return (
        f"openstack --os-auth-type none --os-endpoint {url}/v1 "
        "reservation host create compute-1"
    )


def _check(config: cfg.ConfigOpts) -> None:
    """Check that the configuration says how to reach Placement and Nova.

    :raises Unusable: it does not
    """
    try:
        app.make_world(config)
    except Misconfigured as exc:
        raise program.Unusable(str(exc)) from exc


PROGRAM = program.Program(
    name="placement-reservations",
    title="The reservation service",
    project=conf.PROJECT,
    port=1234,
    database_group="database",
    read=conf.read,
    make_enforcer=policy.make_enforcer,
    schema=migration.SCHEMA,
    check=_check,
    start=app.start,
    begin=app.begin_events,
    sync_command="placement-reservations db sync",
    example=_example,
)
WITHOUT_EVENTS = dataclasses.replace(PROGRAM, begin=lambda config: None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command given by the arguments; return the exit code."""
    asked = _parser().parse_args(arguments)
    exit_code: int = asked.run(asked)
    return exit_code


def serve(asked: argparse.Namespace) -> int:
    """Serve the reservation API and run events, until stopped."""
    return program.serve(PROGRAM if asked.events else WITHOUT_EVENTS, asked)


def run_events(asked: argparse.Namespace) -> int:
    """Run events only, until stopped."""

    def work(config: cfg.ConfigOpts) -> None:
        program.prepare_database(PROGRAM, config)
        _check(config)
        set_up_logging(config, conf.PROJECT)
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        world = app.make_world(config)
        app.publish(config, world)
        print("Running events. Ctrl-C stops it.", flush=True)
        app.run_events(config, world, stop)

    return program.run_configured(PROGRAM, asked, work)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM.name,
        description="The reservation service. Without any configuration it uses an "
        f"embedded database and the Placement at {conf.LOCAL_PLACEMENT}, treats "
        "every caller as an administrator, and listens on the loopback interface only.",
    )
    completion.add(parser)
    commands = parser.add_subparsers(title="commands", required=True)
    server = program.add_command(commands, "serve", serve)
    program.add_arguments(server, PROGRAM)
    server.add_argument(
        "--no-events",
        dest="events",
        action="store_false",
        help="serve the API only; another process runs the events",
    )
    events = program.add_command(commands, "events", run_events)
    command.add_config_file(events, conf.PROJECT)
    free.add(commands, PROGRAM)
    takeover.add(commands, PROGRAM)
    program.add_database_commands(commands, PROGRAM)
    return parser


if __name__ == "__main__":
    sys.exit(main())
