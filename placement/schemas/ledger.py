"""The root of the ledger API on the wire."""

from placement_foundation.http.schema import (
    TEXT,
    Json,
    View,
    closed_object,
    described,
    listed,
)

ROOT = "/ledger/v1"

# The resources below it, by name.
SENTENCES = {
    "explanation": "Why hosts do not serve a request, and what would help.",
    "capacity": "How often a request could be claimed, in all and on each host.",
    "what-if": "Answers as they would be after a change of the cloud.",
    "leases": "Claims that end by themselves, unless they are confirmed in time.",
    "placements": "Choose hosts for consumers and claim them, in one request.",
    "fleet": "All providers with all that belongs to them, of one moment.",
    "changes": "Changes since a cursor, as a feed that misses nothing.",
    "history": "Changes with their times and requests, the newest first.",
    "history/allocations": "Allocations of a consumer or a provider at a moment.",
    "apply": "Make the hardware what a file declares.",
    "declared": "Declared hardware, and where the ledger differs now.",
    "audits": "Findings of the last audits of claims.",
    "names": "The names that owners gave to aggregates and projects.",
}


def path(name: str) -> str:
    """Return the path of a resource."""
    return f"{ROOT}/{name}"


RESOURCE = closed_object(name={"enum": list(SENTENCES)}, path=TEXT, description=TEXT)


@described(closed_object(resources=listed(RESOURCE)))
def render_index(value: None, view: View) -> Json:
    """Render the index of the resources below the root."""
    return {
        "resources": [
            {"name": name, "path": view.href(path(name)), "description": sentence}
            for name, sentence in SENTENCES.items()
        ]
    }
