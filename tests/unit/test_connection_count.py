"""The number of connections that each process shows to the others."""

import os

import pytest

from placement_foundation.serving import connection_count
from placement_foundation.serving.connection_count import ConnectionCounts


class Process:
    """What stands for a process in the one that forks it."""


def test_the_process_with_the_fewest_has_the_lowest_count() -> None:
    counts, processes = ConnectionCounts(), [Process() for _ in range(3)]
    first, second, third = (counts.add(process) for process in processes)
    first.set(0)
    # The others do not accept connections yet.
    assert first.is_lowest()
    second.set(2)
    third.set(1)
    assert [each.is_lowest() for each in (first, second, third)] == [True, False, False]
    first.set(1)
    assert [each.is_lowest() for each in (first, second, third)] == [True, False, True]
    first.leave()
    third.leave()
    assert second.is_lowest()


def test_a_process_that_has_ended_is_not_waited_for() -> None:
    counts, killed, other = ConnectionCounts(), Process(), Process()
    counts.add(killed).set(0)
    left = counts.add(other)
    left.set(5)
    assert not left.is_lowest()
    del killed
    # The one that replaces it, which is not ready.
    successor = Process()
    new = counts.add(successor)
    assert left.is_lowest()
    new.set(1)
    assert new.is_lowest()
    assert not left.is_lowest()


def test_more_processes_than_are_counted_leave_connections_to_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_count, "MOST", 2)
    counts, processes = ConnectionCounts(), [Process() for _ in range(4)]
    first, second, third, fourth = (counts.add(process) for process in processes)
    for many, each in enumerate((first, second, third, fourth)):
        each.set(many)
    assert not second.is_lowest()
    assert third.is_lowest()
    assert fourth.is_lowest()
    third.leave()
    assert first.is_lowest()


def test_a_process_that_was_forked_is_seen() -> None:
    counts, here, there = ConnectionCounts(), Process(), Process()
    own, other = counts.add(here), counts.add(there)
    own.set(1)
    child = os.fork()
    if not child:
        other.set(0)
        os._exit(0)
    os.waitpid(child, 0)
    assert not own.is_lowest()
