"""The root of the ledger API on the wire."""

from placement_foundation.schema import (
    TEXT,
    Json,
    View,
    closed_object,
    described,
    listed,
)
from placement_foundation.version import Version

ROOT = "/ledger/v1"

# What there is below, by name.
SENTENCES = {
    "explanation": "Why hosts do not serve a request, and what would help.",
    "capacity": "How often a request could be claimed, in all and on each host.",
    "what-if": "What the answer would be if the cloud were another one.",
    "fleet": "All providers with all that belongs to them, of one moment.",
}


def path(name: str) -> str:
    """Return where something is."""
    return f"{ROOT}/{name}"


def _describe_index(version: Version) -> Json:
    names = {"enum": list(SENTENCES)}
    return closed_object(
        resources=listed(closed_object(name=names, path=TEXT, description=TEXT))
    )


@described(_describe_index)
def render_index(value: None, view: View) -> Json:
    """Render what there is below."""
    return {
        "resources": [
            {"name": name, "path": view.href(path(name)), "description": sentence}
            for name, sentence in SENTENCES.items()
        ]
    }
