"""The world of every operation on leases and hosts: its services and its rules."""

import dataclasses
import datetime
from typing import Self

from placement_clients.client import Client
from placement_foundation.database.storage import Database
from placement_reservations.capacity import Interval
from placement_reservations.clock import Clock
from placement_reservations.compute import Compute


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """The rules that operators set.

    ``cleaning`` passes after a lease before its room is promised again. Another process
    ends an operation whose claim has not been renewed for ``claim``. When a lease ends,
    its servers have ``patience`` to disappear. A failed end is tried again after
    ``retry``, and hosts are checked every ``watch``. ``notice`` is how long before its
    end a lease has the event for that; 0 means never.
    """

    cleaning: datetime.timedelta = datetime.timedelta()
    claim: datetime.timedelta = datetime.timedelta(minutes=3)
    patience: datetime.timedelta = datetime.timedelta(minutes=10)
    retry: datetime.timedelta = datetime.timedelta(minutes=1)
    watch: datetime.timedelta = datetime.timedelta(minutes=1)
    notice: datetime.timedelta = datetime.timedelta(hours=1)

    def use_of(self, interval: Interval) -> Interval:
        """Return when a lease uses its hosts: until the cleaning after it is over."""
        return Interval(interval.start, interval.end + self.cleaning)


@dataclasses.dataclass(frozen=True, slots=True)
class World:
    """The tables, Placement, the compute service, the time, and the rules."""

    database: Database
    placement: Client
    compute: Compute
    clock: Clock
    rules: Rules = Rules()

    def for_request(self, request_id: str | None) -> Self:
        """Return this world on behalf of an inbound request."""
        return dataclasses.replace(
            self,
            placement=self.placement.for_request(request_id),
            compute=self.compute.for_request(request_id),
        )
