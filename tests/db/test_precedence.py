"""Questions that take long rest while short requests are being answered."""

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from placement.model.journal import EntryPage
from placement.objects.journal import following
from placement_foundation import precedence
from tests.answering import being_answered
from tests.client import Client, new_uuid

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

QUERY = "resources=VCPU:40"
WHAT_IF = {"query": QUERY, "ask": "explanation", "ignore_consumers": [new_uuid()]}


@pytest.fixture
def client(application: "WSGIApplication") -> Client:
    return Client(application)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of this thread; it has always computed enough to rest."""
    pauses: list[float] = []
    own = threading.get_ident()

    def rest(seconds: float) -> None:
        assert threading.get_ident() == own
        pauses.append(seconds)

    monkeypatch.setattr(precedence, "SLICE", 0)
    monkeypatch.setattr(precedence._of_process, "_sleep", rest)
    return pauses


@pytest.fixture
def short() -> Iterator[None]:
    """A short request that is being answered in another thread."""
    with being_answered(precedence._of_process):
        yield


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"/ledger/v1/explanation?{QUERY}", None),
        ("GET", f"/ledger/v1/capacity?{QUERY}", None),
        ("POST", "/ledger/v1/what-if", WHAT_IF),
        ("GET", "/ledger/v1/fleet", None),
    ],
)
def test_a_question_about_all_hosts_rests_at_each(
    client: Client, pauses: list[float], method: str, path: str, body: Any
) -> None:
    for _ in range(5):
        client.make_provider(VCPU=8)
    assert pauses == []
    assert client.call(method, path, body).status == 200
    assert len(pauses) >= 5


@pytest.mark.usefixtures("short")
def test_what_reads_the_database_does_not_rest(
    client: Client, pauses: list[float]
) -> None:
    host = client.make_provider(VCPU=80)
    client.claim(new_uuid(), {host: {"VCPU": 80}})
    path = f"/ledger/v1/explanation?{QUERY}&holders=true"
    assert client.call("GET", path).status == 200
    assert pauses == []


@pytest.mark.usefixtures("short")
def test_claims_and_candidates_do_not_rest(client: Client, pauses: list[float]) -> None:
    host = client.make_provider(VCPU=8)
    assert client.call("GET", "/allocation_candidates?resources=VCPU:1").status == 200
    assert client.claim(new_uuid(), {host: {"VCPU": 1}}).status == 204
    assert pauses == []


def test_nobody_rests_for_a_client_that_waits_for_changes(
    application: "WSGIApplication",
    client: Client,
    pauses: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client.make_provider(VCPU=8)
    follow, waits = following.follow, threading.Event()

    def note(*arguments: Any) -> EntryPage:
        waits.set()
        return follow(*arguments)

    monkeypatch.setattr(following, "follow", note)
    path = "/ledger/v1/changes?since=now&wait=30"
    waiting = threading.Thread(target=Client(application).call, args=("GET", path))
    waiting.start()
    assert waits.wait(60)
    assert client.call("GET", f"/ledger/v1/capacity?{QUERY}").status == 200
    assert waiting.is_alive()
    assert pauses == []
    client.make_provider(VCPU=8)
    waiting.join()
