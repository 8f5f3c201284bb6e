"""The document of a consumer can be sent back as it is."""

import re
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import errors
from placement.microversion import VERSIONS
from placement.model.allocation import Allocation
from placement.model.consumer import Consumer
from placement.routes import ROUTES
from placement.schemas import allocation as wire
from placement_foundation.http.schema import Schema, View
from placement_foundation.http.version import Version

PUT = ROUTES["/allocations/{consumer_uuid}"]["PUT"]
POST = ROUTES["/allocations"]["POST"]
AT_LEAST_ONE = Schema(wire.by_uuid(wire.V1_28, least=1))

uuids = st.uuids().map(str)
names = st.text(string.ascii_uppercase + string.digits + "_", min_size=1, max_size=9)
texts = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=255
)
consumers = st.builds(
    Consumer,
    uuid=uuids,
    project_id=texts,
    user_id=texts,
    type=names,
    generation=st.integers(1, 0x7FFFFFFF),
)
amounts = st.dictionaries(
    uuids,
    st.dictionaries(names, st.integers(1, 0x7FFFFFFF), min_size=1, max_size=3),
    min_size=1,
    max_size=3,
)
versions = st.sampled_from([Version(*each) for each in VERSIONS])


def told(consumer: Consumer, used: dict[str, dict[str, int]], view: View) -> Any:
    shares = [Allocation(consumer, uuid, 5, each) for uuid, each in used.items()]
    return wire.render_consumer(shares, view)


@given(
    consumer=consumers, used=amounts, version=versions.filter(lambda v: v >= (1, 12))
)
def test_an_answer_is_a_valid_request(
    consumer: Consumer, used: dict[str, dict[str, int]], version: Version
) -> None:
    document = told(consumer, used, View(version))
    schema = PUT.body and PUT.body.at(version)
    assert schema
    schema.check(document, "")
    claim = wire.parse_claim(consumer.uuid, document)
    assert claim.amounts == used
    assert claim.consumer.project_id == consumer.project_id
    assert claim.consumer.user_id == consumer.user_id
    assert claim.consumer.guarded == (version >= (1, 28))
    if version >= (1, 28):
        assert claim.consumer.generation == consumer.generation
    assert claim.consumer.type == (consumer.type if version >= (1, 38) else None)


@given(
    consumer=consumers, used=amounts, version=versions.filter(lambda v: v >= (1, 13))
)
def test_answers_make_a_valid_request_for_several(
    consumer: Consumer, used: dict[str, dict[str, int]], version: Version
) -> None:
    document = {consumer.uuid: told(consumer, used, View(version))}
    schema = POST.body and POST.body.at(version)
    assert schema
    schema.check(document, "")
    (claim,) = wire.parse_claims(document)
    assert claim.consumer.uuid == consumer.uuid
    assert claim.amounts == used


@given(key=st.text(string.hexdigits + "-\n ", min_size=35, max_size=37))
def test_a_consumer_is_36_characters_of_a_uuid(key: str) -> None:
    document: dict[str, Any] = {
        key: {
            "allocations": {},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
        }
    }
    if re.fullmatch("[0-9a-fA-F-]{36}", key):
        AT_LEAST_ONE.check(document, "")
    else:
        with pytest.raises(errors.BadRequest):
            AT_LEAST_ONE.check(document, "")
