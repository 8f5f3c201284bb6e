"""The options of every command for reaching Placement, and the client they describe."""

import argparse
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from placement_clients import access
from placement_clients.access import Access, Misconfigured
from placement_clients.client import Client
from placement_foundation.serving import completion


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
    group.add_argument("--url", help="URL of Placement, such as http://127.0.0.1:8778")
    group.add_argument(
        "--token",
        help="token to send; `admin` for a Placement without authentication; "
        "not for one of --config-file",
    )
    group.add_argument(
        "--config-file",
        metavar="FILE",
        help="read it from the [placement] section of this file instead; --url and "
        "--timeout count for more than what that has",
    )
    group.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help=f"how many seconds to wait for an answer ({access.ANSWER_SECONDS:g})",
    )


def add_all(group: Any, meanings: Mapping[str, str], **kind: Any) -> None:
    """Add options of one kind, each with its name and its meaning."""
    for name, meaning in meanings.items():
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
