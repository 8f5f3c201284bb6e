"""The console scripts: each runs its command, or names the extra to install for it."""

import importlib
import sys
from collections.abc import Sequence

EXTRA = "placement-server[clients]"
# The exit status of a command-line client that got no answer from Placement: for it, 1
# means that no host is valid.
NO_ANSWER = 3
OURS = (
    "placement_clients",
    "placement_foundation",
    "placement_nodes",
    "placement_reservations",
)


def request(arguments: Sequence[str] | None = None) -> int:
    """Run ``placement-request``; return the exit status."""
    return _run(
        "placement-request", "placement_clients.request.cli", arguments, NO_ANSWER
    )


def explain(arguments: Sequence[str] | None = None) -> int:
    """Run ``placement-explain``; return the exit status."""
    return _run(
        "placement-explain", "placement_clients.explain.cli", arguments, NO_ANSWER
    )


def apply(arguments: Sequence[str] | None = None) -> int:
    """Run ``placement-apply``; return the exit status."""
    return _run("placement-apply", "placement_clients.apply.cli", arguments)


def audit(arguments: Sequence[str] | None = None) -> int:
    """Run ``placement-audit``; return the exit status."""
    return _run("placement-audit", "placement_clients.audit.cli", arguments, 2)


def feed(arguments: Sequence[str] | None = None) -> int:
    """Run ``placement-feed``; return the exit status."""
    return _run("placement-feed", "placement_clients.feed.cli", arguments)


def nodes(arguments: Sequence[str] | None = None) -> int:
    """Run ``placement-nodes``; return the exit status."""
    return _run("placement-nodes", "placement_nodes.cmd.nodes", arguments)


def nodes_sync(arguments: Sequence[str] | None = None) -> int:
    """Run ``placement-nodes-sync``; return the exit status."""
    return _run("placement-nodes-sync", "placement_nodes.cmd.nodes_sync", arguments)


def reservations(arguments: Sequence[str] | None = None) -> int:
    """Run ``placement-reservations``; return the exit status."""
    return _run(
        "placement-reservations", "placement_reservations.cmd.reservations", arguments
    )


def _run(
    program: str, module: str, arguments: Sequence[str] | None, unable: int = 1
) -> int:
    """Run the command of a module.

    :param unable: the exit status if a library is missing
    """
    try:
        command = importlib.import_module(module)
    except ModuleNotFoundError as exc:
        missing = (exc.name or "").partition(".")[0]
        if missing in OURS:
            raise
        print(
            f"{program}: the Python package {missing} is not installed; run: "
            f'pip install "{EXTRA}"',
            file=sys.stderr,
        )
        return unable
    status: int = command.main(arguments)
    return status
