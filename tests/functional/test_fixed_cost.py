"""What no request does: it was done once, before."""

import builtins
import functools
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest

from placement import app
from placement.forest import cache
from placement.forest.vocabulary import Vocabulary
from placement_foundation.database.storage import Database
from placement_foundation.http import policy
from tests import settings
from tests.client import Client, new_uuid

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

# Functions that no request calls, by a part of the name of their file; all functions
# there, if none is named.
NEVER = {
    "/re/": {"compile"},
    "/inspect.py": set[str](),
    "/importlib/": set[str](),
    "/jsonschema/": {"check_schema", "create", "extend"},
    "/logging/__init__.py": {"makeRecord", "format", "getMessage", "findCaller"},
    "/sqlalchemy/sql/compiler.py": {
        "process_expanding",
        "_process_parameters_for_postcompile",
        "visit_select",
    },
    "/sqlalchemy/engine/base.py": {"_execute_context"},
    "/microversion_parse/": {"fold_headers", "parse_version_string"},
    "/oslo_policy/": set[str](),
}
# The same, of functions that are not written in Python.
NEVER_IN_C = {
    ("posix", "stat"),
    ("posix", "lstat"),
    ("posix", "open"),
    ("posix", "scandir"),
    ("posix", "listdir"),
    ("_io", "open"),
    ("builtins", "compile"),
    ("builtins", "exec"),
}


class Watcher:
    """Notes the calls of functions that no request should make."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._import = builtins.__import__

    def __enter__(self) -> "Watcher":
        builtins.__import__ = self.note_import
        sys.setprofile(self.note)
        return self

    def __exit__(self, *unused: object) -> None:
        sys.setprofile(None)
        builtins.__import__ = self._import

    def note_import(self, name: str, *args: Any, **options: Any) -> Any:
        # ``datetime`` imports this one itself, each time.
        if name != "time":
            self.calls.append(f"import {name}")
        return self._import(name, *args, **options)

    def note(self, frame: FrameType, event: str, what: Any) -> None:
        if event == "call":
            code = frame.f_code
            for part, names in NEVER.items():
                if part in code.co_filename and (not names or code.co_name in names):
                    self.calls.append(f"{code.co_filename} {code.co_name}")
        elif event == "c_call":
            name = (getattr(what, "__module__", None), getattr(what, "__name__", None))
            if name in NEVER_IN_C:
                self.calls.append(".".join(map(str, name)))


@pytest.fixture
def client(
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> Client:
    # As in a service that logs no requests, whatever other tests have set up.
    caplog.set_level(logging.WARNING, logger="placement")
    # Otherwise one request a second searches for policy files, and one every three
    # seconds looks for writes of other services.
    monkeypatch.setattr(policy, "SEARCH_EVERY", 3600)
    monkeypatch.setattr(cache, "CHECK_EVERY", 3600)
    application: WSGIApplication = request.getfixturevalue("application")
    return Client(application)


def test_the_watcher_sees_what_it_is_for() -> None:
    import inspect
    import os
    import re

    def read_line() -> None:
        import json  # noqa: F401

    for act in (
        lambda: re.compile(new_uuid()),
        lambda: inspect.signature(read_line),
        lambda: os.stat("/"),
        read_line,
    ):
        with Watcher() as watcher:
            act()
        assert watcher.calls, act


def requests(client: Client, host: str) -> Iterator[Callable[[], Any]]:
    """Yield requests of the kinds that each compute service makes each minute."""
    for path in ("", "/inventories", "/traits", "/aggregates", "/usages"):
        yield functools.partial(client.get, f"/resource_providers/{host}{path}")
    yield functools.partial(client.get, f"/resource_providers/{host}/allocations")
    yield functools.partial(client.get, f"/resource_providers?in_tree={host}")
    yield functools.partial(client.get, f"/allocations/{new_uuid()}")
    for version in ("1.14", "1.39"):
        path = f"/resource_providers/{host}/inventories"
        yield functools.partial(client.call, "GET", path, None, version)


def test_a_small_read_does_nothing_that_could_be_done_once(client: Client) -> None:
    host = client.make_provider(VCPU=8)
    for request in requests(client, host):
        # The first one may load, compile and remember things.
        for _ in range(2):
            request()
        with Watcher() as watcher:
            request()
        assert not watcher.calls, request


def test_a_read_after_a_claim_compiles_nothing(client: Client) -> None:
    host = client.make_provider(VCPU=8)
    path = f"/resource_providers/{host}/usages"
    for used in range(1, 4):
        client.claim(new_uuid(), {host: {"VCPU": 1}})
        with Watcher() as watcher:
            assert client.get(path)["usages"] == {"VCPU": used}
    assert not watcher.calls


def test_traits_are_not_parsed_again_however_often_others_claim(
    client: Client, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Client(app.build(settings.make_config(), database))
    parsed: list[tuple[str, ...]] = []
    parse = Vocabulary.in_order

    def in_order(words: Vocabulary, ids: Any) -> tuple[str, ...]:
        parsed.append(parse(words, ids))
        return parsed[-1]

    monkeypatch.setattr(Vocabulary, "in_order", in_order)
    host = client.make_provider(VCPU=8)
    names = ["HW_CPU_X86_AVX512F", "HW_CPU_X86_AVX2"]
    body = {"resource_provider_generation": 1, "traits": names}
    assert client.call("PUT", f"/resource_providers/{host}/traits", body).status == 200
    for used in range(1, 6):
        assert other.claim(new_uuid(), {host: {"VCPU": 1}}).status == 204
        summaries = client.get("/allocation_candidates?resources=VCPU:1")[
            "provider_summaries"
        ]
        assert summaries[host]["resources"]["VCPU"]["used"] == used
        assert sorted(summaries[host]["traits"]) == sorted(names)
    # With the whole cloud, and with the first change.
    assert len(parsed) == 2


def test_a_policy_file_costs_one_look(
    client: Client, database: Database, tmp_path: Path
) -> None:
    directory = tmp_path / "policy.d"
    directory.mkdir()
    for file in (tmp_path / "policy.yaml", directory / "10.yaml"):
        file.write_text('"admin_api": "role:admin"')
    files = {
        ("oslo_policy", "policy_file"): str(tmp_path / "policy.yaml"),
        ("oslo_policy", "policy_dirs"): [str(directory)],
    }
    with_files = Client(app.build(settings.make_config(files), database))
    host = client.make_provider(VCPU=8)
    for _ in range(3):
        with Watcher() as watcher:
            with_files.get(f"/resource_providers/{host}")
    # The file, the directory, and the file in it.
    assert watcher.calls == ["posix.stat"] * 3
