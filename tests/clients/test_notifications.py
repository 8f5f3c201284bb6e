"""``placement-feed --notify`` with RabbitMQ: killed at any moment, it misses nothing.

RabbitMQ is at PLACEMENT_TEST_RABBITMQ_URL, by default on this machine.
"""

import importlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement_clients.feed import cli
from tests.client import Client, new_uuid, wants
from tests.serving import Served

pytestmark = pytest.mark.client

URL = os.environ.get(
    "PLACEMENT_TEST_RABBITMQ_URL", "rabbit://guest:guest@127.0.0.1:5672/"
)
KILLS = 8
PROGRAM = "import sys; from placement_clients.feed.cli import main; sys.exit(main())"


@pytest.fixture
def queue() -> Iterator[Any]:
    """Give a queue of its own that gets the notifications of a topic."""
    kombu: Any = importlib.import_module("kombu")

    topic = f"placement-test-{uuid.uuid4().hex}"
    with kombu.Connection(URL.replace("rabbit://", "amqp://")) as connection:
        exchange = kombu.Exchange("openstack", type="topic", durable=False)
        name = f"{topic}.info"
        queue = kombu.Queue(name, exchange, name, durable=False)
        simple = connection.SimpleQueue(queue)
        yield topic, simple
        simple.close()
        queue(connection.channel()).delete()


def take(simple: Any, wait: float) -> list[Any]:
    """Return the notifications that there are, in their order."""
    taken: list[Any] = []
    while True:
        try:
            message = simple.get(timeout=wait)
        except simple.Empty:
            return taken
        message.ack()
        taken.append(json.loads(json.loads(message.body)["oslo.message"]))


def test_killed_at_any_moment_it_misses_no_notification(
    service: Served, application: Any, queue: Any, tmp_path: Path
) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    client, (topic, simple) = Client(application), queue
    provider = client.make_provider(VCPU=1000)
    config, state = tmp_path / "feed.conf", tmp_path / "state"
    config.write_text(
        "[placement]\nauth_type = admin_token\ntoken = admin\n"
        f"endpoint = {service.url}\n"
        "[oslo_messaging_notifications]\n"
        f"transport_url = {URL}\ntopics = {topic}\n"
    )
    arguments = [*("--notify", "--config-file", str(config), "--state", str(state))]
    assert cli.main([*arguments, "--once"]) == 0
    consumers: list[str] = []
    delivered: list[Any] = []
    for _ in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", PROGRAM, *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for _ in range(8):
            consumers.append(new_uuid())
            body = wants({provider: {"VCPU": 1}})
            path = f"/allocations/{consumers[-1]}"
            assert client.call("PUT", path, body).status == 204
        seen, deadline = len(delivered), time.monotonic() + 60
        while len(delivered) == seen and time.monotonic() < deadline:
            delivered += take(simple, 0.01)
        time.sleep(chance.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert cli.main([*arguments, "--once"]) == 0
    delivered += take(simple, 2)
    subjects = [each["payload"]["subject"] for each in delivered]
    assert list(dict.fromkeys(subjects)) == consumers
    host = socket.gethostname()
    assert {each["publisher_id"] for each in delivered} == {f"placement-feed.{host}"}
