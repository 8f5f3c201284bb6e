"""What the processes of a web server know of each other's connections."""

import os

import pytest

from placement_foundation.serving import load
from placement_foundation.serving.load import Loads


class Process:
    """What stands for a process in the one that forks it."""


def test_the_process_with_the_fewest_has_the_lowest_load() -> None:
    loads, processes = Loads(), [Process() for _ in range(3)]
    first, second, third = (loads.add(process) for process in processes)
    first.show(0)
    # The others do not accept connections yet.
    assert first.is_lowest()
    second.show(2)
    third.show(1)
    assert [each.is_lowest() for each in (first, second, third)] == [True, False, False]
    first.show(1)
    assert [each.is_lowest() for each in (first, second, third)] == [True, False, True]
    first.withdraw()
    third.withdraw()
    assert second.is_lowest()


def test_a_process_is_replaced() -> None:
    loads, killed, other = Loads(), Process(), Process()
    loads.add(killed).show(0)
    left = loads.add(other)
    left.show(5)
    assert not left.is_lowest()
    del killed
    # The new one is not ready.
    successor = Process()
    new = loads.add(successor)
    assert left.is_lowest()
    new.show(1)
    assert new.is_lowest()
    assert not left.is_lowest()


def test_a_process_that_is_silent_is_absent_until_it_goes_on() -> None:
    loads, processes = Loads(), [Process() for _ in range(2)]
    silent, other = (loads.add(process) for process in processes)
    for each in (silent, other):
        each.give_sign(100)
    silent.show(0)
    other.show(1)
    other.give_sign(100 + load.SILENT_SECONDS)
    assert not other.is_lowest()
    other.give_sign(101 + load.SILENT_SECONDS)
    assert other.is_lowest()
    # It may be asked to accept before it has shown itself again, and be alone.
    other.withdraw()
    assert silent.is_lowest()
    other.show(1)
    silent.show(0)
    assert not other.is_lowest()


def test_loads_of_more_processes_are_not_shared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(load, "MOST", 2)
    loads, processes = Loads(), [Process() for _ in range(4)]
    first, second, third, fourth = (loads.add(process) for process in processes)
    for many, each in enumerate((first, second, third, fourth)):
        each.show(many)
        each.give_sign(1)
    assert not second.is_lowest()
    assert third.is_lowest()
    assert fourth.is_lowest()
    third.withdraw()
    assert first.is_lowest()


def test_a_process_that_was_forked_is_seen() -> None:
    loads, here, there = Loads(), Process(), Process()
    own, other = loads.add(here), loads.add(there)
    own.show(1)
    child = os.fork()
    if not child:
        try:
            other.show(0)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert not own.is_lowest()
