"""When a lease could start, and why one is refused."""

import datetime
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from placement_foundation import errors
from placement_reservations import app, capacity
from placement_reservations.capacity import Size
from placement_reservations.cmd import reservations as command
from placement_reservations.lifecycle import opening
from placement_reservations.store.lease import Wish
from tests.reservations.cloud import DAY, HOUR, TODAY, Cloud
from tests.reservations.options import make_config
from tests.reservations.visitor import Visitor
from tests.serving import serving

MINUTE = datetime.timedelta(minutes=1)
WHOLE = Size(8, 1024, 5)


WORDS = ("--vcpus=8", "--memory-mb=1024", "--disk-gb=5", "--minutes=120")
DAY_OF_INTEREST = ("--start", "2030-03-05 12:00", "--end", "2030-03-06 00:00")


@pytest.fixture
def visitor(cloud: Cloud) -> Visitor:
    return Visitor(app.build(make_config(), cloud.world))


def ask_all(visitor: Visitor, **other: object) -> Any:
    query = {
        "vcpus": 8,
        "memory_mb": 1024,
        "disk_gb": 5,
        "amount": 2,
        "start_date": "2030-03-05 00:00",
        "end_date": "2030-03-06 00:00",
        **other,
    }
    return visitor.get(f"/v1/leases/free?{urlencode(query)}")


def ask(visitor: Visitor, **other: object) -> list[tuple[str, str]]:
    found = ask_all(visitor, **other)["free"]
    return [(each["first_start"][5:16], each["last_start"][5:16]) for each in found]


def test_free_times_lie_around_what_is_promised(cloud: Cloud, visitor: Visitor) -> None:
    assert ask(visitor) == [("03-05T00:00", "03-06T00:00")]
    cloud.order(1, size=WHOLE, start=TODAY + DAY, hours=2)
    both = [("03-05T00:00", "03-05T11:00"), ("03-05T14:00", "03-06T00:00")]
    assert ask(visitor) == both
    assert ask(visitor, amount=1) == [("03-05T00:00", "03-06T00:00")]
    assert ask(visitor, minutes=13 * 60) == [("03-05T14:00", "03-06T00:00")]
    assert ask(visitor, amount=3) == []
    assert ask(visitor, affinity="True") == []


def test_free_times_are_looked_for_from_now_and_for_a_month(
    cloud: Cloud, visitor: Visitor
) -> None:
    query = "vcpus=8&memory_mb=1024&disk_gb=5&amount=2"
    for times, first, last in (
        ("", "2030-03-04T12:00", "2030-04-03T12:00"),
        ("&start_date=2030-03-05+00:00", "2030-03-05T00:00", "2030-04-04T00:00"),
        ("&end_date=2030-03-05+00:00", "2030-03-04T12:00", "2030-03-05T00:00"),
    ):
        found = visitor.get(f"/v1/leases/free?{query}{times}")["free"]
        assert found == [
            {"first_start": f"{first}:00.000000", "last_start": f"{last}:00.000000"}
        ]
    # By default, it is for an hour.
    cloud.order(1, size=WHOLE, start=TODAY + HOUR, hours=1)
    found = visitor.get(f"/v1/leases/free?{query}&end_date=2030-03-04+14:00")["free"]
    assert [
        (each["first_start"][11:16], each["last_start"][11:16]) for each in found
    ] == [
        ("12:00", "12:00"),
        ("14:00", "14:00"),
    ]


def test_no_free_time_is_in_the_past(cloud: Cloud, visitor: Visitor) -> None:
    past = "2020-01-01 00:00"
    # It is 12:00:20, and a lease may still start at 12:00.
    until = {"end_date": "2030-03-04 13:00"}
    assert ask(visitor, start_date=past, **until) == [("03-04T12:00", "03-04T13:00")]
    assert ask(visitor, start_date="2030-03-04 11:59", end_date="now") == [
        ("03-04T12:00", "03-04T12:00")
    ]
    query = f"vcpus=8&memory_mb=1024&disk_gb=5&amount=2&start_date={quote(past)}"
    found = visitor.get(f"/v1/leases/free?{query}")
    assert found["free"] == [
        {
            "first_start": "2030-03-04T12:00:00.000000",
            "last_start": "2030-04-03T12:00:00.000000",
        }
    ]
    # What is lacking is said of the first moment that is looked at.
    cloud.order(1, size=WHOLE, start=TODAY, hours=1)
    found = visitor.get(f"/v1/leases/free?{query}")
    assert "Host 1 has too little vcpus." in found["lacking"]
    assert found["free"][0]["first_start"] == "2030-03-04T13:00:00.000000"
    end = "2030-03-04 11:59"
    refused = visitor.call("GET", f"/v1/leases/free?{query}&end_date={quote(end)}")
    assert refused.status == 400
    assert refused.message == f"end_date '{end}' is in the past."


def test_what_is_not_looked_at_is_not_said_to_be_free(
    cloud: Cloud, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hour in (2, 6):
        cloud.order(1, size=WHOLE, start=TODAY + DAY + hour * HOUR, hours=2)
    first, second = ("03-05T00:00", "03-05T13:00"), ("03-05T16:00", "03-05T17:00")
    third = ("03-05T20:00", "03-06T00:00")
    for most, found, until in (
        (5, [first, second, third], "03-06T00:00"),
        (3, [first, second], "03-05T17:00"),
        (2, [first], "03-05T15:59"),
        (1, [first], "03-05T13:00"),
    ):
        monkeypatch.setattr(opening, "MOST_CHANGES", most)
        assert ask(visitor) == found
        assert ask_all(visitor)["until"][5:16] == until
    # Not even in a refusal.
    message = "It fits at no time up to 2030-03-05 12:00; what comes later was"
    with pytest.raises(errors.Conflict, match=message):
        cloud.order(3, size=WHOLE, start=TODAY + DAY - 12 * HOUR)


def test_only_the_hosts_that_change_are_looked_at(
    cloud: Cloud, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hour in range(8):
        cloud.order(1, size=WHOLE, start=TODAY + DAY + 3 * hour * HOUR, hours=1)
    count = capacity.count_free
    counted = []

    def note(*arguments: Any) -> int:
        counted.append(arguments)
        return count(*arguments)

    monkeypatch.setattr(capacity, "count_free", note)
    # With thousands of hosts, it would take minutes to look at all each time.
    ask(visitor, amount=3)
    at_first, for_the_message, at_changes = 2, 4, 9
    assert len(counted) == at_first + for_the_message + at_changes


def test_only_some_times_are_tried_out_for_several_reservations(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hour in range(8):
        cloud.order(1, size=Size(1, 64, 1), start=TODAY + DAY + 3 * hour * HOUR)
    # Each fits by itself, but not both.
    wishes = [Wish(8, 64, 1, 1), Wish(1, 64, 1, 9)]
    monkeypatch.setattr(opening, "MOST_TRIALS", 3)
    with pytest.raises(errors.Conflict, match="what comes later was not looked at"):
        cloud.order(wishes=wishes)
    monkeypatch.setattr(opening, "MOST_TRIALS", 50)
    with pytest.raises(errors.Conflict, match="It does not fit within a year"):
        cloud.order(wishes=wishes)


def test_the_page_shows_what_is_asked_and_answered(
    cloud: Cloud,
    visitor: Visitor,
    ask_command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (Path(__file__).parents[2] / "docs/placement-reservations.rst").read_text()
    cloud.clock.time = datetime.datetime(2026, 11, 22, 12, 0, 20)
    asked, document = re.findall(
        r"    GET (/v1/leases/free\?.*)\n\n((?:    .*\n)+)", page
    )[0]
    assert visitor.get(asked) == json.loads(document)
    cloud.clock.time = TODAY + DAY
    cloud.order(1, size=WHOLE, start=TODAY + DAY, hours=2)
    words, printed = re.findall(
        r"``placement-reservations free (.*)``\s+prints\n\n.*\n\n((?:    .*\n)+)", page
    )[0]
    assert ask_command(*words.split()) == 0
    shown = capsys.readouterr()
    assert (shown.err + shown.out).split() == printed.split()


def test_a_question_about_free_times_is_checked(visitor: Visitor) -> None:
    for wrong in (
        "vcpus=1",
        "vcpus=1&memory_mb=1&disk_gb=1&amount=0",
        "vcpus=1&memory_mb=1&disk_gb=1&amount=x",
        "vcpus=1&memory_mb=1&disk_gb=1&amount=1&minutes=0",
        "vcpus=1&memory_mb=1&disk_gb=1&amount=1&what=1",
        "vcpus=1&memory_mb=1&disk_gb=1&amount=1&start_date=soon",
        "vcpus=1&memory_mb=1&disk_gb=1&amount=1&end_date=2001-01-01+00:00",
        "vcpus=1&memory_mb=1&disk_gb=1&amount=1&resource_properties=[1]",
    ):
        assert visitor.call("GET", f"/v1/leases/free?{wrong}").status == 400, wrong


@pytest.fixture
def ask_command(cloud: Cloud) -> Iterator[Callable[..., int]]:
    """Give the command, for the service over HTTP, with further arguments."""
    with serving(app.build(make_config(), cloud.world)) as served:
        words = ["free", "--url", served.url, "--token", "any", *WORDS]
        yield lambda *more: command.main([*words, *more])


def test_the_command_lists_free_times(
    cloud: Cloud,
    ask_command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    cloud.order(1, size=WHOLE, start=TODAY + DAY, hours=2)
    assert ask_command("--amount=2", *DAY_OF_INTEREST) == 0
    shown = capsys.readouterr()
    header, line = shown.out.splitlines()
    assert header.split() == ["first_start", "last_start"]
    assert line.split() == ["2030-03-05", "14:00", "2030-03-06", "00:00"]
    assert "Host 1 has too little vcpus. Host 2 has room for 1." in shown.err
    assert "It would fit from 2030-03-05 14:00." in shown.err
    assert ask_command("--amount=2", *DAY_OF_INTEREST, "--json") == 0
    shown = capsys.readouterr()
    (found,) = json.loads(shown.out)["free"]
    assert found["first_start"] == "2030-03-05T14:00:00.000000"
    assert ask_command("--amount=1", *DAY_OF_INTEREST, "--affinity=True") == 0
    assert capsys.readouterr().err == ""


def test_the_command_says_why_there_is_no_free_time(
    cloud: Cloud,
    ask_command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    cloud.change_capability("compute-1", gpu="True")
    properties = '--resource-properties=["==", "$gpu", "True"]'
    assert ask_command("--amount=2", *DAY_OF_INTEREST, properties) == 1
    shown = capsys.readouterr()
    assert "Host 2 does not meet $gpu == True." in shown.err
    assert "It fits at no time up to 2030-03-06 00:00." in shown.err
    assert ask_command("--amount=2", "--start", "soon") == 2
    assert "start_date 'soon' is not a time" in capsys.readouterr().err
    with pytest.raises(SystemExit) as refused:
        ask_command()
    assert refused.value.code == 2


def test_the_command_says_that_it_gets_no_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["free", *WORDS, "--amount=1", "--url", "http://127.0.0.1:9"]
    assert command.main(words) == 3
    assert "could not be reached" in capsys.readouterr().err


def test_a_lease_can_be_made_when_it_says_so_and_at_no_other_time(
    cloud: Cloud, visitor: Visitor
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    begin = TODAY + DAY - 12 * HOUR
    for _ in range(6):
        start = begin + chance.randrange(20) * HOUR
        try:
            size = Size(chance.randint(1, 8), 1024, 5)
            cloud.order(1, size=size, start=start, hours=chance.randint(1, 5))
        except errors.Conflict:
            continue
    found = ask(visitor, vcpus=4, amount=3, minutes=150)
    for step in range(0, 24 * 60, 30):
        start = begin + step * MINUTE
        stamp = start.isoformat()[5:16]
        free = any(first <= stamp <= last for first, last in found)
        try:
            lease = cloud.order(3, size=Size(4, 1024, 5), start=start, hours=2.5)
        except errors.Conflict:
            assert not free, (seed, stamp, found)
        else:
            assert free, (seed, stamp, found)
            visitor.call("DELETE", f"/v1/leases/{lease}")


def test_a_refusal_says_what_is_missing_and_when_it_would_fit(
    cloud: Cloud, visitor: Visitor
) -> None:
    cloud.order(1, size=WHOLE, start=TODAY + DAY, hours=2)
    with pytest.raises(errors.Conflict) as refused:
        cloud.order(2, size=WHOLE, start=TODAY + DAY, hours=1)
    message = str(refused.value)
    assert message.startswith("Not enough hosts available: 1 of 2 slots are free.")
    assert "Host 1 has too little vcpus." in message
    assert "Host 2 has room for 1." in message
    assert "It would fit from 2030-03-05 14:00." in message
    with pytest.raises(errors.Conflict, match="It does not fit within a year"):
        cloud.order(3, size=WHOLE, start=TODAY + DAY, hours=1)
    cloud.change_capability("compute-1", gpu="True")
    properties = '["==", "$gpu", "True"]'
    with pytest.raises(errors.Conflict, match=r"Host 2 does not meet \$gpu == True"):
        cloud.order(1, size=WHOLE, start=TODAY + DAY, properties=properties)


def test_a_refusal_of_a_lease_for_thousands_of_years(cloud: Cloud) -> None:
    cloud.order(2, size=WHOLE, start=TODAY + DAY, hours=2)
    years = 6900 * 365 * 24
    with pytest.raises(errors.Conflict, match=r"It would fit from 2030-03-05 14:00\."):
        cloud.order(1, size=WHOLE, start=TODAY, hours=years)
