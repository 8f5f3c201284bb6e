"""Notifications: what changes is sent by oslo.messaging, or tried again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from placement_clients.client import Client as Placement
from placement_clients.feed import cli
from placement_clients.feed.forwarding import Forwarder
from placement_clients.feed.notification import Notifications
from placement_clients.feed.state import State
from placement_clients.feed.target import Away
from tests.client import Client, new_uuid, wants

messaging: Any = pytest.importorskip("oslo_messaging")

FILE = """
[oslo_messaging_notifications]
transport_url = fake://
topics = first, second
"""


@pytest.fixture
def config_file(tmp_path: Path) -> str:
    path = tmp_path / "feed.conf"
    path.write_text(FILE)
    return str(path)


@pytest.fixture
def notifications(config_file: str) -> Notifications:
    return Notifications(config_file)


@pytest.fixture
def poll(notifications: Notifications) -> Callable[[], list[Any]]:
    """Give a function that returns what has been sent since it was called last."""
    targets = [(messaging.Target(topic=topic), "info") for topic in ("first", "second")]
    listener = notifications._transport._listen_for_notifications(
        targets, None, batch_size=1, batch_timeout=None
    )._poll_style_listener

    def take() -> list[Any]:
        taken = []
        while batch := listener.poll(0.2):
            taken += [each.message for each in batch]
        return taken

    return take


CHANGE = {
    "id": "abc",
    "type": "allocations.changed",
    "subject": "def",
    "time": "2026-11-21T10:00:00.000000Z",
}


def test_each_change_is_sent_to_each_topic(
    notifications: Notifications, poll: Callable[[], list[Any]]
) -> None:
    notifications.deliver(CHANGE)
    sent = poll()
    assert len(sent) == 2
    for message in sent:
        assert message["publisher_id"].startswith("placement-feed.")
        assert message == {
            "publisher_id": message["publisher_id"],
            "message_id": "abc",
            "event_type": "placement.allocations.changed",
            "priority": "INFO",
            "payload": CHANGE,
            "timestamp": "2026-11-21 10:00:00.000000",
        }


def test_what_could_not_be_sent_is_sent_again_in_order(
    notifications: Notifications,
    poll: Callable[[], list[Any]],
    placement: Placement,
    application: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client(application)
    pauses: list[float] = []
    provider = client.make_provider(VCPU=10)
    forward = Forwarder(
        placement,
        notifications,
        State(tmp_path / "s"),
        print,
        sleep=pauses.append,
    )
    forward.run(once=True)
    consumers = [new_uuid() for _ in range(3)]
    for consumer in consumers:
        body = wants({provider: {"VCPU": 1}})
        assert client.call("PUT", f"/allocations/{consumer}", body).status == 204
    driver: Any = notifications._transport._driver
    send, failures = driver.send_notification, [0, 3, 4]

    def fail(*arguments: Any, **more: Any) -> None:
        assert more["retry"] == 0
        if len(calls) in failures:
            calls.append("failed")
            raise messaging.MessageDeliveryFailure("no route to the broker")
        calls.append("sent")
        send(*arguments, **more)

    calls: list[str] = []
    monkeypatch.setattr(driver, "send_notification", fail)
    forward.run(once=True)
    assert len(pauses) == 3
    subjects = [each["payload"]["subject"] for each in poll()]
    assert list(dict.fromkeys(subjects)) == consumers


def test_a_broker_that_is_not_there_is_away() -> None:
    nobody = Notifications(url="rabbit://guest:guest@127.0.0.1:9/")
    with pytest.raises(Away, match="the notification is not sent"):
        nobody.deliver(CHANGE)


@pytest.mark.parametrize("url", ["nothing", "strange://here", "rabbit://here:port"])
def test_a_wrong_address_is_said(
    url: str, capsys: pytest.CaptureFixture[str], placement: Placement
) -> None:
    call = ["--url", "http://127.0.0.1:9", "--token", "admin", "--notify"]
    assert cli.main([*call, "--once", "--transport-url", url]) == 2
    assert "notifications cannot be sent" in capsys.readouterr().err


def test_a_missing_library_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "oslo_messaging", None)
    call = ["--url", "http://127.0.0.1:9", "--token", "admin", "--notify"]
    assert cli.main(call) == 2
    assert 'pip install "placement-server[notifications]"' in capsys.readouterr().err
