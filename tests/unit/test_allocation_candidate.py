"""What a query for allocation candidates means, and how answers are written."""

import json
import logging
import random
from typing import Any

import pytest

from placement import conf, errors
from placement.microversion import VERSIONS
from placement.model.request import Group, Request
from placement.model.tree import Snapshot, snapshot_of
from placement.questions import candidates
from placement.questions.candidates import CandidateQuery, Candidates, order_of
from placement.schemas import allocation_candidate, query
from placement.search import engine
from placement_foundation.http import query_string
from placement_foundation.http.schema import Json, View, encode
from placement_foundation.http.version import Version
from tests.property import forest
from tests.unit import clouds

A = "aaaaaaaa-0000-4000-8000-000000000001"
B = "bbbbbbbb-0000-4000-8000-000000000002"
MINORS = [minor for _, minor in VERSIONS if minor >= 10]


def parse(text: str, minor: int = 39) -> CandidateQuery:
    parser = query.CANDIDATES.at(Version(1, minor))
    assert parser is not None
    return parser(query_string.decode(text))


def sets(*names: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(each.split(",")) for each in names)


def test_a_query_becomes_groups_in_the_order_they_are_begun() -> None:
    text = (
        f"required_B=T1,!T2&resources=VCPU:1,DISK_GB:2&in_tree1=%20{A}&resources_B=VF:3"
        f"&member_of1=in:{A},{B}&member_of1=!{B}&resources1=IP:1&group_policy=isolate"
        "&root_required=T3,!T4&same_subtree=1,_B&limit=5&required_B=in:T5,T6"
    )
    assert parse(text) == CandidateQuery(
        Request(
            groups=(
                Group(
                    "_B",
                    {"VF": 3},
                    required=sets("T1", "T5,T6"),
                    forbidden=frozenset({"T2"}),
                ),
                Group("", {"VCPU": 1, "DISK_GB": 2}),
                Group(
                    "1",
                    {"IP": 1},
                    member_of=sets(f"{A},{B}"),
                    not_member_of=frozenset({B}),
                    in_tree=A,
                ),
            ),
            root_required=frozenset({"T3"}),
            root_forbidden=frozenset({"T4"}),
            isolate=True,
            same_subtree=(frozenset({"1", "_B"}),),
        ),
        limit=5,
    )


@pytest.mark.parametrize("minor", MINORS)
def test_one_provider_of_a_tree_may_give_before_1_29(minor: int) -> None:
    assert parse("resources=VCPU:1", minor).request.nested is (minor >= 29)


def test_every_candidate_is_rendered_so_that_it_can_be_read_back() -> None:
    rng = random.Random(39)
    rendered = 0
    for _ in range(200):
        cloud = forest.random_forest(rng)
        snapshot = forest.snapshot_of(cloud)
        request = forest.random_request(rng, cloud)
        candidates = tuple(engine.search(snapshot, request))
        answer = Candidates(candidates, (), frozenset())
        document = render(answer, Version(1, 39))
        listed = render(answer, Version(1, 11))
        assert [read(each) for each in document["allocation_requests"]] == [
            taken(each) for each in candidates
        ]
        assert [read_list(each) for each in listed["allocation_requests"]] == [
            taken(each) for each in candidates
        ]
        for each, candidate in zip(
            document["allocation_requests"], candidates, strict=True
        ):
            assert each["mappings"] == {
                suffix: [provider.uuid for provider in serving]
                for suffix, serving in candidate.mappings().items()
            }
            assert set(each["mappings"]) == {group.suffix for group in request.groups}
        rendered += len(candidates)
    assert rendered > 100


def render(answer: Candidates, version: Version) -> Any:
    return json.loads(encode(allocation_candidate.render(answer, View(version))))


def taken(candidate: engine.Candidate) -> dict[str, dict[str, int]]:
    return {giver.uuid: amounts for giver, amounts in candidate.amounts().items()}


def read(document: Json) -> dict[str, dict[str, int]]:
    return {
        provider: allocation["resources"]
        for provider, allocation in document["allocations"].items()
    }


def read_list(document: Json) -> dict[str, dict[str, int]]:
    return {
        allocation["resource_provider"]["uuid"]: allocation["resources"]
        for allocation in document["allocations"]
    }


def hosts(count: int, devices: int) -> Snapshot:
    """Return hosts with devices of one CUSTOM_VF below each."""
    cloud = []
    for number in range(count):
        host = forest.Node(f"h{number}", None, {}, frozenset(), frozenset())
        inventories = {"CUSTOM_VF": forest.Inventory(1)}
        cloud.append(host)
        cloud += [
            forest.Node(f"h{number}d{n}", host, inventories, frozenset(), frozenset())
            for n in range(devices)
        ]
    return forest.snapshot_of(cloud)


ONE = Request((Group(resources={"CUSTOM_VF": 1}),))


PLAIN = conf.Settings()
RANDOM = conf.Settings(randomize_allocation_candidates=True)


def find(
    limit: int | None = None, settings: conf.Settings = PLAIN
) -> list[engine.Candidate]:
    return candidates.find(hosts(2, 4), CandidateQuery(ONE, limit), order_of(settings))


def test_a_random_choice_is_another_one_each_time() -> None:
    choices = {
        frozenset(c.providers[0].uuid for c in some)
        for some in (find(2, RANDOM) for _ in range(40))
    }
    assert len(choices) > 1
    assert all(len(choice) == 2 for choice in choices)


def test_a_search_that_met_its_budget_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    few = conf.Settings(search_picks=1, search_picks_per_anchor=1)
    assert len(find(settings=few)) == 8
    assert (
        len(candidates.find(hosts(1, 20), CandidateQuery(ONE, 3), order_of(few))) == 3
    )
    assert not caplog.records, "what is asked for was found"
    found = candidates.find(hosts(1, 20), CandidateQuery(ONE, None), order_of(few))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"{len(found)} found, there may be more" in record.message


def test_a_search_that_cut_turns_short_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    cloud = snapshot_of([clouds.small_host("host")])
    question = CandidateQuery(clouds.PAIRS, None)
    assert not candidates.find(cloud, question, order_of(PLAIN))
    assert not caplog.records
    little = conf.Settings(search_picks_per_anchor=1)
    assert not candidates.find(cloud, question, order_of(little))
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert "search_picks_per_anchor cut" in record.message
    few = conf.Settings(search_picks_per_anchor=1, search_picks=1)
    with pytest.raises(
        errors.SearchExhausted, match="hard to satisfy together: 1b, 2b"
    ):
        candidates.find(cloud, question, order_of(few))
    assert "groups hard to satisfy: 1b, 2b" in caplog.text
