"""Why a request has no candidates, if the service can explain it."""

import dataclasses
from typing import Self

from placement_clients.client import Client
from placement_clients.errors import BadRequest, PlacementError
from placement_clients.record import Json


@dataclasses.dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of the service: a few sentences, and what would help.

    ``document`` is all of it, as ``/ledger/v1/explanation`` answers.
    """

    summary: str
    changes: tuple[str, ...]
    document: Json

    @classmethod
    def parse(cls, document: Json) -> Self | None:
        """Return an explanation, None if the document is not one."""
        if not isinstance(document, dict) or not isinstance(
            document.get("summary"), str
        ):
            return None
        changes = document.get("changes")
        texts = [
            each["text"]
            for each in (changes if isinstance(changes, list) else [])
            if isinstance(each, dict) and isinstance(each.get("text"), str)
        ]
        # The same change may help with two constraints.
        return cls(document["summary"], tuple(dict.fromkeys(texts)), document)


def ask(placement: Client, query: str) -> Explanation | None:
    """Request an explanation of a query, which most services do not offer.

    Nothing depends on an explanation, so a failure means that there is none.

    :raises BadRequest: the query names something that does not exist, which a search
        that ends early does not notice
    """
    try:
        document = placement.get("/ledger/v1/explanation", version="1.36", query=query)
    except BadRequest:
        raise
    except PlacementError:
        return None
    return Explanation.parse(document)
