"""Why a server cannot be booted."""

from collections.abc import Sequence

from placement_clients.request.explanation import Explanation


class BadInput(Exception):
    """A flavor, an image or another input is wrong. Each problem says where."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class NoValidHost(Exception):
    """No host can take the server, according to Placement."""

    def __init__(self, reason: str, explanation: Explanation | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.explanation = explanation


class ServerTaken(Exception):
    """The server has allocations already: it runs, or another client is booting it."""
