"""What ``placement-audit`` finds, with a file of those that live."""

import csv
import datetime
import io
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from placement_clients.audit import claims, cli, drawing
from placement_clients.audit.alive import AliveFile
from placement_clients.audit.life import Claim, Owner
from tests.client import new_uuid
from tests.commands.audit.desk import Desk
from tests.serving import answering, serving

TRAIT = "MISC_SHARES_VIA_AGGREGATE"


def share(desk: Desk, provider: str) -> None:
    path = f"/resource_providers/{provider}/traits"
    body = {"resource_provider_generation": 1, "traits": [TRAIT]}
    assert desk.client.call("PUT", path, body).status == 200


def test_a_consumer_that_is_listed_twice_lives_once(desk: Desk) -> None:
    host = desk.host("compute-1", VCPU=8)
    consumer = desk.claim({host: {"VCPU": 1}})
    desk.lives(consumer, consumer, host="compute-1")
    _, out, _ = desk.audit()
    assert out == "nothing was found\nclaims: 1, consumers that live: 1\n"


def test_the_tables_say_what_was_found_and_expected(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = own_desk.host("compute-1", VCPU=8)
    orphans = sorted(own_desk.claim({host: {"VCPU": 1}}) for _ in range(2))
    moved, larger = (own_desk.claim({host: {"VCPU": 2}}) for _ in range(2))
    missing = new_uuid()
    own_desk.lives(moved, host="compute-2")
    own_desk.lives(larger, missing, host="compute-1", resources={"VCPU": 4})
    report = json.loads(own_desk.audit("--json")[1])
    times = {
        each["consumer"]: each["claimed"]["time"]
        for each in report["findings"]
        if each["kind"] == "orphan"
    }
    assert sorted(times) == orphans
    expected = {
        **{
            orphan: f"INSTANCE team-blue compute-1 VCPU 1 {time} admin"
            for orphan, time in times.items()
        },
        moved: "INSTANCE team-blue compute-1 compute-2",
        larger: "INSTANCE team-blue compute-1 VCPU 2 VCPU 4",
        missing: "compute-1 VCPU 4",
    }
    status, out, _ = own_desk.audit()
    assert status == cli.FOUND
    assert "orphan: claims whose consumer no longer lives: 2\n" in out
    assert "missing: consumers that live and claim nothing: 1\n" in out
    assert out.endswith("claims: 4, consumers that live: 3\n")
    rows = [line.split() for line in out.splitlines()]
    for consumer, said in expected.items():
        assert [consumer, *said.split()] in rows, out
    monkeypatch.setattr(drawing, "MOST_ROWS", 1)
    out = own_desk.audit()[1]
    assert [orphan in out for orphan in orphans] == [True, False]
    assert out.count("1 more: --format json or csv has all\n") == 1
    assert all(orphan in own_desk.audit("--format", "csv")[1] for orphan in orphans)


def test_a_host_is_a_whole_tree_and_what_hosts_share(desk: Desk) -> None:
    host = desk.host("compute-1", VCPU=8)
    card = desk.host("compute-1_gpu", host, VGPU=2)
    disks = desk.host("pool", DISK_GB=1000)
    share(desk, disks)
    known = desk.claim({card: {"VGPU": 1}, disks: {"DISK_GB": 5}})
    only_disks = desk.claim({disks: {"DISK_GB": 5}})
    desk.lives(known, host="compute-1", resources={"VGPU": 1, "DISK_GB": 5})
    desk.lives(only_disks, host="compute-1")
    assert desk.findings() == []


def test_a_host_may_be_a_uuid_in_any_spelling(desk: Desk) -> None:
    host = desk.host("compute-1", VCPU=8)
    known = desk.claim({host: {"VCPU": 1}})
    for spelling in (host, host.upper(), host.replace("-", "")):
        desk.lives(known, host=spelling)
        assert desk.findings() == []
    desk.lives(known, host=new_uuid())
    assert desk.findings() == [("wrong host", known)]


def test_types_narrow_what_is_judged(desk: Desk) -> None:
    host = desk.host("compute-1", VCPU=8)
    server = desk.claim({host: {"VCPU": 1}})
    container = desk.claim({host: {"VCPU": 1}}, consumer_type="CONTAINER")
    assert sorted(desk.findings()) == sorted(
        [("orphan", server), ("orphan", container)]
    )
    assert desk.findings("--type", "CONTAINER") == [("orphan", container)]
    assert desk.findings("--type", "OTHER") == []


def test_the_report_says_who_claimed_and_when(own_desk: Desk) -> None:
    host = own_desk.host("compute-1", VCPU=8)
    orphan = own_desk.claim({host: {"VCPU": 1}}, project="blue", user="ann")
    own_desk.client.claim(orphan, {host: {"VCPU": 2}}, generation=1)
    _, out, _ = own_desk.audit("--json")
    [found] = json.loads(out)["findings"]
    assert found["claimed"]["subject"] == orphan
    assert found["claimed"]["after"] == {host: {"VCPU": 1}}
    assert found["allocations"][host]["resources"] == {"VCPU": 2}
    assert found["allocations"][host]["root_name"] == "compute-1"
    _, out, _ = own_desk.audit("--format", "csv")
    [row] = csv.DictReader(io.StringIO(out))
    assert row["claimed_at"] == found["claimed"]["time"]
    assert row["claimed_by"] == found["claimed"]["user_id"] == "admin"
    assert row["request_id"].startswith("req-")
    assert (row["kind"], row["host"], row["resources"]) == (
        *("orphan", "compute-1"),
        "VCPU 2",
    )


def test_no_name_is_a_formula_for_a_spreadsheet(own_desk: Desk) -> None:
    host = own_desk.host("=HYPERLINK(1)", VCPU=8)
    own_desk.claim({host: {"VCPU": 1}}, project="@blue", user="ann")
    [row] = csv.DictReader(io.StringIO(own_desk.audit("--format", "csv")[1]))
    assert (row["host"], row["project_id"]) == ("'=HYPERLINK(1)", "'@blue")


def test_the_claim_is_found_however_often_it_was_changed(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "PAGE", "2")
    host = own_desk.host("compute-1", VCPU=8)
    orphan = own_desk.claim({host: {"VCPU": 1}})
    for generation in range(1, 6):
        amounts = {host: {"VCPU": 1 + generation}}
        own_desk.client.claim(orphan, amounts, generation=generation)
    _, out, _ = own_desk.audit("--json")
    [found] = json.loads(out)["findings"]
    assert found["claimed"]["after"] == {host: {"VCPU": 1}}


def test_owners_are_known_without_the_ledger_too(desk: Desk) -> None:
    host = desk.host("compute-1", VCPU=8)
    desk.claim({host: {"VCPU": 1}}, project="blue", user="ann", consumer_type="JOB")
    [row] = csv.DictReader(io.StringIO(desk.audit("--format", "csv")[1]))
    found = (row["project_id"], row["user_id"], row["consumer_type"])
    assert found == ("blue", "ann", "JOB")


def test_a_claim_made_after_the_file_was_written_is_not_judged(own_desk: Desk) -> None:
    host = own_desk.host("compute-1", VCPU=8)
    new = own_desk.claim({host: {"VCPU": 1}}, hours=-1)
    old = own_desk.claim({host: {"VCPU": 1}}, hours=1)
    assert own_desk.findings() == [("orphan", old)]
    _, out, _ = own_desk.audit()
    assert "claims that no source knows about: 1" in out
    own_desk.age(new, 2)
    assert len(own_desk.findings()) == 2


@pytest.mark.parametrize(("second", "is_judged"), [(9, True), (10, False)])
def test_a_claim_of_the_second_of_the_file_is_not_judged(
    second: int, is_judged: bool
) -> None:
    file = AliveFile(Path("alive.ndjson"))
    file.moment = datetime.datetime(2026, 11, 22, 10, 0, 10, 9000, datetime.UTC)
    owner = Owner("blue", created_at=f"2026-11-22T10:00:{second:02}Z")
    assert file.knows(Claim(new_uuid(), {}, owner)) == is_judged


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "Expecting property name"),
        ("[]", "[] is not of type 'object'"),
        ("[" * 100_000, "recursion"),
        ('{"host": "a"}', "'uuid' is a required property"),
        ('{"uuid": "a"}', "badly formed hexadecimal UUID string"),
        ('{"uuid": "UUID", "node": 1}', "'node' was unexpected"),
        ('{"uuid": "UUID", "host": ""}', "$.host: "),
        (
            '{"uuid": "UUID", "resources": {"VCPU": -1}}',
            "$.resources.VCPU: -1 is less than the minimum of 0",
        ),
    ],
)
def test_a_bad_line_is_named(own_desk: Desk, line: str, words: str) -> None:
    own_desk.lives(new_uuid())
    with own_desk.alive.open("a") as file:
        print(line.replace("UUID", new_uuid()), file=file)
    status, out, err = own_desk.audit()
    assert (status, out) == (cli.ERROR, "")
    assert err.startswith(f"placement-audit: {own_desk.alive}:2: ")
    assert words in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "one of --nova, --ironic, --reservations and --alive is needed"),
        (["--undo", "x", "--release"], "--undo goes with nothing else"),
        (["--alive", "x", "--older-than", "1y"], "invalid duration value: '1y'"),
        (["--alive", "x", "--older-than=-1h"], "invalid duration value"),
    ],
)
def test_wrong_options(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == cli.ERROR
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'{"uuid": 1}'])
def test_an_answer_that_is_not_from_placement(own_desk: Desk, body: bytes) -> None:
    own_desk.lives(new_uuid())
    with serving(answering("200 OK", body)) as served:
        own_desk.url = served.url
        status, out, err = own_desk.audit()
    assert (status, out) == (cli.ERROR, "")
    assert "the answer is not from Placement" in err


def test_a_placement_that_does_not_answer(own_desk: Desk) -> None:
    own_desk.url = "http://127.0.0.1:1"
    status, out, err = own_desk.audit()
    assert (status, out) == (cli.ERROR, "")
    assert "connection to http://127.0.0.1:1" in err


def expected_findings(
    claims: Mapping[str, Mapping[str, Mapping[str, int]]],
    lives: Mapping[str, Any],
    hosts: Mapping[str, str],
) -> set[tuple[str, str]]:
    """Compare as plainly as possible: claims are by consumer, by host, by class."""
    found = {("orphan", consumer) for consumer in claims if consumer not in lives}
    for consumer, (host, resources) in lives.items():
        held = claims.get(consumer)
        if not held:
            found.add(("missing", consumer))
            continue
        if host and {hosts[each] for each in held} != {host}:
            found.add(("wrong host", consumer))
            continue
        total: dict[str, int] = {}
        for amounts in held.values():
            for name, amount in amounts.items():
                total[name] = total.get(name, 0) + amount
        if resources is not None and total != resources:
            found.add(("wrong amounts", consumer))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_random_clouds(desk: Desk, seed: int) -> None:
    rng = random.Random(seed)
    names = [f"compute-{number}" for number in range(4)]
    hosts = {desk.host(name, VCPU=1000, MEMORY_MB=1000): name for name in names}
    claims, lives = {}, {}
    for _ in range(40):
        amounts = {
            host: {
                name: rng.randint(1, 2)
                for name in rng.sample(["VCPU", "MEMORY_MB"], rng.randint(1, 2))
            }
            for host in rng.sample(sorted(hosts), rng.choice((1, 1, 1, 2)))
        }
        is_missing = rng.random() < 0.2
        consumer = new_uuid() if is_missing else desk.claim(amounts)
        if not is_missing:
            claims[consumer] = amounts
        if is_missing or rng.random() < 0.7:
            host = rng.choice((None, *names))
            if rng.random() < 0.6:
                host = hosts[next(iter(amounts))]
            resources = rng.choice((None, {"VCPU": 1}, {"VCPU": 2, "MEMORY_MB": 1}))
            lives[consumer] = (host, resources)
            desk.lives(consumer, host=host, resources=resources)
    wanted = expected_findings(claims, lives, hosts)
    assert len({kind for kind, _ in wanted}) == 4, seed
    assert sorted(desk.findings()) == sorted(wanted), seed
