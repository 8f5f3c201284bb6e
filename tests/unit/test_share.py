"""Shares of the threads of a process."""

import sys
import threading
import time
import types

import pytest

from placement_foundation import errors
from placement_foundation.http import share
from placement_foundation.http.share import Held, Share


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share, "_own_count", 0)


def test_a_share_is_a_part_of_the_threads_that_the_server_announces() -> None:
    assert Share(2).most == share.ASSUMED // 2
    share.announce_threads(8)
    assert Share(2).most == 4
    assert Share(4).most == 2


def test_a_share_has_at_least_one_thread() -> None:
    share.announce_threads(1)
    assert Share(8).most == 1


def test_an_operator_sets_the_share_as_a_number() -> None:
    share.announce_threads(8)
    assert Share(2, most=7).most == 7


@pytest.mark.parametrize(
    "options", [{"threads": b"6"}, {b"threads": b"6"}, {"threads": "6"}]
)
def test_uwsgi_says_how_many_threads_there_are(
    options: dict[object, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = types.SimpleNamespace(opt=options)
    monkeypatch.setitem(sys.modules, "uwsgi", server)
    assert share.count_threads() == 6


def test_uwsgi_without_the_option_has_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = types.SimpleNamespace(opt={"master": True})
    monkeypatch.setitem(sys.modules, "uwsgi", server)
    assert share.count_threads() == 1


def test_mod_wsgi_says_how_many_threads_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = types.SimpleNamespace(threads_per_process=15)
    monkeypatch.setitem(sys.modules, "mod_wsgi", server)
    assert share.count_threads() == 15


def test_work_is_refused_when_the_share_is_occupied() -> None:
    share_of_two = Share(1, most=2)
    first = share_of_two.take("full")
    with share_of_two.turn("full"), pytest.raises(errors.Busy, match="full"):
        share_of_two.take("full")
    share_of_two.take("full")
    first()
    share_of_two.take("full")


def test_releasing_twice_releases_one_thread() -> None:
    share_of_one = Share(1, most=1)
    release = share_of_one.take("")
    release()
    share_of_one.take("")
    release()
    with pytest.raises(errors.Busy):
        share_of_one.take("")


def test_quick_work_waits_for_its_turn() -> None:
    share_of_one = Share(1, most=1, patience=30)
    release = share_of_one.take("")
    threading.Timer(0.05, release).start()
    share_of_one.take("")


def test_nothing_waits_for_work_that_hangs() -> None:
    share_of_one = Share(1, most=1, patience=0.05)
    share_of_one.take("")
    time.sleep(0.05)
    began = time.monotonic()
    with pytest.raises(errors.Busy):
        share_of_one.take("")
    assert time.monotonic() - began < 0.05


def test_a_body_occupies_a_thread_until_it_is_closed() -> None:
    share_of_one = Share(1, most=1)
    body = Held([b"a", b"b"], share_of_one.take(""))
    assert list(body) == [b"a", b"b"]
    with pytest.raises(errors.Busy):
        share_of_one.take("")
    body.close()
    share_of_one.take("")


def test_a_forgotten_body_occupies_no_thread() -> None:
    share_of_one = Share(1, most=1)
    body = Held([], share_of_one.take(""))
    del body
    share_of_one.take("")
