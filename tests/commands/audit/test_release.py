"""Releasing orphans, and claiming again what was released."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from placement_clients.audit import cli
from placement_foundation.database.storage import Database
from tests import programs, terminal
from tests.client import Client, new_uuid, wants
from tests.commands.audit.desk import Desk
from tests.serving import Between, serving, without_ledger

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

PROGRAM = Path(sys.executable).with_name("placement-audit")
ANY_AGE = ("--older-than", "0")
PATIENCE_SECONDS = 60


def test_orphans_are_released_and_restored_as_they_were(desk: Desk) -> None:
    host = desk.host("compute-1", VCPU=8, DISK_GB=100)
    other = desk.host("compute-2", VCPU=8)
    orphans = [
        desk.claim({host: {"VCPU": 1, "DISK_GB": 5}, other: {"VCPU": 2}}),
        desk.claim({other: {"VCPU": 1}}, project="red", user="eve"),
        desk.claim({host: {"VCPU": 1}}, consumer_type="MIGRATION"),
        new_uuid(),
    ]
    # One whose type is not known.
    old = wants({host: {"VCPU": 1}})
    del old["consumer_type"]
    path = f"/allocations/{orphans[3]}"
    assert desk.client.call("PUT", path, old, version="1.36").status == 204
    desk.age(orphans[3], 2)
    desk.lives(desk.claim({host: {"VCPU": 1}}))
    before = desk.everything()
    status, out, err = desk.release(*ANY_AGE)
    assert status == cli.NOTHING, err
    for orphan in orphans:
        assert f"{orphan}: released\n" in out
        assert desk.allocations(orphan) == {"allocations": {}}
    assert f"--undo {desk.undo} claims again what is released now" in err
    assert desk.undo.stat().st_mode & 0o777 == 0o600
    assert desk.findings() == []
    status, out, err = desk.run("--undo", str(desk.undo))
    assert (status, err) == (cli.NOTHING, "")
    assert sorted(out.splitlines()) == sorted(f"{each}: restored" for each in orphans)
    assert desk.everything() == before
    # Once more: nothing changes.
    status, out, _ = desk.run("--undo", str(desk.undo))
    assert (status, out.count(": already there\n")) == (cli.NOTHING, 4)
    assert desk.everything() == before


def test_what_cannot_be_restored_is_named_and_the_rest_is_restored(desk: Desk) -> None:
    host, gone = desk.host("compute-1", VCPU=4), desk.host("compute-2", VCPU=4)
    orphans = [desk.claim({each: {"VCPU": 1}}) for each in (host, gone, host, host)]
    desk.lives(new_uuid())
    desk.release(*ANY_AGE)
    assert desk.client.call("DELETE", f"/resource_providers/{gone}").status == 204
    claimed = wants({host: {"VCPU": 1}}, project="other")
    assert desk.client.call("PUT", f"/allocations/{orphans[2]}", claimed).status == 204
    desk.claim({host: {"VCPU": 2}})
    status, out, _ = desk.run("--undo", str(desk.undo))
    assert status == cli.FOUND
    told = dict(line.split(": ", 1) for line in out.splitlines())
    assert gone in told[orphans[1]]
    assert told[orphans[2]] == "left: it has another claim now"
    assert desk.allocations(orphans[2])["project_id"] == "other"
    # There is room for one of these two.
    results = sorted((told[orphans[0]], told[orphans[3]]))
    assert results[1] == "restored"
    assert results[0].startswith("left: ")
    assert "VCPU" in results[0]


def test_a_name_cannot_command_a_terminal(own_desk: Desk) -> None:
    name = "a\x1b]0;b\x07\x9b2J"
    host = own_desk.host("compute-1", VCPU=4)
    own_desk.claim({host: {"VCPU": 1}})
    own_desk.lives(new_uuid())
    own_desk.release(*ANY_AGE)
    header, line = own_desk.undo.read_text().splitlines()
    renamed = json.dumps({**json.loads(line), "consumer": name})
    own_desk.undo.write_text(f"{header}\n{renamed}\n")
    _, out, _ = own_desk.run("--undo", str(own_desk.undo))
    assert out.startswith(r"a\x1b]0;b\x07\x9b2J: left: ")
    assert out.removesuffix("\n").isprintable()


def test_only_what_is_old_is_released(own_desk: Desk) -> None:
    host = own_desk.host("compute-1", VCPU=8)
    young = own_desk.claim({host: {"VCPU": 1}}, hours=0.5)
    old = own_desk.claim({host: {"VCPU": 1}}, hours=1.5)
    own_desk.lives(new_uuid())
    status, out, _ = own_desk.release()
    assert status == cli.FOUND
    assert f"{young}: left: claimed at 20" in out
    assert "which is too recent" in out
    assert f"{old}: released" in out
    assert own_desk.allocations(young)["allocations"]
    own_desk.undo.unlink()
    own_desk.release("--older-than", "20m")
    assert own_desk.allocations(young) == {"allocations": {}}


def test_without_the_ledger_the_age_is_not_known(
    application: "WSGIApplication", own_desk: Desk
) -> None:
    host = own_desk.host("compute-1", VCPU=8)
    orphan = own_desk.claim({host: {"VCPU": 1}}, hours=100)
    own_desk.lives(new_uuid())
    with serving(without_ledger(application)) as served:
        own_desk.url = served.url
        status, out, _ = own_desk.release()
    assert status == cli.FOUND
    assert f"{orphan}: left: its age is not known; --older-than 0" in out
    assert own_desk.allocations(orphan)["allocations"]


def test_nothing_is_released_if_nobody_lives(desk: Desk) -> None:
    host = desk.host("compute-1", VCPU=8)
    orphan = desk.claim({host: {"VCPU": 1}})
    status, _, err = desk.release(*ANY_AGE)
    assert status == cli.ERROR
    assert "no living consumer was found: nothing is released" in err
    assert desk.allocations(orphan)["allocations"]
    assert not desk.undo.exists()


def test_an_undo_file_is_never_overwritten(desk: Desk) -> None:
    host = desk.host("compute-1", VCPU=8)
    orphan = desk.claim({host: {"VCPU": 1}})
    desk.lives(new_uuid())
    desk.undo.write_text("precious")
    status, _, err = desk.release(*ANY_AGE)
    assert status == cli.ERROR
    assert f"{desk.undo}: File exists" in err
    assert desk.undo.read_text() == "precious"
    assert desk.allocations(orphan)["allocations"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "1: this is not JSON"),
        ("{}\n", "1: this was not written by placement-audit"),
        ("HEADER\n{}\n", "2: consumer, allocations, project_id, user_id are needed"),
        ("HEADER\nno\n", "2: this is not JSON"),
    ],
)
def test_a_file_that_is_no_undo_file(own_desk: Desk, content: str, words: str) -> None:
    header = '{"program": "placement-audit", "content": "undo", "format": 1}'
    own_desk.undo.write_text(content.replace("HEADER", header))
    status, _, err = own_desk.run("--undo", str(own_desk.undo))
    assert status == cli.ERROR
    assert f"{own_desk.undo}:{words}" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("moment", ["fleet", "look", "write"])
def test_who_comes_to_life_meanwhile_keeps_its_claim(
    application: "WSGIApplication", own_desk: Desk, moment: str
) -> None:
    host = own_desk.host("compute-1", VCPU=8)
    orphan = own_desk.claim({host: {"VCPU": 1}})
    own_desk.lives(new_uuid())
    paths = {
        "fleet": ("GET", "/ledger/v1/fleet"),
        "look": ("GET", f"/allocations/{orphan}"),
        "write": ("PUT", f"/allocations/{orphan}"),
    }

    def live() -> None:
        # Its scheduler claims more for it, as its service now lists it.
        answer = own_desk.client.claim(orphan, {host: {"VCPU": 2}}, generation=1)
        assert answer.status == 204
        own_desk.lives(orphan)

    network = Between(application, lambda *line: line == paths[moment], live)
    with serving(network) as served:
        own_desk.url = served.url
        _, out, err = own_desk.release(*ANY_AGE)
    assert own_desk.allocations(orphan)["allocations"] == {
        host: {"resources": {"VCPU": 2}}
    }, (out, err)
    if moment == "write":
        assert f"{orphan}: left: it has changed meanwhile" in out


@pytest.mark.parametrize("happens_before", [True, False])
def test_a_server_that_is_built_while_claims_are_read_is_no_orphan(
    application: "WSGIApplication", own_desk: Desk, happens_before: bool
) -> None:
    host = own_desk.host("compute-1", VCPU=8)
    own_desk.lives(new_uuid())
    built: list[str] = []

    def build() -> None:
        # Its service lists it first, as BUILD; then it claims.
        new = new_uuid()
        own_desk.lives(new)
        assert own_desk.client.claim(new, {host: {"VCPU": 1}}).status == 204
        own_desk.age(new, 2)
        built.append(new)

    def is_fleet(method: str, path: str) -> bool:
        return path == "/ledger/v1/fleet"

    network = Between(application, is_fleet, build, before=happens_before)
    with serving(network) as served:
        own_desk.url = served.url
        found = own_desk.findings()
    assert built
    assert ("orphan", built[0]) not in found


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("count", [1, 3])
def test_what_a_killed_release_has_released_is_restored(
    application: "WSGIApplication",
    database: Database,
    own_desk: Desk,
    count: int,
    before: bool,
) -> None:
    host = own_desk.host("compute-1", VCPU=8)
    orphans = sorted(own_desk.claim({host: {"VCPU": 1}}) for _ in range(5))
    own_desk.lives(new_uuid())
    there = own_desk.everything()
    reached, go_on, done = threading.Event(), threading.Event(), threading.Event()
    last = f"/allocations/{orphans[count - 1]}"

    def hang() -> None:
        reached.set()
        go_on.wait(PATIENCE_SECONDS)

    def is_write(method: str, path: str) -> bool:
        return (method, path) == ("PUT", last)

    def noting(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        try:
            return application(environment, start_response)
        finally:
            if is_write(environment["REQUEST_METHOD"], environment["PATH_INFO"]):
                done.set()

    with serving(Between(noting, is_write, hang, before=before)) as served:
        process = subprocess.Popen(
            [
                *(PROGRAM, "--alive", own_desk.alive, "--release", "--yes"),
                *(*ANY_AGE, "--undo-file", own_desk.undo),
                *("--url", served.url, "--token", "admin"),
            ],
            stdout=subprocess.DEVNULL,
        )
        assert reached.wait(PATIENCE_SECONDS)
        process.send_signal(signal.SIGKILL)
        process.wait()
        go_on.set()
        assert done.wait(PATIENCE_SECONDS)
    # Whether or not the last request was carried out, nothing is lost.
    left = [each for each in orphans if own_desk.allocations(each)["allocations"]]
    assert left in (orphans[count:], orphans[count - 1 :])
    status, out, err = own_desk.run("--undo", str(own_desk.undo))
    assert (status, err) == (cli.NOTHING, "")
    assert len(out.splitlines()) == count
    assert own_desk.everything() == there


def test_a_release_goes_on_without_a_reader(own_desk: Desk) -> None:
    host = own_desk.host("compute-1", VCPU=8)
    orphans = [own_desk.claim({host: {"VCPU": 1}}) for _ in range(2)]
    own_desk.lives(new_uuid())
    program = [
        *(str(PROGRAM), "--alive", str(own_desk.alive), "--release", "--yes"),
        *(*ANY_AGE, "--undo-file", str(own_desk.undo)),
        *("--url", own_desk.url, "--token", "admin"),
    ]
    with programs.without_reader() as pipe:
        done = subprocess.run(program, stdout=pipe, check=False)
    # Somebody lives without a claim.
    assert done.returncode == cli.FOUND
    assert [own_desk.allocations(each)["allocations"] for each in orphans] == [{}, {}]
    assert len(own_desk.undo.read_text().splitlines()) == 3


def test_a_line_that_was_not_written_to_its_end_is_of_no_release(
    own_desk: Desk,
) -> None:
    host = own_desk.host("compute-1", VCPU=8)
    own_desk.claim({host: {"VCPU": 1}})
    own_desk.lives(new_uuid())
    there = own_desk.everything()
    own_desk.release(*ANY_AGE)
    with own_desk.undo.open("a") as file:
        file.write('{"consumer": "')
    assert own_desk.run("--undo", str(own_desk.undo))[0] == cli.NOTHING
    assert own_desk.everything() == there


def test_without_a_terminal_yes_is_needed(own_desk: Desk) -> None:
    host = own_desk.host("compute-1", VCPU=8)
    orphan = own_desk.claim({host: {"VCPU": 1}})
    own_desk.lives(new_uuid())
    status, _, err = own_desk.audit("--release")
    assert status == cli.ERROR
    assert "--yes is needed where there is no terminal to confirm on" in err
    assert own_desk.allocations(orphan)["allocations"]


@pytest.mark.parametrize(("reply", "status"), [(b"y\n", 0), (b"\n", 2)])
def test_a_person_is_asked(own_desk: Desk, reply: bytes, status: int) -> None:
    host = own_desk.host("compute-1", VCPU=8)
    orphan = own_desk.claim({host: {"VCPU": 1}})
    alive = own_desk.claim({host: {"VCPU": 1}})
    own_desk.lives(alive)
    told, printed = terminal.run(
        [
            *(PROGRAM, "--alive", own_desk.alive, "--release"),
            *("--undo-file", own_desk.undo),
            *("--url", own_desk.url, "--token", "admin"),
        ],
        reply,
    )
    assert told == status
    assert "Release 1 orphan older than 1h? [y/N]" in printed
    assert bool(own_desk.allocations(orphan)["allocations"]) == (status != 0)
    assert own_desk.allocations(alive)["allocations"]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_client_is_told_of_a_claim_it_cannot_release(
    application: "WSGIApplication", own_desk: Desk, options: tuple[str, ...]
) -> None:
    host = own_desk.host("compute-1", VCPU=8)
    released, orphan = sorted(own_desk.claim({host: {"VCPU": 1}}) for _ in range(2))
    own_desk.lives(new_uuid())

    def outage(
        environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> "Iterable[bytes]":
        line = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if line == ("PUT", f"/allocations/{orphan}"):
            start_response("503 Busy", [("Content-Type", "application/json")])
            return [b'{"errors": [{"status": 503, "detail": "no time"}]}']
        return application(environ, start_response)

    with serving(outage) as served:
        own_desk.url = served.url
        status, out, err = own_desk.release(*ANY_AGE, *options)
    assert status == cli.ERROR
    assert "no time" in err
    if options:
        found = json.loads(out)["findings"]
        results = {each["consumer"]: each.get("result") for each in found}
        assert (results[released], results[orphan]) == ("released", None)
    else:
        assert f"{released}: released\n" in out
    assert Client(application).get(f"/allocations/{orphan}")["allocations"]
