"""The checks of placements and of the feed can fail: each fault is found."""

import copy
import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.stress import proof
from tests.stress.follower import Diary, Reading, State, load
from tests.stress.history import Amounts
from tests.stress.room import CLASS, MOST, Event, World

NORTH, SOUTH, WEST = "north", "south", "west"
WORLD = World({"rack-1": [NORTH, SOUTH], "rack-2": [WEST]}, [SOUTH], ["g1", "g2"])
ONE = {CLASS: 1}


def on(host: str, amount: int = 1) -> Amounts:
    return {host: {CLASS: amount}}


def place(at: float, *consumers: str, status: int = 201, **members: Any) -> Event:
    """Return a placement of consumers, all on the first host unless said otherwise."""
    told: dict[str, Any] = {
        "consumers": list(consumers),
        "at_least": len(consumers),
        "within": WORLD.hosts,
    }
    if status < 400:
        told["has"] = {each: on(NORTH) for each in consumers}
    else:
        told["reason"] = "placement.no_room"
    return Event("place", at, at + 0.5, status, **{**told, **members})


def release(at: float, consumer: str, status: int = 204, first: bool = True) -> Event:
    return Event("release", at, at + 0.5, status, consumers=[consumer], first=first)


def change(at: float, total: int) -> Event:
    return Event("inventory", at, at + 0.5, 200, host=SOUTH, total=total)


def full(at: float, *but: str) -> Event:
    """Return a claim of all there is on all hosts but some."""
    amounts = {host: {CLASS: MOST} for host in WORLD.hosts if host not in but}
    return Event("claim", at, at + 0.5, 204, consumers=["full"], has={"full": amounts})


def faults(*events: Event, **final: Amounts) -> str:
    return "\n".join(proof.find_faults(WORLD, events, final))


def test_a_story_that_can_be_has_no_faults() -> None:
    assert not faults(place(0, "a", "b"), a=on(NORTH), b=on(NORTH))
    again = place(2, "a", had={"a": on(NORTH)}, existed=["a"])
    assert not faults(place(0, "a"), again, release(4, "a"))
    lost = place(0, "a", status=0, first=True)
    assert not faults(lost, place(1, "a", first=False), a=on(NORTH))
    assert not faults(lost, place(1, "a", first=False, existed=["a"]), a=on(NORTH))
    assert not faults(lost, place(1, "a", status=409, first=False))
    assert not faults(lost, place(1, "a", status=409, first=False), a=on(WEST))
    some = place(0, "a", "b", at_least=1, has={"a": on(NORTH)}, unplaced=["b"])
    assert not faults(some, a=on(NORTH))
    kept = full(0)
    all_of_it = {"full": kept.has["full"]}
    assert not faults(kept, place(1, "a", status=409), **all_of_it)


def test_what_was_acknowledged_and_is_gone_is_found() -> None:
    assert "a has None, and was left with" in faults(place(0, "a"))
    assert "a has {'west'" in faults(place(0, "a"), a=on(WEST))


def test_what_was_refused_or_released_and_is_there_is_found() -> None:
    refused = faults(
        full(0), place(1, "a", status=409), a=on(NORTH), full=full(0).has["full"]
    )
    assert "a has {'north': {'VCPU': 1}}, which it should not" in refused
    assert "which it should not" in faults(place(0, "a"), release(1, "a"), a=on(NORTH))


def test_a_part_of_those_that_belong_together_is_found() -> None:
    lost = place(0, "a", "b", status=0)
    again = place(1, "a", "b", first=False, existed=["a"])
    assert "only ['a'] were there" in faults(lost, again, a=on(NORTH), b=on(NORTH))
    short = place(0, "a", "b", has={"a": on(NORTH)}, unplaced=["b"])
    assert "1 were placed, 2 had to be" in faults(short, a=on(NORTH))
    nobody = place(0, "a", "b", at_least=1, has={"a": on(NORTH)})
    assert "were placed, [] not" in faults(nobody, a=on(NORTH))


def test_a_request_that_is_sent_again_and_places_again_is_found() -> None:
    again = place(1, "a", had={"a": on(NORTH)}, has={"a": on(WEST)})
    assert "a had {'north'" in faults(place(0, "a"), again, a=on(WEST))
    early = place(0, "a", existed=["a"])
    assert "were there before they were asked for" in faults(early, a=on(NORTH))


def test_too_many_in_one_domain_are_found() -> None:
    close = place(0, "a", "b", per="host", at_most=1)
    assert "2 are in north, at most 1" in faults(close, a=on(NORTH), b=on(NORTH))
    has = {"a": on(NORTH), "b": on(SOUTH)}
    rack = place(0, "a", "b", per="rack", at_most=1, has=has)
    assert "2 are in rack-1, at most 1" in faults(rack, **has)
    outside = place(0, "a", within=[WEST])
    assert "outside of ['west']" in faults(outside, a=on(NORTH))


def test_two_of_the_group_on_one_host_are_found() -> None:
    both = place(0, "g1"), place(1, "g2")
    assert "were both on {'north'}" in faults(*both, g1=on(NORTH), g2=on(NORTH))
    after = place(0, "g1"), release(1, "g1"), place(2, "g2")
    assert not faults(*after, g2=on(NORTH))


def test_a_refusal_while_there_was_room_is_found() -> None:
    refused = place(2, "a", "b", status=409)
    assert "refused while there was room for 18" in faults(refused)
    kept = full(0, WEST)
    held = {"full": kept.has["full"]}
    assert "room for 6" in faults(kept, refused, **held)
    gone = full(0), release(1, "full")
    assert "room for 18" in faults(*gone, refused)
    assert not faults(full(0), release(1.9, "full"), refused)
    spread = {"per": "host", "at_most": 1}
    three = place(2, "a", "b", "c", status=409, **spread)
    assert "room for 3" in faults(three)
    four = place(2, "a", "b", "c", "d", status=409, **spread)
    assert not faults(four)
    racks = place(2, "a", "b", "c", status=409, per="rack", at_most=1)
    assert not faults(racks)
    inside = place(2, "a", status=409, within=[WEST])
    assert "room for 6" in faults(inside)


def test_the_group_and_inventories_count_for_the_room() -> None:
    beside = {"per": "host", "at_most": 1, "beside": ["g2"]}
    refused = place(2, "g1", status=409, within=[NORTH], **beside)
    assert not faults(place(0, "g2"), refused, g2=on(NORTH))
    assert "room for 1" in faults(refused)
    only = place(4, *"abcdef", status=409, within=[SOUTH])
    assert "room for 6" in faults(only)
    assert not faults(change(0, 3), only)
    assert "room for 6" in faults(change(0, 3), change(1, 6), only)
    assert not faults(change(0, 3), dataclasses.replace(change(1, 6), ended=9), only)


def test_answers_of_no_correct_service_are_found() -> None:
    for status in (500, 400, 404):
        assert f"place was answered {status}" in faults(place(0, "a", status=status))
    assert "release was answered 404" in faults(release(0, "a", 404))
    again = release(0, "a", 0), release(1, "a", 404, first=False)
    assert not faults(*again)
    busy = place(0, "a", status=409, reason="placement.concurrent_update")
    assert "concurrent_update" in faults(busy)
    crash = Event("shape", 0, 1, 500, "bug")
    assert "shape was answered 500: bug" in faults(crash)


def test_a_lease_that_does_not_end_is_found() -> None:
    leased = Event("lease", 2, 3, 200, consumers=["a"])
    assert not faults(place(0, "a"), leased)
    assert "after its lease" in faults(place(0, "a"), leased, a=on(NORTH))


# The feed

NOTHING: Amounts = {}
INVENTORY = {"total": MOST, "reserved": 0, "allocation_ratio": 1.0}
PROVIDER: dict[str, Any] = {
    "uuid": NORTH,
    "name": NORTH,
    "parent_provider_uuid": None,
    "root_provider_uuid": NORTH,
    "inventories": {CLASS: INVENTORY},
    "traits": [],
    "aggregates": [],
    "allocations": {},
}
FLEET = {"providers": [PROVIDER], "cursor": "c0"}
OWNER = {"project_id": "blue", "user_id": "ann", "consumer_type": "TEST"}


def entry(number: int, subject: str, before: Any, after: Any, **members: Any) -> Any:
    return {
        "id": f"e{number}",
        "type": "allocations.changed",
        "subject": subject,
        "before": before,
        "after": after,
        "time": "2026-01-01T00:00:00.000000Z",
        "request_id": f"r{number}",
        "consumer": OWNER,
        **members,
    }


def of_feed(*entries: Any, events: Iterable[Event] = ()) -> str:
    begin = State.of(copy.deepcopy(FLEET))
    return "\n".join(proof.find_faults_of_feed(WORLD, events, begin, entries))


def test_a_feed_that_can_be_has_no_faults() -> None:
    assert not of_feed(
        entry(1, "a", NOTHING, on(NORTH, 4)),
        entry(2, "a", on(NORTH, 4), on(NORTH, 6)),
        entry(3, "a", on(NORTH, 6), NOTHING),
        entry(4, "b", NOTHING, on(NORTH, 6)),
    )


def test_more_than_there_is_at_any_commit_is_found() -> None:
    first, second = entry(1, "a", NOTHING, on(NORTH, 4)), on(NORTH, 3)
    assert "7 of VCPU were used of north, which has 6" in of_feed(
        first, entry(2, "b", NOTHING, second)
    )
    gone = entry(2, "a", on(NORTH, 4), NOTHING)
    assert not of_feed(first, gone, entry(3, "b", NOTHING, second))
    less = {CLASS: {**INVENTORY, "total": 2}}
    smaller = entry(2, NORTH, {CLASS: INVENTORY}, less, type="inventory.changed")
    assert not of_feed(first, smaller)
    assert "5 of VCPU" in of_feed(first, smaller, entry(3, "b", NOTHING, on(NORTH)))
    swapped = entry(2, "a", on(NORTH, 4), NOTHING, request_id="r3")
    grown = entry(3, "b", NOTHING, on(NORTH, 6))
    assert not of_feed(first, grown, swapped)


def test_an_entry_that_is_missing_is_found() -> None:
    late = entry(2, "a", on(NORTH, 1), on(NORTH, 2))
    assert "a had {}, by the feed {'north'" in of_feed(late)
    assert "has a gap" in of_feed(entry(1, "", None, None, type="journal.gap"))


def test_a_lease_that_ends_early_is_found() -> None:
    ended = {"expires_at": "2026-01-01T00:00:01.000000Z"}
    early = entry(1, "a", ended, None, type="lease.expired")
    assert "before its time" in of_feed(early)
    late = {**early, "time": "2026-01-01T00:00:01.500000Z"}
    assert not of_feed(late)


def test_members_of_the_group_on_one_host_are_found_in_the_feed() -> None:
    one = entry(1, "g1", NOTHING, on(NORTH))
    other = entry(2, "g2", NOTHING, on(NORTH))
    assert "g2 and g1 were both on" in of_feed(one, other)


def test_what_was_not_placed_in_one_commit_is_found() -> None:
    two = entry(1, "a", NOTHING, on(NORTH)), entry(2, "b", NOTHING, on(NORTH))
    assert "not together" in of_feed(*two, events=[place(0, "a", "b")])
    assert "not together" in of_feed(two[0], events=[place(0, "a", "b", status=0)])
    assert not of_feed(*two, events=[place(0, "a", "b", at_least=1)])


def replayed(last: Any, *entries: Any, **members: Any) -> str:
    resumed = members.pop("resumed", {})
    begin = State.of(copy.deepcopy(FLEET))
    end = last if isinstance(last, State) else State.of(last)
    reading = Reading(
        members.pop("seen", list(entries)), [copy.deepcopy(FLEET)], **members
    )
    found = proof.find_faults_of_replay(reading, begin, end, [list(entries)], resumed)
    return "\n".join(found)


def test_a_replay_that_ends_elsewhere_is_found() -> None:
    claimed = entry(1, "a", NOTHING, on(NORTH))
    used = {**PROVIDER, "allocations": {"a": {"resources": ONE, **OWNER}}}
    last = {"providers": [used], "cursor": "c1"}
    assert not replayed(last, claimed)
    assert "consumers: a is {'north'" in replayed(last)
    assert "consumers: a is None" in replayed(FLEET, claimed)
    renamed = {"providers": [{**PROVIDER, "name": "new"}], "cursor": "c1"}
    assert "providers: north is {'name': 'new'" in replayed(renamed)
    traits = entry(
        1, NORTH, None, {"added": ["A"], "removed": []}, type="traits.changed"
    )
    assert "by the feed {'name': 'north'" in replayed(FLEET, traits)
    gone = entry(1, NORTH, {}, None, type="provider.deleted")
    assert not replayed({"providers": [], "cursor": "c1"}, gone)


def test_a_move_that_is_missing_is_found() -> None:
    moved = {"name": NORTH, "parent": SOUTH, "root": SOUTH}
    new = {**PROVIDER, "parent_provider_uuid": SOUTH, "root_provider_uuid": SOUTH}
    last = {"providers": [new], "cursor": "c1"}
    assert not replayed(last, entry(1, NORTH, {}, moved, type="provider.updated"))
    elsewhere = entry(1, NORTH, {}, {**moved, "root": WEST}, type="provider.updated")
    assert "'root': 'south'" in replayed(last, elsewhere)


def test_another_owner_is_found() -> None:
    red = {**OWNER, "project_id": "red"}
    used = {**PROVIDER, "allocations": {"a": {"resources": ONE, **red}}}
    last = {"providers": [used], "cursor": "c1"}
    claimed = entry(1, "a", NOTHING, on(NORTH))
    assert "owners: a is {'project_id': 'red'" in replayed(last, claimed)
    given = entry(2, "a", OWNER, red, type="consumer.changed")
    assert not replayed(last, claimed, given)


def test_a_name_that_is_missing_is_found() -> None:
    end = State.of(copy.deepcopy(FLEET))
    end.names.add("resource_class CUSTOM_NEW")
    assert "resource_class CUSTOM_NEW is not there by the feed" in replayed(end)
    new = entry(1, "CUSTOM_OLD", None, None, type="resource_class.created")
    assert "CUSTOM_OLD is there only by the feed" in replayed(end, new)
    name = {"name": "CUSTOM_NEW"}
    renamed = entry(2, "CUSTOM_OLD", None, name, type="resource_class.renamed")
    assert not replayed(end, new, renamed)
    gone = entry(3, "CUSTOM_NEW", None, None, type="resource_class.deleted")
    assert "is not there by the feed" in replayed(end, new, renamed, gone)


def test_a_lease_that_the_feed_lacks_is_found() -> None:
    used = {**PROVIDER, "allocations": {"a": {"resources": ONE, **OWNER}}}
    end = State.of({"providers": [used]})
    claimed = entry(1, "a", NOTHING, on(NORTH))
    until = {"expires_at": "soon"}
    granted = entry(2, "a", None, until, type="lease.granted")
    confirmed = entry(3, "a", until, None, type="lease.confirmed")
    assert not replayed(end, claimed, granted, confirmed)
    assert "leases: a is None, by the feed soon" in replayed(end, claimed, granted)
    assert not replayed(FLEET, claimed, granted, entry(3, "a", on(NORTH), NOTHING))
    end.leases["a"] = "soon"
    assert not replayed(end, claimed, granted)
    assert "leases: a is soon, by the feed None" in replayed(end, claimed)


def test_a_reader_that_missed_something_is_found() -> None:
    claimed = entry(1, "a", NOTHING, on(NORTH))
    back = entry(2, "a", on(NORTH), NOTHING)
    assert not replayed(FLEET, claimed, back)
    assert "has seen 1 entries, there are 2" in replayed(
        FLEET, claimed, back, seen=[back]
    )
    assert "twice" in replayed(FLEET, claimed, back, seen=[claimed, claimed])
    assert "other place" in replayed(FLEET, faults=["other place"])
    assert not replayed(FLEET, claimed, back, resumed={0: [back], 1: []})
    assert "after entry 0" in replayed(FLEET, claimed, back, resumed={0: []})


def test_what_a_reader_was_killed_at_has_not_been_read(tmp_path: Path) -> None:
    path, pages = tmp_path / "diary", [entry(1, "a", NOTHING, on(NORTH))]
    first = Diary(path)
    first.add(picture={"cursor": "c0"})
    first.add(position=0, page={"changes": pages, "cursor": "c1"})
    with path.open("ab") as file:
        file.write(b'{"position": 1, "page": {"cha')
    second = Diary(path)
    assert second.reading == first.reading
    assert second.reading.cursors == [("c0", 0), ("c1", 1)]
    second.add(position=0, page={"changes": pages, "cursor": "c1"})
    assert load(path)[0].entries == pages
