"""Limits on the threads of a process."""

import sys
import types

import pytest

from placement_foundation import errors
from placement_foundation.http import thread_limit
from placement_foundation.http.thread_limit import ThreadLimit


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_limit, "_own_count", 0)


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


def test_work_is_refused_when_its_part_of_the_threads_is_occupied() -> None:
    thread_limit.announce_threads(8)
    limit_of_two = ThreadLimit(4, 0)
    with limit_of_two.turn("full"):
        for _ in range(2):
            with (
                limit_of_two.turn("full"),
                pytest.raises(errors.Busy, match="full"),
                limit_of_two.turn("full"),
            ):
                pass
