"""Chores begin in every process that is forked, or answers a request."""

import gc
import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from placement_foundation.http.middleware import Surrounded
from placement_foundation.serving.background import Chore, Chores

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def nothing(
    environment: "WSGIEnvironment", start_response: "StartResponse"
) -> Iterable[bytes]:
    return []


def test_the_first_request_begins_them() -> None:
    done = threading.Event()
    chores = Chores([Chore("one", done.set, 0.01)])
    application = Surrounded(nothing, begin=chores.start)
    assert not done.wait(0.1)
    application({}, lambda *_: lambda _: None)
    assert done.wait(10)


def test_a_process_that_is_forked_does_them_and_its_parent_does_not() -> None:
    reading, writing = os.pipe()
    own = os.getpid()

    def tell() -> None:
        os.write(writing, f"{os.getpid()}\n".encode())

    chores = Chores([Chore("one", tell, 0.01)])
    child = os.fork()
    if not child:
        threading.Event().wait(1)
        os._exit(0)
    os.waitpid(child, 0)
    told = os.read(reading, 10_000).split()
    assert chores
    assert told
    assert {int(each) for each in told} == {child}
    assert own != child


def test_they_end_with_the_application() -> None:
    done = threading.Event()
    chores = Chores([Chore("to be ended", done.set, 0.01)])
    chores.start()
    assert done.wait(10)
    del chores
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "to be ended":
            thread.join(10)
            assert not thread.is_alive()
