"""The command ``placement-request``, as a shell and as a person meet it."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from placement_clients.request import cli
from tests import proxy
from tests.client import new_uuid
from tests.commands.request.cloud import Cloud
from tests.serving import Between, Served, serving, without_ledger

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

PROGRAM = Path(sys.executable).with_name("placement-request")
# As the command line of OpenStack prints them.
FLAVOR = {
    "OS-FLV-DISABLED:disabled": False,
    "OS-FLV-EXT-DATA:ephemeral": 0,
    "access_project_ids": None,
    "description": None,
    "disk": 10,
    "id": "1f0b7d1c-6f8e-4c53-9c70-2a9d3c1f7e10",
    "name": "m",
    "os-flavor-access:is_public": True,
    "properties": {
        "trait:HW_CPU_X86_AVX2": "required",
        "trait:CUSTOM_GPU": "forbidden",
    },
    "ram": 1024,
    "rxtx_factor": 1.0,
    "swap": 0,
    "vcpus": 2,
}
IMAGE = {
    "checksum": "443b7623e27ecf03dc9e01ee93f67afe",
    "container_format": "bare",
    "disk_format": "qcow2",
    "id": "5d1f3f9c-0c5e-4c1e-9d5c-6f3b6e0f9a01",
    "min_disk": 0,
    "name": "trusted",
    "properties": {
        "os_hidden": False,
        "os_hash_algo": "sha512",
        "trait:CUSTOM_TRUSTED": "required",
    },
    "tags": [],
}
QUERY = (
    "limit=1000&required=CUSTOM_TRUSTED%2CHW_CPU_X86_AVX2%2C%21CUSTOM_GPU&"
    "resources=DISK_GB%3A10%2CMEMORY_MB%3A1024%2CVCPU%3A2&"
    "root_required=%21COMPUTE_STATUS_DISABLED"
)


ONE = "6f2a1f0e-7f5e-4c19-8a51-3a4c9a6f9d01"
TWO = "6f2a1f0e-7f5e-4c19-8a51-3a4c9a6f9d02"


def isolated(value: str) -> list[str]:
    return ["--isolated-aggregate", value]


class Desk:
    """A directory with a flavor and an image, and a user of the command."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory = directory
        self._capsys = capsys
        self.put("flavor", FLAVOR)
        self.put("image", IMAGE)

    def put(self, name: str, document: Any) -> str:
        path = self.directory / f"{name}.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return str(path)

    def flavor(self, **extra_specs: str) -> str:
        """Write a flavor with these extra specs; ``__`` stands for a colon."""
        named = {key.replace("__", ":"): each for key, each in extra_specs.items()}
        return self.put("other", {**FLAVOR, "properties": named})

    def wanted(self) -> list[str]:
        paths = (self.directory / f"{name}.json" for name in ("flavor", "image"))
        flavor, image = map(str, paths)
        return ["--flavor", flavor, "--image", image]

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command in this process; return exit status, output, complaints."""
        status = cli.main(arguments)
        captured = self._capsys.readouterr()
        return status, captured.out, captured.err

    def usage_error(self, *arguments: str) -> str:
        with pytest.raises(SystemExit) as caught:
            cli.main(arguments)
        assert caught.value.code == 2
        return self._capsys.readouterr().err


@pytest.fixture
def desk(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Desk:
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    return Desk(tmp_path, capsys)


@pytest.fixture
def way(service: Served) -> list[str]:
    return ["--url", service.url, "--token", "admin"]


def as_program(
    arguments: Sequence[str], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments], input=stdin, capture_output=True, text=True, timeout=60
    )


# As a program


def test_bad_input_from_standard_input() -> None:
    document = json.dumps({**FLAVOR, "properties": {"trait:CUSTOM_A": "maybe"}})
    done = as_program(["query", "--flavor", "-"], stdin=document)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "placement-request: flavor extra spec trait:CUSTOM_A = 'maybe': "
        "the value is neither 'required' nor 'forbidden'\n"
    )


def test_a_terminal_shows_a_table(
    desk: Desk, small_cloud: Cloud, way: list[str]
) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [PROGRAM, "candidates", *desk.wanted(), *way],
        stdout=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    ):
        os.close(theirs)
        shown = b""
        # Linux reports an error at the end of a terminal that no other process has
        # open.
        while chunk := read(ours):
            shown += chunk
    os.close(ours)
    assert "─" in shown.decode()
    assert b"\x1b[1m" in shown
    assert small_cloud.uuids["cn1"] in shown.decode()


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


# What it prints


@pytest.mark.parametrize(
    ("arguments", "name", "values"),
    [
        ([], "root_required", ["!COMPUTE_STATUS_DISABLED"]),
        ([], "member_of", []),
        (["--include-disabled-hosts"], "root_required", []),
        (["--limit", "5"], "limit", ["5"]),
        (["--limit", "none"], "limit", []),
        (["--volume-backed"], "resources", ["MEMORY_MB:1024,VCPU:2"]),
        (["--tenant-aggregates", f"{ONE},{TWO}"], "member_of", [f"in:{ONE},{TWO}"]),
        (
            ["--tenant-aggregates", ONE, "--zone-aggregates", TWO],
            "member_of",
            [f"in:{ONE}", f"in:{TWO}"],
        ),
        (["--free-pool", ONE], "member_of", [f"!in:{ONE}"]),
        (
            [*isolated(f"{ONE}=CUSTOM_X"), *isolated(f"{TWO}=CUSTOM_TRUSTED,CUSTOM_Y")],
            "member_of",
            [f"!in:{ONE},{TWO}"],
        ),
        (isolated(f"{ONE}=CUSTOM_TRUSTED"), "member_of", []),
        (
            [*isolated(f"{ONE}=CUSTOM_X"), *isolated(f"{ONE}=CUSTOM_TRUSTED")],
            "member_of",
            [f"!in:{ONE}"],
        ),
    ],
)
def test_options_that_change_the_query(
    desk: Desk, arguments: list[str], name: str, values: list[str]
) -> None:
    _, output, _ = desk.run("query", *desk.wanted(), "--json", *arguments)
    parameters = json.loads(output)["parameters"]
    assert [value for key, value in parameters if key == name] == values


def test_warnings_where_they_are_wanted(desk: Desk) -> None:
    path = desk.flavor(trait__CUSTOM_A="maybe", resources__NOPE="1")
    status, output, complaints = desk.run("query", "--flavor", path, "--lenient")
    assert status == 0
    assert "CUSTOM_A" not in output
    assert len(complaints.splitlines()) == 2
    assert "placement-request: warning: flavor extra spec resources:NOPE" in complaints


def test_a_query_that_placement_would_refuse_is_shown(desk: Desk) -> None:
    path = desk.flavor(resources1__VCPU="1", resources2__VCPU="2")
    status, output, complaints = desk.run("query", "--flavor", path)
    assert status == 2
    assert "resources1=VCPU%3A1&resources2=VCPU%3A2" in output
    assert "group_policy" in complaints
    status, _, _ = desk.run("query", "--flavor", path, "--lenient")
    assert status == 0


def test_what_is_not_part_of_the_query_is_named_once(desk: Desk) -> None:
    path = desk.flavor(hw__numa_nodes="2", pci_passthrough__alias="gpu:1")
    status, _, complaints = desk.run("query", "--flavor", path)
    assert status == 0
    assert complaints == (
        "placement-request: warning: not part of the query: hw:numa_nodes, "
        "pci_passthrough:alias\n"
    )


@pytest.mark.parametrize("lenient", [[], ["--lenient"]])
def test_it_is_not_asked(
    desk: Desk, service: Served, way: list[str], lenient: list[str]
) -> None:
    image = desk.put("gpu", {"trait:CUSTOM_GPU": "required"})
    arguments = [*desk.wanted()[:2], "--image", image, *way, *lenient]
    status, output, complaints = desk.run("candidates", *arguments)
    assert (status, output) == (2, "")
    assert complaints == (
        "placement-request: CUSTOM_GPU is required by image property trait:CUSTOM_GPU "
        "and forbidden by flavor extra spec trait:CUSTOM_GPU\n"
    )
    assert service.calls == []


def test_candidates_in_a_pipe(desk: Desk, small_cloud: Cloud, way: list[str]) -> None:
    path = desk.flavor(
        resources1__SRIOV_NET_VF="1", trait1__HW_NIC_OFFLOAD_GENEVE="required"
    )
    status, output, complaints = desk.run("candidates", "--flavor", path, *way)
    assert (status, complaints) == (0, "")
    uuids = small_cloud.uuids
    amounts = "DISK_GB:10 MEMORY_MB:1024 VCPU:2"
    assert [" ".join(line.split()) for line in output.splitlines()] == [
        "# HOST PROVIDER UUID AMOUNTS GROUPS",
        f"1 cn4 cn4 {uuids['cn4']} {amounts} (no suffix)",
        f"1 cn4 pf2 {uuids['pf2']} SRIOV_NET_VF:1 1",
        "",
        "1 candidate on 1 host",
    ]


def test_candidates_for_programs(
    desk: Desk, small_cloud: Cloud, way: list[str]
) -> None:
    status, output, _ = desk.run("candidates", *desk.wanted(), *way, "--json")
    assert status == 0
    document = json.loads(output)
    assert document["query"] == QUERY
    (found,) = document["candidates"]
    cn1 = small_cloud.uuids["cn1"]
    assert found["host"] == cn1
    assert found["mappings"] == {"": [cn1]}
    amounts = {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 10}
    assert found["allocations"] == {cn1: {"resources": amounts}}
    assert cn1 in document["provider_summaries"]


def test_no_host_and_the_reason(desk: Desk) -> None:
    def application(environ: Any, start_response: Any) -> list[bytes]:
        old = environ["PATH_INFO"] == "/ledger/v1/placements"
        start_response("404 Not Found" if old else "200 OK", [])
        if environ["PATH_INFO"] == "/ledger/v1/explanation":
            changes = [{"text": "ask for 12 VCPU"}]
            return [json.dumps({"summary": "All full.", "changes": changes}).encode()]
        return [b'{"allocation_requests": [], "provider_summaries": {}}']

    with serving(application) as served:
        way = ["--url", served.url]
        status, output, complaints = desk.run("candidates", *desk.wanted(), *way)
        assert (status, output) == (1, "")
        assert complaints.splitlines()[1:] == [
            "placement-request: All full.",
            "placement-request: what would help: ask for 12 VCPU",
        ]
        who = ["--server", new_uuid(), "--project", "blue", "--user", "ann", "--json"]
        status, output, _ = desk.run("boot", *desk.wanted(), *way, *who)
    assert status == 1
    document = json.loads(output)
    assert (document["server"], document["host"]) == (who[1], None)
    assert document["explanation"]["summary"] == "All full."


def test_boot_and_rebuild(desk: Desk, small_cloud: Cloud, way: list[str]) -> None:
    server, cn1 = new_uuid(), small_cloud.uuids["cn1"]
    who = ["--server", server, "--project", "blue", "--user", "ann"]
    boot = ["boot", *who, *desk.wanted(), *way]
    status, output, _ = desk.run(*boot, "--json", "--consumer-type", "INSTANCE")
    assert status == 0
    assert json.loads(output)["host"] == cn1
    assert small_cloud.owner_of(server) == "blue"
    status, output, complaints = desk.run(*boot)
    assert (status, output) == (1, "")
    assert f"server {server} is not booted" in complaints

    geneve = desk.put("geneve", {"trait:HW_NIC_OFFLOAD_GENEVE": "required"})
    flavor, image = desk.wanted()[1::2]
    rebuild = ["rebuild-check", "--server", server, "--flavor", flavor, *way]
    changed = ["--old-image", image, "--image", geneve]
    status, output, _ = desk.run(*rebuild, *changed, "--json")
    assert status == 1
    document = json.loads(output)
    assert document.pop("reason")
    assert document == {
        "verdict": "fail",
        "missing": ["HW_NIC_OFFLOAD_GENEVE"],
        "forbidden": [],
        "traits": {cn1: ["CUSTOM_TRUSTED", "HW_CPU_X86_AVX2"]},
    }


def test_a_name_cannot_command_a_terminal(
    desk: Desk, small_cloud: Cloud, way: list[str]
) -> None:
    for number, host in enumerate(small_cloud.uuids.values()):
        small_cloud.placement.put(
            f"/resource_providers/{host}",
            {"name": f"a\x1b]0;b\x07{number}"},
            version="1.0",
        )
    who = ["--server", new_uuid(), "--project", "blue", "--user", "ann"]
    status, output, _ = desk.run("boot", *who, *desk.wanted(), *way)
    assert status == 0
    assert r" is on host a\x1b]0;b\x07" in output
    assert output.replace("\n", "").isprintable()


def test_a_rebuild_that_needs_no_placement(desk: Desk) -> None:
    flavor, image = desk.wanted()[1::2]
    gpu = desk.put("gpu", {"trait:CUSTOM_GPU": "required"})
    check = ["rebuild-check", "--server", new_uuid(), "--flavor", flavor]
    same = ["--old-image", image, "--image", image]
    status, output, _ = desk.run(*check, *same)
    assert (status, output) == (0, "pass: the image stays the same\n")
    status, output, _ = desk.run(*check, "--old-image", image, "--image", gpu)
    assert status == 1
    assert "forbidden by the flavor: CUSTOM_GPU" in output


def test_a_patch_for_a_node(desk: Desk) -> None:
    path = desk.flavor(
        trait__CUSTOM_B="required",
        trait7__CUSTOM_A="required",
        trait__CUSTOM_C="forbidden",
        resources__CUSTOM_TRUSTED="1",
    )
    image = desk.wanted()[3]
    status, output, _ = desk.run("node-patch", "--flavor", path, "--image", image)
    assert status == 0
    assert json.loads(output) == [
        {
            "op": "add",
            "path": "/instance_info/traits",
            "value": ["CUSTOM_A", "CUSTOM_B", "CUSTOM_TRUSTED"],
        }
    ]
    plain = desk.flavor(trait__CUSTOM_C="forbidden")
    status, output, _ = desk.run("node-patch", "--flavor", plain, "--json")
    assert (status, json.loads(output)) == (0, [])


# What it refuses


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("7", "the flavor is not a JSON object"),
        ('{"vcpus": 1}', "the flavor has no memory_mb or ram"),
    ],
)
def test_a_file_that_is_not_a_flavor(desk: Desk, text: str, complaint: str) -> None:
    status, output, complaints = desk.run("query", "--flavor", desk.put("bad", text))
    assert (status, output) == (2, "")
    assert complaint in complaints


def test_standard_input_can_be_read_once(desk: Desk) -> None:
    status, _, complaints = desk.run("query", "--flavor", "-", "--image", "-")
    assert status == 2
    assert "only one file" in complaints


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--limit", "0"], "invalid limit value: '0'"),
        (["--limit", "ten"], "invalid limit value: 'ten'"),
        (["--isolated-aggregate", "a"], "invalid isolation value: 'a'"),
        (["--isolated-aggregate", f"{ONE}=CUSTOM_X,"], "invalid isolation value"),
    ],
)
def test_an_option_that_is_wrong(
    desk: Desk, arguments: list[str], complaint: str
) -> None:
    assert complaint in desk.usage_error("query", *desk.wanted(), *arguments)


def test_a_server_that_is_not_a_uuid(desk: Desk) -> None:
    who = ["--server", "web-1", "--project", "blue", "--user", "ann"]
    assert "invalid UUID value: 'web-1'" in desk.usage_error(
        "boot", *who, *desk.wanted()
    )


def test_a_bound_needs_what_it_bounds(desk: Desk) -> None:
    many = ["--count", "4", "--at-most", "2", "--project", "blue", "--user", "ann"]
    status, _, complaints = desk.run("boot", *many, *desk.wanted())
    assert (status, complaints) == (2, f"{cli.PROGRAM}: --at-most needs --spread\n")


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "inf"])
def test_a_timeout_that_is_not_a_number(desk: Desk, seconds: str) -> None:
    wrong = ["--timeout", seconds]
    assert "invalid seconds value" in desk.usage_error(
        "candidates", *desk.wanted(), *wrong
    )


def test_the_place_of_placement_is_not_known(desk: Desk) -> None:
    status, _, complaints = desk.run("candidates", *desk.wanted())
    assert status == 3
    assert "the URL of Placement is not known" in complaints


def test_placement_does_not_let_this_caller(desk: Desk, service: Served) -> None:
    way = ["--url", service.url, "--token", "somebody"]
    status, _, complaints = desk.run("candidates", *desk.wanted(), *way)
    assert status == 3
    assert "HTTP 403" in complaints
    assert "request req-" in complaints


def test_a_configuration_file(desk: Desk, service: Served, small_cloud: Cloud) -> None:
    path = desk.directory / "scheduler.conf"
    path.write_text(
        "[placement]\nauth_type = admin_token\ntoken = admin\n"
        f"endpoint_override = {service.url}\n"
    )
    arguments = [*desk.wanted(), "--config-file", str(path)]
    status, output, _ = desk.run("candidates", *arguments)
    assert status == 0
    assert "1 candidate on 1 host" in output
    elsewhere = ["--url", "http://127.0.0.1:9", "--timeout", "7"]
    status, _, complaints = desk.run("candidates", *arguments, *elsewhere)
    assert status == 3
    assert "connection to http://127.0.0.1:9/" in complaints
    path.write_text("[placement]\n")
    status, _, complaints = desk.run("candidates", *arguments)
    assert status == 3
    assert "auth_type is not set" in complaints
    missing = [*desk.wanted(), "--config-file", str(path) + "x"]
    status, _, complaints = desk.run("candidates", *missing)
    assert status == 3
    assert "scheduler.confx" in complaints
    directory = [*desk.wanted(), "--config-file", str(desk.directory)]
    status, _, complaints = desk.run("candidates", *directory)
    assert status == 3
    assert "Is a directory" in complaints


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"# \xfc\n[placement]\nauth_type = none\n", "scheduler.conf: 'utf-8' codec"),
        (
            b"[placement]\nauth_type = none\ntimeout = long\n",
            "Value for option timeout",
        ),
    ],
)
def test_a_configuration_file_that_cannot_be_used(
    desk: Desk, content: bytes, fault: str
) -> None:
    path = desk.directory / "scheduler.conf"
    path.write_bytes(content)
    status, _, complaints = desk.run(
        "candidates", *desk.wanted(), "--config-file", str(path)
    )
    assert status == 3
    assert fault in complaints


def test_a_token_that_no_header_can_carry(desk: Desk, service: Served) -> None:
    way = ["--url", service.url, "--token", "\u20ac"]
    status, _, complaints = desk.run("candidates", *desk.wanted(), *way)
    assert status == 3
    assert "a header cannot be sent" in complaints


def test_what_was_not_sent_was_not_booted(desk: Desk) -> None:
    who = ["--count", "2", "--project", "blue", "--user", "ann"]
    way = ["--url", "http://127.0.0.1:9"]
    status, _, complaints = desk.run("boot", *desk.wanted(), *who, *way)
    assert status == 3
    assert "Connection refused" in complaints
    assert "booted" not in complaints


@pytest.mark.parametrize("is_old", [False, True])
def test_the_connection_breaks_before_the_answer_to_a_claim(
    desk: Desk, small_cloud: Cloud, application: "WSGIApplication", is_old: bool
) -> None:
    claims = "/allocations/" if is_old else "/ledger/v1/placements"
    service = Between(
        without_ledger(application) if is_old else application,
        lambda method, path: method in ("PUT", "POST") and path.startswith(claims),
        lambda: network.hang_up(),
        before=False,
    )
    number = 1 if is_old else 2
    who = ["--count", str(number), "--project", "blue", "--user", "ann"]
    with serving(service) as served:
        port = urlsplit(served.url).port or 0
        with proxy.before(("127.0.0.1", port)) as network:
            way = ["--url", f"http://127.0.0.1:{network.port}", "--token", "admin"]
            arguments = ["--flavor", desk.flavor(), *who, *way]
            status, output, complaints = desk.run("boot", *arguments)
    assert (status, output) == (3, "")
    named = re.search("; servers? (.+) may have been booted", complaints)
    assert named
    uuids = named[1].split(", ")
    # What a single claim may have taken is given back.
    held = [small_cloud.placement.get_allocations(each) for each in uuids]
    assert [bool(each) for each in held] == [not is_old] * number


# Several servers


def test_servers_are_booted_together(
    desk: Desk, small_cloud: Cloud, way: list[str]
) -> None:
    who = ["--project", "blue", "--user", "ann", "--flavor", desk.flavor(), *way]
    known = new_uuid()
    options = ["--server", known, "--count", "3", "--spread", "host", "--lease", "300"]
    prefer = ["--prefer", "trait=CUSTOM_GPU:5", "--prefer", "free=VCPU"]
    status, output, complaints = desk.run("boot", *who, *options, *prefer)
    assert (status, complaints) == (0, "")
    *table, empty, last = output.splitlines()
    assert table[0].split() == [
        "SERVER",
        "HOST",
        "PROVIDER",
        "UUID",
        "AMOUNTS",
        "GROUPS",
    ]
    assert table[1].split()[:2] == [known, "cn3"]
    assert len({line.split()[1] for line in table[1:]}) == len(table[1:]) == 3
    assert empty == ""
    assert last.startswith("3 servers on 3 hosts, the first of them until 2")
    uuids = [line.split()[0] for line in table[1:]]
    again = [word for uuid in uuids for word in ("--server", uuid)]
    status, output, _ = desk.run("boot", *who, *again)
    assert output.splitlines()[-1].startswith("3 servers on 3 hosts, 3 of them already")
    status, output, _ = desk.run("boot", *who, *again, "--json")
    assert [each["server"] for each in json.loads(output)["servers"]] == uuids


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "give --server or --count"),
        (["--server", ONE, "--server", TWO, "--count", "1"], "names 2 servers"),
        (["--server", ONE, "--server", ONE], f"names {ONE} twice"),
    ],
)
def test_which_servers_must_be_clear(desk: Desk, options: list[str], told: str) -> None:
    who = ["--project", "blue", "--user", "ann", *desk.wanted()]
    status, output, complaints = desk.run("boot", *who, *options)
    assert (status, output) == (2, "")
    assert told in complaints


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--count", "0", "invalid positive value: '0'"),
        ("--lease", "-1", "invalid positive value: '-1'"),
        ("--prefer", "trait", "invalid preference value: 'trait'"),
        ("--prefer", "free=VCPU:much", "invalid preference value"),
    ],
)
def test_options_of_placement_that_are_wrong(
    desk: Desk, option: str, value: str, told: str
) -> None:
    who = ["--project", "blue", "--user", "ann", *desk.wanted()]
    assert told in desk.usage_error("boot", *who, "--count", "1", f"{option}={value}")


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--free-pool=pool", "pool"),
        ("--free-pool=", "member_of"),
        ("--tenant-aggregates=", "member_of"),
        ("--spread=rack", "'rack' is not"),
        ("--prefer=colour=red", "colour"),
        ("--prefer=host=cn1", "'cn1' is not"),
        ("--prefer=free=VCPU:0", "0"),
        ("--prefer=free=VCPU:1001", "1001"),
    ],
)
def test_what_the_service_refuses_is_bad_input(
    desk: Desk, small_cloud: Cloud, way: list[str], option: str, told: str
) -> None:
    who = ["--project", "blue", "--user", "ann", "--flavor", desk.flavor(), *way]
    status, _, complaints = desk.run("boot", *who, "--count", "1", option)
    assert status == 2
    assert told in complaints
    assert len(complaints.splitlines()) == 1
