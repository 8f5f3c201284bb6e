"""Values that are found out now and then only."""

import threading

from placement_foundation.observing.recent import Recent


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_value_is_kept_and_then_found_out_anew() -> None:
    clock, found = Clock(), iter(["first", "second"])
    value = Recent(
        lambda: next(found),
        lasts=1,
        patience=30,
        too_late=lambda: "late",
        clock=clock,
    )
    assert [value.get(), value.get()] == ["first", "first"]
    clock.now = 0.999
    assert value.get() == "first"
    clock.now = 1.0
    assert value.get() == "second"


def test_one_thread_finds_out_for_all_that_wait() -> None:
    begun, go = threading.Event(), threading.Event()
    found: list[str] = []

    def find_out() -> str:
        begun.set()
        go.wait(30)
        found.append("found")
        return "value"

    value = Recent(find_out, lasts=1, patience=30, too_late=lambda: "late")
    got: list[str] = []
    waiting = [
        threading.Thread(target=lambda: got.append(value.get())) for _ in range(5)
    ]
    for thread in waiting:
        thread.start()
    assert begun.wait(30)
    go.set()
    for thread in waiting:
        thread.join()
    assert (got, found) == (["value"] * 5, ["found"])


def test_no_thread_waits_longer_than_the_limit() -> None:
    clock, go = Clock(), threading.Event()
    threads: list[threading.Thread] = []

    def find_out() -> str:
        threads.append(threading.current_thread())
        go.wait(30)
        return "value"

    value = Recent(
        find_out, lasts=1, patience=0.01, too_late=lambda: "late", clock=clock
    )
    assert value.get() == "late"
    clock.now = 2
    assert value.get() == "late"
    go.set()
    threads[0].join()
    assert value.get() == "value"
    assert len(threads) == 1
