"""Whether a process lives, and is ready: the answers to probes."""

import logging
import threading
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
import webob

from placement import app
from placement.db import migration, models
from placement.objects import standard_name
from placement.objects.ledger import Ledger
from placement_foundation.database.storage import Database
from placement_foundation.http import monitoring
from tests import statements
from tests.settings import make_config

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

WELL = "database: ok\nschema: ok\nnames: ok\nown_tables: ok\n"


def ask(
    application: "WSGIApplication", path: str, method: str = "GET"
) -> webob.Response:
    return webob.Request.blank(path, method=method).get_response(application)


@pytest.mark.parametrize("strategy", ["noauth2", "keystone"])
def test_a_service_that_is_well_says_so_to_everybody(
    database: Database, strategy: str
) -> None:
    config = make_config({("api", "auth_strategy"): strategy})
    application = app.build(config, database)
    for path, text in (("/livez", "ok\n"), ("/readyz", WELL)):
        response = ask(application, path)
        assert (response.status_int, response.text) == (200, text)
        assert response.headers["cache-control"] == "no-store"
        head = ask(application, path, "HEAD")
        assert (head.status_int, head.body) == (200, b"")
        post = ask(application, path, "POST")
        assert (post.status_int, post.headers["allow"]) == (405, "GET, HEAD")


def test_liveness_asks_no_other_service(
    application: "WSGIApplication", database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with statements.statements(database) as recorded:
        ask(application, "/livez")
    assert not recorded
    assert not caplog.records


def test_a_result_is_kept_for_the_probes_that_come_next() -> None:
    calls: list[float] = []
    moments = [0.0]

    def check() -> bool:
        calls.append(moments[-1])
        return True

    page = monitoring.probes({"database": check}, lambda: moments[-1])["/readyz"]
    for moment in (0.0, 0.5, 0.999, 1.0, 1.5, 2.5):
        moments.append(moment)
        assert ask(page, "/readyz").status_int == 200
    assert calls == [0.0, 1.0, 2.5]


def test_a_database_at_another_revision_is_not_ready(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with database.engine.begin() as connection:
        text = "UPDATE alembic_version SET version_num = '{}'"
        connection.execute(sa.text(text.format("cow")))
    try:
        response = ask(app.build(make_config(), database), "/readyz")
    finally:
        with database.engine.begin() as connection:
            head = migration.SCHEMA.head
            connection.execute(sa.text(text.format(head)))
    assert response.status_int == 503
    assert response.text == (
        "database: ok\nschema: failed\nnames: unknown\nown_tables: unknown\n"
    )
    [said] = [each for each in caplog.messages if "not ready" in each]
    assert said == (
        "not ready: schema: the database has revision cow, and this release needs "
        f"{migration.SCHEMA.head}"
    )


def test_a_database_that_lacks_a_name_is_not_ready(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    trait = models.Trait.name == "HW_CPU_X86_VMX"
    with database.engine.begin() as connection:
        connection.execute(sa.delete(models.Trait).where(trait))
    try:
        response = ask(app.build(make_config(), database), "/readyz")
    finally:
        standard_name.synchronise(Ledger(database))
    assert response.status_int == 503
    assert response.text == (
        "database: ok\nschema: ok\nnames: failed\nown_tables: unknown\n"
    )
    missing = "names: 1 standard names are missing: HW_CPU_X86_VMX"
    assert f"not ready: {missing}" in caplog.messages


def test_nothing_leaks_of_a_database_that_is_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def away() -> bool:
        raise OSError("db.secret.example refuses placement")

    page = monitoring.probes({"database": away, "schema": lambda: True})["/readyz"]
    response = ask(page, "/readyz")
    assert response.status_int == 503
    assert response.text == "database: failed\nschema: unknown\n"
    assert "db.secret.example" in caplog.text


def test_probes_do_not_wait_for_a_hanging_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(monitoring, "PATIENCE", 0.01)
    answered, calls = threading.Event(), []

    def hang() -> bool:
        calls.append(threading.current_thread())
        return answered.wait(30)

    page = monitoring.probes({"fine": lambda: True, "slow": hang, "next": lambda: True})
    for _ in range(3):
        response = ask(page["/readyz"], "/readyz")
        assert response.status_int == 503
        assert response.text == "fine: ok\nslow: failed\nnext: unknown\n"
    answered.set()
    calls[0].join()
    assert len(calls) == 1
    assert ask(page["/readyz"], "/readyz").status_int == 200


def test_a_lesser_check_only_warns() -> None:
    def away() -> bool:
        raise OSError("away")

    lesser = {"comfort": lambda: False, "luxury": away}
    page = monitoring.probes({"need": lambda: True}, lesser=lesser)["/readyz"]
    response = ask(page, "/readyz")
    assert response.status_int == 200
    assert response.text == "need: ok\ncomfort: warning\nluxury: warning\n"
    page = monitoring.probes({"need": lambda: False}, lesser=lesser)["/readyz"]
    response = ask(page, "/readyz")
    assert response.status_int == 503
    assert response.text == "need: failed\ncomfort: unknown\nluxury: unknown\n"


def test_readiness_needs_no_turn_among_the_transactions(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = threading.BoundedSemaphore(1)
    turns.acquire()
    monkeypatch.setattr(database, "_turns", turns)
    assert ask(app.build(make_config(), database), "/readyz").text == WELL
