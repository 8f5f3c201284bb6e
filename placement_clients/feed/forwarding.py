"""The forwarder: reads the feed, delivers each change, and stores its cursor."""

import dataclasses
import datetime
import random
import time
import uuid
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    write_to_textfile,
)

from placement_clients import record
from placement_clients.client import Client, encode_query
from placement_clients.errors import PlacementError, Unavailable, may_pass
from placement_clients.feed.state import State
from placement_clients.feed.target import Away, Refused, Target
from placement_clients.output import describe
from placement_clients.record import Json

PATH = "/ledger/v1/changes"
VERSION = "latest"
# The longest wait of the service for news, and the longest pause, in seconds.
LONGEST_WAIT = 25
LONGEST_PAUSE = 60.0
# The longest pause that a target can request.
DAY = 86400.0
# How long to rest after an empty page that came at once: all places of the service to
# wait are taken.
REST = 1.0, 2.0
PARSE_PAGE = record.parser_with(changes=list, cursor=str, more=bool)
PARSE_CHANGE = record.parser_with(
    id=str, type=str, time=str, subject=object, cursor=str
)
# The token, the password or the roles are wrong.
NOT_ALLOWED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class Gone(Exception):
    """The service does not have the changes since the cursor any more."""


class FeedCounts:
    """The counts of the forwarder since its start, as metrics of Prometheus."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.delivered = self._counter("delivered", "Changes that were delivered.")
        self.refused = self._counter("refused", "Changes that the target refused.")
        self.retries = self._counter(
            "retries", "Attempts that failed and were repeated."
        )
        self.gaps = self._counter("gaps", "Times that the cursor was gone.")
        self.last_time = Gauge(
            "placement_feed_caught_up_seconds",
            "When it last had delivered everything.",
            registry=self.registry,
        )

    def _counter(self, name: str, meaning: str) -> Counter:
        return Counter(f"placement_feed_{name}", meaning, registry=self.registry)


@dataclasses.dataclass(slots=True)
class Forwarder:
    """Delivers changes at least once, in order.

    :param complain: takes a sentence about a failure
    :param filters: parameters of the query that leave changes out
    :param resync: whether to go on with a ``journal.gap`` if the cursor is gone
    :param skip_refused: whether to go on after a refusal of the target
    :param metrics: the file for the counts
    :param sleep: waits for some seconds
    """

    placement: Client
    target: Target
    kept: State
    complain: Callable[[str], None]
    filters: str = ""
    resync: bool = False
    skip_refused: bool = False
    metrics: Path | None = None
    sleep: Callable[[float], None] = time.sleep
    counts: FeedCounts = dataclasses.field(default_factory=FeedCounts)

    def run(self, *, once: bool = False) -> None:
        """Deliver changes.

        :param once: whether to stop when everything is delivered; otherwise never
        :raises Refused: the target refuses a change
        :raises Gone: the service does not have the changes any more
        :raises PlacementError: the service refuses this; a refusal of the caller is
            raised only with ``once``, and otherwise tried again
        """
        # A longer wait than the timeout of the client would count as a failure.
        wait = min(LONGEST_WAIT, int(self.placement.answer_seconds / 2))
        cursor = self.kept.load() or self._begin(once)
        while True:
            began = time.monotonic()
            try:
                page = self._read(cursor, 0 if once else wait, once)
            except Gone:
                if not self.resync:
                    raise
                cursor = self._resynchronise(once)
                continue
            for change in page["changes"]:
                self._deliver(change)
                self.kept.save(change["cursor"])
            if page["cursor"] != cursor:
                cursor = page["cursor"]
                self.kept.save(cursor)
            if not page["more"]:
                self.counts.last_time.set_to_current_time()
            self._publish()
            if once and not page["more"]:
                return
            is_idle = not (once or page["changes"] or page["more"])
            if is_idle and time.monotonic() - began < REST[0]:
                self.sleep(random.uniform(*REST))

    def _begin(self, once: bool) -> str:
        """Return the cursor of now, which is stored before any change is read."""
        cursor = str(self._read("now", 0, once)["cursor"])
        self.kept.save(cursor)
        return cursor

    def _resynchronise(self, once: bool) -> str:
        """Report that changes were missed, and return a cursor to go on from."""
        self.counts.gaps.inc()
        self.complain("the cursor is gone: changes were missed")
        # The cursor is read first, so that no later change is missed as well.
        cursor = str(self._read("now", 0, once)["cursor"])
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        gap = {
            "id": str(uuid.uuid4()),
            "type": "journal.gap",
            "time": f"{now.isoformat(timespec='microseconds')}Z",
            "subject": None,
            "generation": None,
            "root": None,
            "before": None,
            "after": None,
            "cursor": cursor,
        }
        self._deliver(gap)
        self.kept.save(cursor)
        return cursor

    def _read(self, since: str, wait: int, once: bool) -> Json:
        """Return a page, after as many attempts as needed.

        :raises Gone: the service does not have the changes any more
        :raises PlacementError: as ``run`` does
        """
        query = encode_query({"since": since, "wait": str(wait)})
        if self.filters:
            query += f"&{self.filters}"
        attempt = 0
        while True:
            try:
                document = self.placement.get(PATH, version=VERSION, query=query)
                page = PARSE_PAGE(document)
                for change in page["changes"]:
                    PARSE_CHANGE(change)
                return page
            except PlacementError as exc:
                if exc.status == HTTPStatus.GONE:
                    raise Gone(exc.reason) from exc
                # After any answer of a proxy, even with a status of success.
                passes = isinstance(exc, Unavailable) or may_pass(exc.status)
                if exc.status == HTTPStatus.NOT_FOUND or not passes:
                    raise
                if once and exc.status in NOT_ALLOWED:
                    raise
                attempt += 1
                self._pause(attempt, describe(exc))

    def _deliver(self, change: Json) -> None:
        """Deliver a change, after as many attempts as needed.

        :raises Refused: the target refuses it
        """
        attempt = 0
        while True:
            try:
                self.target.deliver(change)
                self.counts.delivered.inc()
                return
            except Refused as exc:
                if not self.skip_refused:
                    raise
                self.counts.refused.inc()
                self.complain(f"{exc}: {change['id']} is left out")
                return
            except Away as exc:
                attempt += 1
                self._pause(attempt, str(exc), exc.pause)

    def _pause(self, attempt: int, reason: str, wanted: float | None = None) -> None:
        self.counts.retries.inc()
        if attempt == 1:
            self.complain(f"{reason}; trying again")
        self._publish()
        longest = min(LONGEST_PAUSE, 0.5 * 2 ** min(attempt, 10))
        growing = random.uniform(longest / 2, longest)
        self.sleep(max(growing, min(wanted or 0, DAY)))

    def _publish(self) -> None:
        if self.metrics:
            write_to_textfile(str(self.metrics), self.counts.registry)
