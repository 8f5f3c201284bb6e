"""The metrics that the service reports at ``/metrics``."""

import contextlib
import dataclasses
import os
import signal
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
import webob

from placement import app, conf, measure
from placement.cmd import api
from placement.db import models
from placement.monitoring import fleet
from placement.objects import leasing, total
from placement.objects.ledger import Ledger
from placement.routes import ROUTES
from placement_foundation.database.storage import Database
from placement_foundation.database.trouble import LostRaceError
from placement_foundation.observing import metrics, telemetry
from tests import backends, client, programs
from tests.functional import identity
from tests.reading import Reading
from tests.settings import make_config

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

ON = {("metrics", "enabled"): True}


@pytest.fixture
def counting(database: Database) -> Iterator["WSGIApplication"]:
    """Give a service that counts and believes everybody."""
    yield app.build(make_config(ON), database)
    telemetry.remove(metrics.switch_on(measure.PREFIX, measure.MEASURES))


@pytest.fixture
def asking(counting: "WSGIApplication") -> client.Client:
    return client.Client(counting)


def ask(application: "WSGIApplication", path: str, **options: Any) -> webob.Response:
    return webob.Request.blank(path, **options).get_response(application)


def read(application: "WSGIApplication") -> Reading:
    response = ask(application, "/metrics")
    assert response.status_int == 200
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    return Reading(response.text)


class Change:
    """What was added to the metrics between two readings."""

    def __init__(self, before: Reading, after: Reading) -> None:
        self._before, self._after = before, after

    def get(self, name: str, **labels: str) -> float:
        return self._after.get(name, **labels) - self._before.get(name, **labels)


def test_requests_are_counted_by_operation_method_and_status(
    counting: "WSGIApplication", asking: client.Client
) -> None:
    before = read(counting)
    for name in ("a", "b"):
        asking.call("GET", f"/traits/{name}")
    asking.call("GET", "/traits")
    change = Change(before, read(counting))
    labels = {"operation": "/traits/{name}", "method": "GET", "status": "404"}
    assert change.get("placement_requests_total", **labels) == 2
    assert change.get("placement_requests_total") == 3
    seconds = "placement_request_duration_seconds"
    assert change.get(f"{seconds}_count", operation="/traits", method="GET") == 1
    assert change.get(f"{seconds}_bucket", operation="/traits", le="+Inf") == 1
    assert 0 < change.get(f"{seconds}_sum", operation="/traits") < 60


def test_no_label_grows_with_what_is_asked(
    counting: "WSGIApplication", asking: client.Client
) -> None:
    # Applications of other tests, which may have operations of their own.
    others = read(counting).labelled("operation")
    for number in range(20):
        asking.call(f"COW{number}", "/traits")
        asking.call("GET", f"/cows/{number}")
        ask(counting, f"/anonymous/{number}")
        asking.call("GET", f"/traits?openstack={number}", version=f"1.{number}000")
    reading = read(counting)
    assert reading.get(
        "placement_requests_total", operation="/traits", method="other", status="405"
    )
    assert reading.get("placement_requests_total", operation="none", status="404")
    assert reading.get("placement_requests_total", operation="none", status="401")
    assert reading.get("placement_requests_total", operation="/traits", status="406")
    known = {"none", "/metrics", *ROUTES}
    assert reading.labelled("operation") - others <= known
    assert reading.labelled("method") <= telemetry.METHODS | {"other"}


def test_claims_are_counted_by_outcome(
    counting: "WSGIApplication", asking: client.Client
) -> None:
    provider = asking.make_provider(VCPU=4)
    consumer = client.new_uuid()
    before = read(counting)
    assert asking.claim(consumer, {provider: {"VCPU": 3}}).status == 204
    assert asking.claim(consumer, {provider: {"VCPU": 3}}).status == 409
    assert asking.claim(client.new_uuid(), {provider: {"VCPU": 3}}).status == 409
    assert (
        asking.claim(client.new_uuid(), {client.new_uuid(): {"VCPU": 1}}).status == 400
    )
    several = {client.new_uuid(): client.wants({provider: {"VCPU": 1}})}
    assert asking.call("POST", "/allocations", several).status == 204
    change = Change(before, read(counting))
    claims = "placement_claims_total"
    assert change.get(claims, outcome="granted", code="none") == 2
    assert change.get(claims, outcome="refused", code="concurrent_update") == 1
    assert change.get(claims, outcome="refused", code="undefined_code") == 2
    assert change.get(claims) == 5


def test_a_search_records_its_work_and_the_time_of_its_steps(
    counting: "WSGIApplication", asking: client.Client
) -> None:
    for _ in range(3):
        asking.make_provider(VCPU=4)
    before = read(counting)
    asking.get("/allocation_candidates?resources=VCPU:1&limit=2")
    asking.get("/allocation_candidates?resources=VCPU:5")
    change = Change(before, read(counting))
    assert change.get("placement_candidates_hosts_count") == 2
    # Two answers came from the first two; none of the three has room for five.
    assert change.get("placement_candidates_hosts_sum") == 2
    assert change.get("placement_candidates_answers_sum") == 2
    assert change.get("placement_candidates_answers_bucket", le="0.0") == 1
    for step in ("transaction", "load", "search", "rendering"):
        labels = {"operation": "/allocation_candidates", "step": step}
        assert change.get("placement_step_duration_seconds_count", **labels) == 2


def test_failed_transactions_are_counted_by_cause(
    counting: "WSGIApplication", database: Database
) -> None:
    attempts = []

    def lose_twice(connection: object) -> None:
        attempts.append(connection)
        if len(attempts) < 3:
            raise LostRaceError

    before = read(counting)
    database.write(lose_twice)
    change = Change(before, read(counting))
    for name in ("failures", "retries"):
        total_of = f"placement_transaction_{name}_total"
        assert change.get(total_of, cause="lost_race") == 2
        assert change.get(total_of) == 2


def test_entries_are_counted_once_however_often_their_transaction_is_run(
    counting: "WSGIApplication", asking: client.Client, database: Database
) -> None:
    before = read(counting)
    backends.fail_next_commit(database)
    assert asking.call("PUT", "/traits/CUSTOM_NEW").status == 201
    change = Change(before, read(counting))
    assert change.get("placement_transaction_retries_total") == 1
    entries = "placement_journal_entries_total"
    assert change.get(entries, type="trait.created") == 1
    assert change.get(entries) == 1


def test_connections_are_counted_while_they_are_used(
    counting: "WSGIApplication", database: Database
) -> None:
    before = read(counting)
    with database.engine.connect():
        change = Change(before, read(counting))
        assert change.get("placement_database_connections_in_use") == 1
    change = Change(before, read(counting))
    assert change.get("placement_database_connections_in_use") == 0
    assert read(counting).get("placement_database_connections") >= 1


def test_nothing_of_it_is_there_unless_it_is_wanted(
    application: "WSGIApplication",
) -> None:
    token = {"x-auth-token": "admin"}
    assert ask(application, "/metrics").status_int == 401
    assert ask(application, "/metrics", headers=token).status_int == 404


def test_what_a_page_is_not_asked_for(counting: "WSGIApplication") -> None:
    head = ask(counting, "/metrics", method="HEAD")
    assert (head.status_int, head.body) == (200, b"")
    post = ask(counting, "/metrics", method="POST")
    assert post.status_int == 405
    assert post.headers["allow"] == "GET, HEAD"


CONFIGURATION = """
[metrics]
enabled = true
[placement_database]
connection = sqlite://
[oslo_policy]
policy_file = a file that does not exist.yaml
"""


def test_a_page_that_meets_a_file_in_the_making_has_all_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(metrics.DIRECTORY, str(tmp_path))
    unfinished = tmp_path / "counter_1.db"
    unfinished.touch()
    monkeypatch.setattr(time, "sleep", lambda seconds: unfinished.unlink())
    assert metrics.render() == b""


def test_with_an_identity_service_readers_of_the_fleet_may_see_it(
    database: Database, tmp_path: Path
) -> None:
    path = tmp_path / "placement.conf"
    with identity.running() as server:
        path.write_text(CONFIGURATION + identity.options_of(server))
        application = app.build(conf.read([], [str(path)]), database)
        try:
            assert ask(application, "/metrics").status_int == 401
            for role, status in (("admin", 200), ("reader", 403)):
                headers = {"x-auth-token": server.add_token(role)}
                response = ask(application, "/metrics", headers=headers)
                assert response.status_int == status
            assert "placement:ledger:fleet" in response.text
        finally:
            telemetry.remove(metrics.switch_on(measure.PREFIX, measure.MEASURES))


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def sums(collector: fleet.FleetTotals) -> Reading:
    import prometheus_client

    registry = prometheus_client.CollectorRegistry()
    registry.register(collector)
    return Reading(prometheus_client.generate_latest(registry).decode())


def test_the_fleet_is_asked_of_the_database_now_and_then(
    database: Database, application: "WSGIApplication"
) -> None:
    administrator, clock = client.Client(application), Clock()
    administrator.make_provider(VCPU=4)
    collector = fleet.FleetTotals(database, 60, clock)
    assert sums(collector).get("placement_fleet_providers") == 1
    administrator.make_provider(VCPU=4)
    clock.now += 59
    assert sums(collector).get("placement_fleet_providers") == 1
    clock.now += 1
    assert sums(collector).get("placement_fleet_providers") == 2


def test_sums_remain_while_the_database_is_away(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    collector = fleet.FleetTotals(database, 60, clock)
    before = sums(collector)
    refreshed = "placement_fleet_refreshed_timestamp_seconds"
    assert time.time() - 60 < before.get(refreshed) <= time.time()

    def fail(connection: object) -> total.Totals:
        raise OSError("away")

    monkeypatch.setattr(total, "load", fail)
    clock.now += 100
    assert sums(collector).values == before.values


def test_only_so_many_names_are_shown(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    classes = {
        f"CUSTOM_{number:03}": total.Amounts(providers=number) for number in range(103)
    }
    consumers = {f"TYPE_{number:03}": number for number in range(102)}
    totals = total.Totals(7, classes, consumers)
    monkeypatch.setattr(total, "load", lambda connection: totals)
    reading = sums(fleet.FleetTotals(database, 60))
    shown = reading.labelled("resource_class")
    assert len(shown) == 100
    assert not shown & {"CUSTOM_000", "CUSTOM_001", "CUSTOM_002"}
    assert reading.get("placement_fleet_resource_classes_left_out") == 3
    assert len(reading.labelled("consumer_type")) == 101
    assert reading.get("placement_fleet_consumers", consumer_type="other") == 1
    assert reading.get("placement_fleet_consumers") == sum(consumers.values())


@dataclasses.dataclass(frozen=True, slots=True)
class Service:
    """A service with two processes, and a place of its own for metrics."""

    url: str
    watched: str
    process: int

    def read(self) -> Reading:
        with urllib.request.urlopen(f"{self.watched}/", timeout=30) as response:
            return Reading(response.read().decode())

    def get(self, path: str) -> None:
        request = urllib.request.Request(self.url + path)
        request.add_header("x-auth-token", "admin")
        urllib.request.urlopen(request, timeout=30).read()

    def workers(self) -> list[int]:
        children = Path(f"/proc/{self.process}/task/{self.process}/children")
        return [int(pid) for pid in children.read_text().split()]

    def counted(self, pid: int) -> bool:
        """Return whether a process has counted requests."""
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            # A file may be closed between the list of them and the look at it.
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(entry).endswith(f"counter_{pid}.db"):
                    return True
        return False


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    address = f"127.0.0.1:{programs.free_port()}"
    variables = {**programs.environment(tmp_path), "OS_METRICS__ADDRESS": address}
    command = "placement.cmd.api", "--workers=2"
    with programs.serving_as(*command, home=tmp_path, variables=variables) as started:
        url, process = started
        service = Service(url, f"http://{address}", process)
        # It says so before they are made, one after the other.
        deadline = time.monotonic() + 60
        while len(service.workers()) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(service.workers()) == 2
        yield service


LISTS = {"operation": "/resource_providers", "method": "GET", "status": "200"}


@pytest.mark.embedded
def test_the_numbers_are_those_of_all_processes_even_of_one_that_died(
    service: Service,
) -> None:
    asked = 0
    # Which process takes a connection is for the system to say.
    while asked < 20 or not all(map(service.counted, service.workers())):
        service.get("/resource_providers")
        asked += 1
        assert asked < 1000
    first, second = service.workers()
    for _ in range(5):
        assert service.read().get("placement_requests_total", **LISTS) == asked
    os.kill(first, signal.SIGKILL)
    while first in service.workers() or len(service.workers()) < 2:
        service.get("/resource_providers")
        asked += 1
    after = service.read()
    assert after.get("placement_requests_total", **LISTS) == asked
    assert second in service.workers()
    assert after.get("placement_database_connections_in_use") == 0


def test_an_address_that_is_taken_is_reported_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for address, told in ((f"127.0.0.1:{port}", "in use"), ("cow", "HOST:PORT")):
            monkeypatch.setenv("OS_METRICS__ADDRESS", address)
            assert api.main(["--port", "0"]) == 1
            (line,) = capsys.readouterr().err.splitlines()
            assert told in line


def test_the_providers_in_memory_report_their_size_and_reads(
    counting: "WSGIApplication", asking: client.Client
) -> None:
    path = "/allocation_candidates?resources=VCPU:1"
    refreshes = "placement_forest_refreshes_total"
    asking.make_provider(VCPU=4)
    before = read(counting)
    asking.get(path)
    first = read(counting)
    assert Change(before, first).get(refreshes, extent="all") == 1
    assert first.get("placement_forest_trees") == 1
    asking.make_provider(VCPU=4)
    asking.get(path)
    asking.get(path)
    second = read(counting)
    assert Change(first, second).get(refreshes, extent="changes") == 1
    assert Change(first, second).get(refreshes) == 1
    assert second.get("placement_forest_trees") == 2


def test_entries_of_the_journal_are_counted_and_its_readers_shown(
    counting: "WSGIApplication", asking: client.Client
) -> None:
    before = read(counting)
    provider = asking.make_provider(VCPU=4)
    assert asking.claim(client.new_uuid(), {provider: {"VCPU": 1}}).status == 204
    refused = asking.claim(client.new_uuid(), {provider: {"VCPU": 9}})
    assert refused.status == 409
    after = read(counting)
    written = {
        kind: Change(before, after).get("placement_journal_entries_total", type=kind)
        for kind in ("provider.created", "inventory.changed", "allocations.changed")
    }
    assert set(written.values()) == {1}, written
    cursor = asking.get("/ledger/v1/changes?since=now")["cursor"]
    waiting = threading.Thread(
        target=asking.get, args=[f"/ledger/v1/changes?since={cursor}&wait=20"]
    )
    waiting.start()
    readers = "placement_journal_readers_waiting"
    deadline = time.monotonic() + 15
    while not read(counting).get(readers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert read(counting).get(readers) == 1
    asking.make_provider()
    waiting.join()
    assert read(counting).get(readers) == 0


def test_placements_are_counted_by_result_and_leases_that_expire(
    counting: "WSGIApplication", asking: client.Client, database: Database
) -> None:
    provider = asking.make_provider(VCPU=4)
    server, other = client.new_uuid(), client.new_uuid()
    before = read(counting)

    def place(*consumers: str, **members: Any) -> int:
        body = {
            "query": "resources=VCPU:2",
            "consumers": consumers,
            "project_id": "blue",
            "user_id": "ann",
            "consumer_type": "INSTANCE",
            **members,
        }
        return asking.call("POST", "/ledger/v1/placements", body).status

    unknown = "resources=VCPU:1&required=CUSTOM_NOWHERE"
    assert place(server, dry_run=True) == 200
    assert place(server, lease_seconds=60) == 201
    assert place(server) == 200
    assert place(client.new_uuid(), client.new_uuid()) == 409
    assert place(client.new_uuid(), query=unknown) == 400
    assert place(other, client.new_uuid(), at_least=1) == 201
    sooner = sa.update(models.LEASES).values(expires_at=1)
    with database.engine.begin() as connection:
        connection.execute(sooner)
    leasing.end_all_due(Ledger(database))
    change = Change(before, read(counting))
    for result in ("dry_run", "placed", "existed", "no_room", "refused", "partly"):
        assert change.get("placement_placements_total", result=result) == 1, result
    assert change.get("placement_placements_total") == 6
    assert change.get("placement_placements_duration_seconds_count") == 6
    assert change.get("placement_leases_expired_total") == 1
    assert asking.usages(provider) == {"VCPU": 2}
