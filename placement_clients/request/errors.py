"""Why a server cannot be booted."""

from placement_clients.output import Unusable
from placement_clients.record import Json


class BadInput(Unusable):
    """A flavor, an image or another input is wrong. Each problem says where."""


class NoValidHost(Exception):
    """No host can take the server, according to Placement.

    ``explanation`` is that of ``/ledger/v1/explanation``, None if there is none.
    """

    def __init__(self, reason: str, explanation: Json = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.explanation = explanation


class ServerTaken(Exception):
    """The server has allocations already: it runs, or another client is booting it."""
