"""Filed entries: columns by which an entry is found, and JSON for the rest of it.

It is found by UUIDs: of its subject, the root of its tree, and its request. A text that
is none, such as the name of a trait, is found by a UUID derived from it.
"""

import datetime
import json
import uuid
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.model.entry import EntryType
from placement.model.journal import Document, render_time

# How ids of requests begin before the UUID.
_PREFIX = "req-"
_NAMESPACE = uuid.UUID("3c1f7f56-7d0c-4f0e-9d55-0a0a6c8f2d11")
_FOUND_BY = ("subject", "root", "request_id")
_encode = json.JSONEncoder(separators=(",", ":")).encode

_entry = models.JOURNAL_ENTRIES.c
# PostgreSQL writes UUIDs faster than Python.
_UUIDS = [sa.cast(_entry[name], sa.Text).label(name) for name in ("id", *_FOUND_BY)]
ENTRIES = sa.select(_entry.position, _entry.time, *_UUIDS, _entry.document)


def key_of(text: str) -> str:
    """Return the UUID by which entries that mention a text are found."""
    try:
        return str(uuid.UUID(text.removeprefix(_PREFIX)))
    except ValueError:
        return str(uuid.uuid5(_NAMESPACE, text))


GAPS = key_of(EntryType.GAP)


def row_of(
    position: int, moment: datetime.datetime, document: Document
) -> dict[str, Any]:
    """Return the row of an entry: its JSON lacks what the columns say, and nulls."""
    texts = {name: document.get(name) for name in _FOUND_BY}
    keys = {name: key_of(text) if text else None for name, text in texts.items()}
    row = {"position": position, "time": moment, "id": document["id"], **keys}
    stored = {**_members(document["id"], **keys), "time": document["time"]}
    rest = {
        name: value for name, value in document.items() if value != stored.get(name)
    }
    return {**row, "document": _encode(rest)}


def mentions_of(document: Document) -> set[str]:
    """Return the keys of what an entry mentions beside the columns of its row."""
    mentions = {*document.get("names", ()), *document.get("roots", ())}
    mentions.add(document.get("global_request_id"))
    if document["type"] == EntryType.GAP:
        mentions.add(EntryType.GAP)
    others = mentions - {None, *(document.get(name) for name in _FOUND_BY)}
    return {key_of(text) for text in others}


def parse(row: Any) -> Document:
    """Return the entry of a row of ``ENTRIES``."""
    _, moment, *columns, document = row
    rest = json.loads(document)
    return {**_members(*columns), **rest, "time": render_time(moment)}


def _members(
    uuid: str, subject: str | None, root: str | None, request_id: str | None
) -> dict[str, Any]:
    """Return the members of an entry, as far as its columns say them."""
    members = {"id": uuid, "subject": subject, "root": root}
    if request_id is not None:
        members["request_id"] = _PREFIX + request_id
    return {**members, "before": None, "after": None, "generation": None}
