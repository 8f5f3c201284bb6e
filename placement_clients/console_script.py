"""The console scripts: each runs its command, or names the extra to install for it."""

import importlib
import sys
from collections.abc import Sequence
from functools import partial

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


def _run(
    program: str,
    module: str,
    arguments: Sequence[str] | None = None,
    *,
    unable: int = 1,
) -> int:
    """Run the command of a module.

    :param arguments: None means those of the process
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


# The names of the entry points.
request = partial(
    _run, "placement-request", "placement_clients.request.cli", unable=NO_ANSWER
)
explain = partial(
    _run, "placement-explain", "placement_clients.explain.cli", unable=NO_ANSWER
)
apply = partial(_run, "placement-apply", "placement_clients.apply.cli")
audit = partial(_run, "placement-audit", "placement_clients.audit.cli", unable=2)
feed = partial(_run, "placement-feed", "placement_clients.feed.cli")
nodes = partial(_run, "placement-nodes", "placement_nodes.cmd.nodes")
nodes_sync = partial(_run, "placement-nodes-sync", "placement_nodes.cmd.nodes_sync")
reservations = partial(
    _run, "placement-reservations", "placement_reservations.cmd.reservations"
)
