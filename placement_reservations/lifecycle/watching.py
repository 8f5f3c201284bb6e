"""The watch: one process at a time checks all hosts, once in an interval.

It is a claim on all hosts, which expires when it is time for the next one. While it
goes on, it is renewed before each host; a process that was killed renews nothing.
"""

import dataclasses
import datetime
import uuid

import sqlalchemy as sa

from placement_reservations.store import claim as claims
from placement_reservations.store.claim import Claim
from placement_reservations.world import World

SUBJECT = "hosts"
NO_GRACE = datetime.timedelta()


def begin(world: World, grace: datetime.timedelta = NO_GRACE) -> Claim | None:
    """Claim all hosts, if it is time to, and no other process has.

    :param grace: for how long other processes may go first when it is time
    """

    def work(connection: sa.Connection) -> Claim | None:
        now, term = world.clock.now() - grace, world.rules.watch
        last = claims.find(connection, SUBJECT)
        if last:
            return claims.take_over(connection, last, now, term)
        first = Claim(SUBJECT, str(uuid.uuid4()), claims.WATCH, {"overused": 0})
        claims.take(connection, first, now + term)
        return first

    try:
        return world.database.write(work)
    except claims.Busy:  # Another process began the first watch meanwhile.
        return None


def go_on(world: World, claim: Claim) -> None:
    """Keep the hosts claimed.

    :raises Lost: another process has taken over the watch
    """
    _renew(world, claim, world.clock.now())


def end(
    world: World, claim: Claim, began: datetime.datetime, overused: int | None
) -> None:
    """Let the next watch begin when the interval is over.

    :param overused: how many servers use more than was promised, if known
    :raises Lost: another process has taken over the watch
    """
    if overused is not None:
        claim = dataclasses.replace(claim, document={"overused": overused})
    _renew(world, claim, began)


def _renew(world: World, claim: Claim, since: datetime.datetime) -> None:
    expires_at = since + world.rules.watch
    world.database.write(lambda connection: claims.renew(connection, claim, expires_at))


def count_overused(connection: sa.Connection) -> int:
    """Return how many servers the last watch that ended found beyond the slots."""
    last = claims.find(connection, SUBJECT)
    return last.document["overused"] if last else 0
