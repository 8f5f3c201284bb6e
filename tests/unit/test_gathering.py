"""What several threads want is done by one of them."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from placement_foundation.gathering import Gathering

LONG = 30


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


class Group:
    """Serves groups, each once it may."""

    def __init__(self) -> None:
        self.served: list[list[int]] = []
        self.may = threading.Semaphore(0)

    def __call__(self, items: Sequence[int]) -> list[int | None]:
        self.served.append(list(items))
        assert self.may.acquire(timeout=LONG)
        return [each * 10 if each else None for each in items]


def test_those_who_come_meanwhile_are_the_next_group() -> None:
    place, group = Gathering[int, int](patience=LONG), Group()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(place.do, 1, group)
        wait_for(lambda: group.served == [[1]])
        others = [pool.submit(place.do, each, group) for each in (2, 3, 0)]
        wait_for(lambda: len(place._waiting) == 3)
        group.may.release(2)
        assert first.result() == 10
        assert [each.result() for each in others] == [20, 30, None]
    assert [sorted(each) for each in group.served] == [[1], [0, 2, 3]]


def test_who_waits_too_long_is_to_do_it_alone() -> None:
    place, group = Gathering[int, int](patience=0.001), Group()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(place.do, 1, group)
        wait_for(lambda: group.served == [[1]])
        assert place.do(2, group) is None
        group.may.release()
        assert first.result() == 10
    assert group.served == [[1]]
    assert not place._waiting


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_what_goes_wrong_is_raised_where_it_does_and_ends_the_group(
    error: type[BaseException],
) -> None:
    place, group = Gathering[int, int](patience=LONG), Group()

    def fail(items: Sequence[int]) -> list[int | None]:
        raise error

    def ask(number: int) -> int | None:
        try:
            return place.do(number, fail)
        except error:
            return -1

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(place.do, 1, group)
        wait_for(lambda: group.served == [[1]])
        others = [pool.submit(ask, each) for each in (2, 3)]
        wait_for(lambda: len(place._waiting) == 2)
        group.may.release(2)
        assert first.result() == 10
        results = [each.result() for each in others]
    assert sorted(results, key=str) == [-1, None]
    assert place.do(4, group) == 40
