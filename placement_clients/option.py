"""The options of every command for reaching Placement, and the client they describe."""

import argparse
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from oslo_config import cfg

from placement_clients import access
from placement_clients.access import Access, Misconfigured
from placement_clients.client import Client
from placement_foundation.serving import completion

WAY = {
    "--url URL": "URL of Placement, such as http://127.0.0.1:8778",
    "--token TOKEN": "token to send; `admin` for a Placement without authentication; "
    "not for one of --config-file",
    "--config-file FILE": "read it from the [placement] section of this file instead; "
    "--url and --timeout count for more than what that has",
    "--timeout SECONDS": "how many seconds to wait for an answer "
    f"({access.ANSWER_SECONDS:g})",
}


def parser_of(
    program: str, description: str, epilog: str, usage: str | None = None
) -> argparse.ArgumentParser:
    """Return the parser of a command that works with one Placement.

    It has the options for reaching it, and the one for completion.

    :param usage: the first lines of the help; None means those that argparse makes
    """
    parser = argparse.ArgumentParser(
        prog=program,
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_way(parser)
    completion.add(parser)
    return parser


def add_way(parser: argparse.ArgumentParser) -> None:
    """Add the options for reaching Placement."""
    group = parser.add_argument_group(
        "where Placement is",
        "Without any of these, the OS_* variables of the openstack command line say "
        "how to reach it: OS_AUTH_URL, OS_USERNAME, OS_PASSWORD and so on. "
        "clouds.yaml (OS_CLOUD) is not read.",
    )
    add_options(group, WAY, {"--timeout": seconds})


def add_options(
    group: Any,
    options: Mapping[str, str],
    types: Mapping[str, Callable[[str], Any]] = MappingProxyType({}),
) -> None:
    """Add options by a table: how each is written, and what it means.

    ``--json`` is given or not, ``--url URL`` has a value, and ``--host NAME...`` may be
    repeated.

    :param types: what makes a value of a string, by the name of an option
    """
    for written, meaning in options.items():
        name, _, value = written.partition(" ")
        kind: dict[str, Any] = {"action": "store_true"}
        if value:
            kind = {"metavar": value.removesuffix("..."), "type": types.get(name, str)}
        if value.endswith("..."):
            kind |= {"action": "append", "default": []}
        group.add_argument(name, help=meaning, **kind)


def seconds(text: str) -> float:
    """Return a number of seconds above 0."""
    if not 0 < float(text) < float("inf"):
        raise ValueError(text)
    return float(text)


def placement_of(asked: argparse.Namespace) -> Client:
    """Return the client that the options and the environment describe."""
    if not asked.config_file:
        return Client(from_environment(asked, asked.url))
    try:
        config = access.read(asked.config_file)
        for name, given in (
            ("endpoint_override", asked.url),
            ("timeout", asked.timeout),
        ):
            if given:
                config.set_override(name, given, access.GROUP)
    except (cfg.Error, OSError, ValueError) as exc:
        raise Misconfigured(f"{asked.config_file}: {exc}") from exc
    return Client(access.from_config(config))


def from_environment(asked: argparse.Namespace, url: str | None) -> Access:
    """Return the way to a service that the options and the environment describe.

    :param url: of the service, None if the environment has it
    """
    return access.from_environment(
        url=url,
        token=asked.token,
        answer_seconds=asked.timeout or access.ANSWER_SECONDS,
    )
