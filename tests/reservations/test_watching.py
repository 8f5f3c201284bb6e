"""One process at a time checks the hosts, whatever happens to it."""

import datetime
import random
import sys
import time
from pathlib import Path
from subprocess import Popen

import pytest

from placement_foundation.database.storage import Database
from placement_foundation.observing import telemetry
from placement_reservations import measure
from placement_reservations.lifecycle import health, watching
from placement_reservations.lifecycle.turn import Loop
from tests import programs
from tests.reservations.cloud import DAY, Cloud, Killed
from tests.threads import at_once

WATCHER = "tests.reservations.watcher"
SECOND = datetime.timedelta(seconds=1)


def looks(cloud: Cloud) -> int:
    """Return how often the first host was looked at, and forget it."""
    found = [call for call in cloud.wire.calls if call.endswith("name=compute-1")]
    cloud.wire.calls.clear()
    return len(found)


def test_of_several_processes_one_checks_the_hosts(cloud: Cloud) -> None:
    loops = [Loop(cloud.world) for _ in range(3)]
    looks(cloud)
    seen = []
    for _ in range(5):
        for loop in loops:
            loop.turn()
        seen.append(looks(cloud))
        cloud.clock.advance(30 * SECOND)
    assert seen == [1, 0, 1, 0, 1]


def test_another_process_takes_over_from_one_that_was_killed(cloud: Cloud) -> None:
    one, other = Loop(cloud.world), Loop(cloud.world)

    def kill(call: str) -> None:
        raise Killed

    cloud.wire.before = kill
    with pytest.raises(Killed):
        one.turn()
    cloud.wire.before = lambda call: None
    looks(cloud)
    cloud.clock.advance(cloud.world.rules.watch - SECOND)
    other.turn()
    assert looks(cloud) == 0
    cloud.clock.advance(SECOND)
    other.turn()
    assert looks(cloud) == 1


def test_a_check_that_takes_long_is_not_begun_again(cloud: Cloud) -> None:
    for number in range(3, 12):
        cloud.make_host(f"compute-{number}")
        cloud.register(f"compute-{number}")
    one, other = Loop(cloud.world), Loop(cloud.world)
    turns = []

    def be_slow(call: str) -> None:
        # In all, much longer than the interval.
        cloud.clock.advance(10 * SECOND)
        before, cloud.wire.before = cloud.wire.before, lambda call: None
        other.turn()
        turns.append(other)
        cloud.wire.before = before

    looks(cloud)
    cloud.wire.before = be_slow
    began = cloud.clock.now()
    one.turn()
    assert cloud.clock.now() - began > 5 * cloud.world.rules.watch
    assert turns
    assert looks(cloud) == 1


def test_a_process_that_was_taken_for_dead_does_not_put_off_the_next_check(
    cloud: Cloud,
) -> None:
    one, other = Loop(cloud.world), Loop(cloud.world)
    begun = []

    def sleep(call: str) -> None:
        cloud.wire.before = lambda call: None
        cloud.clock.advance(2 * cloud.world.rules.watch)
        begun.append(cloud.clock.now())
        other.turn()
        cloud.clock.advance(20 * SECOND)

    cloud.wire.before = sleep
    looks(cloud)
    one.turn()
    assert looks(cloud) == 1
    cloud.clock.time = begun[0] + cloud.world.rules.watch - SECOND
    one.turn()
    assert looks(cloud) == 0
    cloud.clock.advance(SECOND)
    one.turn()
    assert looks(cloud) == 1


def test_a_check_that_failed_is_not_repeated_at_once(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loop = Loop(cloud.world)
    fails = []

    def fail(*_: object) -> int:
        fails.append(cloud.clock.now())
        raise RuntimeError("this is a bug")

    monkeypatch.setattr(health, "watch", fail)
    for _ in range(4):
        loop.turn()
        cloud.clock.advance(cloud.world.rules.watch / 2)
    assert len(fails) == 2
    # This bug is wanted.
    caplog.clear()


def test_a_process_that_reaches_nothing_lets_others_check_the_hosts(
    cloud: Cloud,
) -> None:
    cut_off, other = Loop(cloud.world), Loop(cloud.world)
    with cloud.wire.cut():
        cut_off.turn()
    looks(cloud)
    seen = []
    for _ in range(8):
        with cloud.wire.cut():
            # It is always the first to find that it is time.
            cut_off.turn()
        other.turn()
        seen.append(looks(cloud))
        cloud.clock.advance(cloud.world.rules.watch / 2)
    assert seen == [0, 0, 1, 0, 1, 0, 1, 0]


def test_a_process_that_is_alone_and_reached_nothing_tries_again(cloud: Cloud) -> None:
    loop = Loop(cloud.world)
    with cloud.wire.cut():
        loop.turn()
    cloud.clock.advance(cloud.world.rules.watch)
    looks(cloud)
    loop.turn()
    assert looks(cloud) == 0
    cloud.clock.advance(10 * SECOND)
    loop.turn()
    assert looks(cloud) == 1


def test_what_was_found_counts_until_hosts_can_be_checked_again(cloud: Cloud) -> None:
    with cloud.wire.cut():
        assert health.watch(cloud.world) is None
    assert health.watch(cloud.world) == 0


def test_every_process_reports_what_one_has_found(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Loop(cloud.world), Loop(cloud.world)
    monkeypatch.setattr(health, "watch", lambda *_: 3)
    one.turn()
    reported: dict[str, float] = {}

    def note(what: telemetry.Measure, amount: float = 1, **labels: str) -> None:
        reported[what.name] = amount

    monkeypatch.setattr(telemetry, "record", note)
    other.turn()
    assert reported[measure.SLOTS_OVERUSED.name] == 3
    assert reported[measure.LEASES_DEGRADED.name] == 0
    # While the next check goes on, or fails, this is what is known.
    cloud.clock.advance(cloud.world.rules.watch)
    assert watching.begin(cloud.world)
    other.turn()
    assert reported[measure.SLOTS_OVERUSED.name] == 3


def test_one_of_several_that_begin_together_has_begun(cloud: Cloud) -> None:
    for _ in range(3):
        begun = at_once([lambda: watching.begin(cloud.world)] * 6)
        (claim,) = filter(None, begun)
        watching.end(cloud.world, claim, cloud.clock.now(), 0)
        cloud.clock.advance(cloud.world.rules.watch)


@pytest.mark.lengthy
def test_shifts_of_processes_that_are_killed_do_not_overlap(
    books: Database, books_url: str, tmp_path: Path
) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    history = tmp_path / "history"
    history.touch()

    def begin() -> Popen[bytes]:
        arguments = [books_url, str(history), str(chance.random())]
        return Popen(
            [sys.executable, "-m", WATCHER, *arguments],
            env=programs.environment(tmp_path),
        )

    def wait_for(what: str, times: int) -> None:
        deadline = time.monotonic() + 60
        while history.read_text().count(what) < times:
            assert time.monotonic() < deadline, history.read_text()
            time.sleep(0.02)

    watchers = [begin() for _ in range(3)]
    try:
        for _ in range(3):
            count = history.read_text().count("begins")
            wait_for("begins", count + 1)
            time.sleep(chance.uniform(0, 0.5))
            # The one that has begun, if it has not ended.
            last = history.read_text().split()[-1].partition(".")[0]
            (at_work,) = (each for each in watchers if str(each.pid) == last)
            at_work.kill()
            at_work.wait()
            watchers.remove(at_work)
            watchers.append(begin())
        ended = history.read_text().count("ended")
        wait_for("ended", ended + 2)
    finally:
        for each in watchers:
            each.kill()
            each.wait()
    lines = [line.split() for line in history.read_text().splitlines()]
    confirmed = {shift for what, shift in lines if what == "ended"}
    assert confirmed
    for shift in confirmed:
        began, ends = lines.index(["begins", shift]), lines.index(["ends", shift])
        meanwhile = [what for what, _ in lines[began + 1 : ends]]
        assert "begins" not in meanwhile, (seed, lines)


def test_the_first_turn_after_a_day_checks_the_hosts(cloud: Cloud) -> None:
    loop = Loop(cloud.world)
    loop.turn()
    looks(cloud)
    cloud.clock.advance(DAY)
    loop.turn()
    assert looks(cloud) == 1
