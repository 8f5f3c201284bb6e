"""Limits on the threads of a process."""

import sys
import threading
import time
import types

import pytest

from placement_foundation import errors
from placement_foundation.http import thread_limit
from placement_foundation.http.thread_limit import ThreadLimit


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_limit, "_own_count", 0)


def test_a_share_is_a_part_of_the_threads_that_the_server_announces() -> None:
    assert ThreadLimit(2).most == thread_limit.ASSUMED // 2
    thread_limit.announce_threads(8)
    assert ThreadLimit(2).most == 4
    assert ThreadLimit(4).most == 2


def test_a_share_has_at_least_one_thread() -> None:
    thread_limit.announce_threads(1)
    assert ThreadLimit(8).most == 1


def test_an_operator_sets_the_share_as_a_number() -> None:
    thread_limit.announce_threads(8)
    assert ThreadLimit(2, most=7).most == 7


@pytest.mark.parametrize(
    "options", [{"threads": b"6"}, {b"threads": b"6"}, {"threads": "6"}]
)
def test_uwsgi_says_how_many_threads_there_are(
    options: dict[object, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = types.SimpleNamespace(opt=options)
    monkeypatch.setitem(sys.modules, "uwsgi", server)
    assert thread_limit.count_threads() == 6


def test_uwsgi_without_the_option_has_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = types.SimpleNamespace(opt={"master": True})
    monkeypatch.setitem(sys.modules, "uwsgi", server)
    assert thread_limit.count_threads() == 1


def test_mod_wsgi_says_how_many_threads_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = types.SimpleNamespace(threads_per_process=15)
    monkeypatch.setitem(sys.modules, "mod_wsgi", server)
    assert thread_limit.count_threads() == 15


def test_work_is_refused_when_the_share_is_occupied() -> None:
    limit_of_two = ThreadLimit(1, most=2)
    first = limit_of_two.take("full")
    with limit_of_two.turn("full"), pytest.raises(errors.Busy, match="full"):
        limit_of_two.take("full")
    limit_of_two.take("full")
    first()
    limit_of_two.take("full")


def test_releasing_twice_releases_one_thread() -> None:
    limit_of_one = ThreadLimit(1, most=1)
    release = limit_of_one.take("")
    release()
    limit_of_one.take("")
    release()
    with pytest.raises(errors.Busy):
        limit_of_one.take("")


def test_quick_work_waits_for_its_turn() -> None:
    limit_of_one = ThreadLimit(1, most=1, patience=30)
    release = limit_of_one.take("")
    threading.Timer(0.05, release).start()
    limit_of_one.take("")


def test_nothing_waits_for_work_that_hangs() -> None:
    limit_of_one = ThreadLimit(1, most=1, patience=0.05)
    limit_of_one.take("")
    time.sleep(0.05)
    began = time.monotonic()
    with pytest.raises(errors.Busy):
        limit_of_one.take("")
    assert time.monotonic() - began < 0.05
