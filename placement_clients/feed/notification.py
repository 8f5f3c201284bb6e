"""Changes as notifications of oslo.messaging, as the services of OpenStack send them.

The library is imported when it is needed: it comes with the extra ``notifications``.
"""

import importlib
import socket
import warnings
from typing import Any

from oslo_config import cfg

from placement_clients.feed.target import Away
from placement_clients.output import Unusable
from placement_clients.record import Json

EXTRA = "placement-server[notifications]"
EVENT_TYPE = "placement."
PRIORITY = "INFO"
# The version of the envelope that all services use.
ENVELOPE = 2.0
ONCE = 0


class Notifications:
    """Sends each change to the topics for notifications.

    The ``Notifier`` of the library logs failures to send, and goes on. Here that would
    be a gap, so this calls the transport, as the ``Notifier`` does. A message that was
    sent has been confirmed by the message broker.

    :param config_file: has ``[oslo_messaging_notifications]``; None means the defaults
    :param url: of the message broker, instead of the one in the file
    :raises Unusable: the library is missing, or the file or the URL cannot be used
    """

    def __init__(self, config_file: str | None = None, url: str | None = None) -> None:
        with warnings.catch_warnings():
            # It imports eventlet, which warns of itself; nothing here uses it.
            warnings.simplefilter("ignore")
            try:
                self._messaging = importlib.import_module("oslo_messaging")
            except ModuleNotFoundError as exc:
                raise Unusable(f'--notify needs: pip install "{EXTRA}"') from exc
            self._connect(config_file, url)
        self._publisher = f"placement-feed.{socket.gethostname()}"

    def _connect(self, config_file: str | None, url: str | None) -> None:
        config = cfg.ConfigOpts()
        try:
            config([], default_config_files=[config_file] if config_file else [])
            self._transport = self._messaging.get_notification_transport(config, url)
        except (
            ValueError,
            cfg.Error,
            self._messaging.DriverLoadFailure,
            self._messaging.InvalidTransportURL,
        ) as exc:
            raise Unusable(f"notifications cannot be sent: {exc}") from exc
        self._topics = config.oslo_messaging_notifications.topics

    def deliver(self, change: Json) -> None:
        """Send a change, once to each topic.

        :raises Away: the message broker did not take it
        """
        message = notification_of(change, self._publisher)
        for topic in self._topics:
            to = self._messaging.Target(topic=f"{topic}.{PRIORITY.lower()}")
            try:
                self._transport._send_notification(
                    to, {}, message, version=ENVELOPE, retry=ONCE
                )
            except Exception as exc:
                # Each driver has errors of its own, besides those of the library.
                raise Away(f"the notification is not sent: {exc}") from exc


def notification_of(change: Json, publisher: str) -> dict[str, Any]:
    """Return a change as a notification: the payload is that of the feed."""
    return {
        "message_id": change["id"],
        "publisher_id": publisher,
        "event_type": EVENT_TYPE + change["type"],
        "priority": PRIORITY,
        "payload": change,
        "timestamp": change["time"].replace("T", " ").removesuffix("Z"),
    }
