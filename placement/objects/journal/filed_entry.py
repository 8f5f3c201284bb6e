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
from placement.model.entry import GAP
from placement.model.journal import Document, render_time

# How ids of requests begin before the UUID.
_PREFIX = "req-"
_NAMESPACE = uuid.UUID("3c1f7f56-7d0c-4f0e-9d55-0a0a6c8f2d11")
_encode = json.JSONEncoder(separators=(",", ":")).encode

_entry = models.JOURNAL_ENTRIES.c
# PostgreSQL writes UUIDs faster than Python.
ENTRIES = sa.select(
    _entry.position,
    _entry.time,
    *(
        sa.cast(column, sa.Text).label(column.name)
        for column in (_entry.id, _entry.subject, _entry.root, _entry.request_id)
    ),
    _entry.document,
)


def key_of(text: str) -> str:
    """Return the UUID by which entries that mention a text are found."""
    try:
        return str(uuid.UUID(text.removeprefix(_PREFIX)))
    except ValueError:
        return str(uuid.uuid5(_NAMESPACE, text))


GAPS = key_of(GAP)


def row_of(
    position: int, moment: datetime.datetime, document: Document
) -> dict[str, Any]:
    """Return the row of an entry: its JSON lacks what the columns say, and nulls."""
    texts = {each: document.get(each) for each in ("subject", "root", "request_id")}
    keys = {each: key_of(text) if text else None for each, text in texts.items()}
    stored = _members(document["id"], **keys)
    rest = {
        name: value
        for name, value in document.items()
        if name != "time" and value != stored.get(name)
    }
    return {
        "position": position,
        "time": moment,
        "id": document["id"],
        **keys,
        "document": _encode(rest),
    }


def mentions_of(document: Document) -> set[str]:
    """Return the keys of what an entry mentions beside the columns of its row."""
    mentions = {
        *document.get("names", ()),
        *document.get("roots", ()),
        document.get("global_request_id"),
        GAP if document["type"] == GAP else None,
    }
    columns = {document["subject"], document["root"], document.get("request_id")}
    keys, found = (
        {key_of(text) for text in texts if text} for texts in (mentions, columns)
    )
    return keys - found


def parse(row: Any) -> Document:
    """Return the entry of a row of ``ENTRIES``."""
    _, moment, *columns, document = row
    return {
        **_members(*columns),
        **json.loads(document),
        "time": render_time(moment),
    }


def _members(
    uuid: str, subject: str | None, root: str | None, request_id: str | None
) -> dict[str, Any]:
    """Return the members of an entry, as far as its columns say them."""
    members = {
        "id": uuid,
        "subject": subject,
        "root": root,
        "before": None,
        "after": None,
        "generation": None,
    }
    if request_id is not None:
        members["request_id"] = _PREFIX + request_id
    return members
