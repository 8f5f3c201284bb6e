"""Entries as they are filed: compressed, and found by the words that they mention."""

import datetime
import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any, TypeAlias

# An entry as JSON.
Document: TypeAlias = Mapping[str, Any]

LEVEL = 6
# The word by which gaps are found.
GAP_WORD = "journal.gap"
# What most entries contain. It makes them a third smaller, and must never change: what
# is stored cannot be read without it.
_USUAL = (
    b'"roots":["names":{"expires_at":"lease.renewedlease.confirmedlease.expired'
    b"journal.gaptrait.createdresource_class.createdconsumer.changedtraits.changed"
    b'aggregates.changed","before":null,"after":{"added":["],"removed":["CUSTOM_'
    b'provider.deletedprovider.updatedprovider.created","before":null,"after":'
    b'{"name":"","parent":null,"root":"inventory.changed{"total":,"reserved":0,'
    b'"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1.0}'
    b'"request":"DELETE /allocations/POST /allocations","POST /reshaper"PUT '
    b"/resource_providers//inventories/traits/aggregatesPLACEMENT_AGGREGATEVGPU"
    b'PCPUDISK_GBMEMORY_MBVCPU"consumer":{"project_id":"","user_id":"",'
    b'"consumer_type":"INSTANCE"},"user_name":"nova","project_name":"service",'
    b'"generation":1,"root":"{"request":"PUT /allocations/","request_id":"req-",'
    b'"global_request_id":"req-","user_id":"","project_id":"","id":"","type":'
    b'"allocations.changed","subject":"","before":{},"after":{"":{"VCPU":,'
    b'"MEMORY_MB":,"DISK_GB":}},'
)


def pack(document: Document) -> bytes:
    """Return an entry as it is filed."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=_USUAL)
    text = json.dumps(document, separators=(",", ":")).encode("ascii")
    return packer.compress(text) + packer.flush()


def unpack(packed: bytes) -> dict[str, Any]:
    """Return a filed entry."""
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS, zdict=_USUAL)
    document: dict[str, Any] = json.loads(unpacker.decompress(packed))
    return document


def words_of(document: Document) -> set[str]:
    """Return the words by which an entry is found: UUIDs, and ids of requests."""
    words = {
        document["subject"],
        document["root"],
        document.get("request_id"),
        document.get("global_request_id"),
        *document.get("roots", ()),
        *document.get("names", ()),
    }
    if document["type"] == GAP_WORD:
        words.add(GAP_WORD)
    return words - {None}


def hash_of(word: str) -> int:
    """Return the number that stands for a word in the database."""
    digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def token_of(document: Document) -> str:
    """Return the part of an entry's id by which a cursor recognises it."""
    return str(document["id"]).replace("-", "")[:12]


def render_time(moment: datetime.datetime) -> str:
    """Return a moment as entries and answers have it."""
    return f"{moment.isoformat(timespec='microseconds')}Z"
