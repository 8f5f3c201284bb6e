"""Values that are found out now and then only."""

import threading

from placement_foundation.observing.recent import Recent


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
