"""``placement-nodes``: the service and its database."""

import argparse
import sys
from collections.abc import Sequence

from placement_foundation.serving import completion, program
from placement_nodes import app, conf, policy
from placement_nodes.db import migration


def _example(url: str) -> str:
    return (
        f"openstack --os-auth-type none --os-endpoint {url} "
        "baremetal node create --driver fake-hardware --name n1"
    )


PROGRAM = program.Program(
    name="placement-nodes",
    title="The node traits service",
    project=conf.PROJECT,
    port=6385,
    database_group="database",
    read=conf.read,
    make_enforcer=policy.make_enforcer,
    schema=migration.SCHEMA,
    start=app.start,
    sync_command="placement-nodes db sync",
    example=_example,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command given by the arguments; return the exit code."""
    asked = _parser().parse_args(arguments)
    exit_code: int = asked.run(asked)
    return exit_code


def serve(asked: argparse.Namespace) -> int:
    """Serve the bare metal API until stopped."""
    return program.serve(PROGRAM, asked)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM.name,
        description="The node traits service. Without any configuration it uses an "
        "embedded database, treats everybody as an administrator, and listens on the "
        "loopback interface only.",
    )
    completion.add(parser)
    commands = parser.add_subparsers(title="commands", required=True)
    program.add_arguments(program.add_command(commands, "serve", serve), PROGRAM)
    program.add_database_commands(commands, PROGRAM)
    return parser


if __name__ == "__main__":
    sys.exit(main())
