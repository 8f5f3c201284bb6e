"""The providers of a cloud as one moment has them, and the names there are."""

import dataclasses

from placement.objects.candidates.vocabulary import Vocabulary
from placement.search.model import Request, Snapshot


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """All trees, or those that can matter to the request that they were loaded for."""

    vocabulary: Vocabulary
    everything: Snapshot

    def relevant(self, request: Request) -> Snapshot:
        """Return the trees that can matter to a request, and maybe others."""
        return self.everything
