"""``placement-nodes``: the service and its database."""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from placement_clients import access, output
from placement_clients.access import Misconfigured
from placement_clients.option import add_options
from placement_foundation.serving import command, completion, pipe, program
from placement_nodes import app, conf, policy
from placement_nodes.db import migration
from placement_nodes.sync.bare_metal import BareMetal, Unreadable

LIST = {
    "--url URL": "URL of the bare metal service (%(default)s)",
    "--token TOKEN": "token to send; by default the OS_* variables say how to get one",
    "--trait TRAIT...": "only nodes that have this trait; may be repeated: all of them",
    "--any-trait TRAIT...": "only nodes that have one of these; may be repeated",
    "--not-trait TRAIT...": "only nodes that do not have this one; may be repeated",
}
COLUMNS = ("uuid", "name", "resource_class", "provision_state", "traits")


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


def list_nodes(asked: argparse.Namespace) -> int:
    """List nodes by their traits: of this service, or of Ironic."""
    try:
        way = access.from_environment(url=asked.url, token=asked.token)
        nodes = BareMetal(way, COLUMNS).list_nodes()
        with pipe.dropping_the_rest():
            output.show_table(COLUMNS, _rows(nodes, asked))
    except (Misconfigured, Unreadable, pipe.Unwritable) as exc:
        command.complain(PROGRAM.name, exc)
        return 1
    return 0


def _rows(
    nodes: Iterable[Mapping[str, Any]], asked: argparse.Namespace
) -> Iterator[tuple[str, ...]]:
    """Yield the columns of the nodes that have the traits, and lack others."""
    for node in nodes:
        traits = set(node.get("traits") or ())
        if (
            traits.issuperset(asked.trait)
            and (not asked.any_trait or traits.intersection(asked.any_trait))
            and traits.isdisjoint(asked.not_trait)
        ):
            shown = {**node, "traits": " ".join(sorted(traits))}
            yield tuple(str(shown.get(name) or "") for name in COLUMNS)


def _add_list(commands: Any) -> None:
    parser = program.add_command(commands, "list", list_nodes)
    add_options(parser, LIST)
    parser.set_defaults(url=f"http://127.0.0.1:{PROGRAM.port}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM.name,
        description="The node traits service. Without any configuration it uses an "
        "embedded database, treats every caller as an administrator, and listens on "
        "the loopback interface only.",
    )
    completion.add(parser)
    commands = parser.add_subparsers(title="commands", required=True)
    program.add_arguments(program.add_command(commands, "serve", serve), PROGRAM)
    _add_list(commands)
    program.add_database_commands(commands, PROGRAM)
    return parser


if __name__ == "__main__":
    sys.exit(main())
