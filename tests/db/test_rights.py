"""The Placement API needs rights on the shared tables only.

What we add to them may be missing, or the database user may have no right to read or to
write it. The users are really created, on a server.
"""

import logging
import random
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
import webob

from placement import app
from placement.cmd import status
from placement.db import models
from placement.objects import own_table, standard_name
from placement.objects.ledger import Ledger
from placement.objects.own_table import Fault
from placement_foundation.database import storage
from placement_foundation.database.storage import Database
from tests import backends, settings
from tests.db import rights
from tests.db.rights import Restricted
from tests.instances import NOTICED_AFTER, Instance, Instances, ask
from tests.property.cloud import Writer

on_servers = pytest.mark.skipif(
    backends.KIND == "sqlite", reason="SQLite has no users and no rights"
)
# oslo.upgradecheck draws its table with an old name of the style.
old_style = pytest.mark.filterwarnings("ignore:the 'ALL' constant is deprecated")
HOSTS = "/allocation_candidates?resources=VCPU:1"
STAMPS = models.FOREST_STAMPS.name


@pytest.fixture
def user(database: Database) -> Iterator[Restricted]:
    """Give a user that has rights on the shared tables."""
    url = database.engine.url.render_as_string(hide_password=False)
    with rights.restricted(url) as user:
        user.grant(*rights.SHARED)
        user.grant_sequences()
        yield user


@pytest.fixture
def restricted(user: Restricted) -> Iterator[Instance]:
    instance = Instance(user.url)
    yield instance
    instance.close()


def fault_of(instance: Instance) -> Fault | None:
    return instance.database.read(
        lambda connection: own_table.find_fault(connection, models.FOREST_STAMPS)
    )


@on_servers
@pytest.mark.parametrize("granted", [(), ("SELECT",), ("INSERT", "UPDATE"), rights.ALL])
def test_the_whole_api_works_whatever_rights_there_are_on_our_own_tables(
    granted: tuple[str, ...],
    user: Restricted,
    restricted: Instance,
    instances: Instances,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if granted:
        user.grant(STAMPS, rights=granted)
    plain = instances.start(keeps=False)
    # Missing names are added, which is a change to be recorded as well.
    with plain.database.engine.begin() as connection:
        connection.execute(sa.delete(models.Trait))
    standard_name.synchronise(Ledger(restricted.database))
    seed = random.randrange(10**6)
    writer = Writer(random.Random(seed), [restricted.client])
    for _ in range(40):
        act = writer.write()
        for question in (writer.question(), *writer.questions_about_usages()[:1]):
            assert ask(restricted, question) == ask(plain, question), (seed, act)
    fault = {
        (): Fault.UNREADABLE,
        ("SELECT",): Fault.UNWRITABLE,
        ("INSERT", "UPDATE"): Fault.UNREADABLE,
        rights.ALL: None,
    }[granted]
    assert fault_of(restricted) is fault
    assert restricted.keeper.is_keeping == (fault is None)
    assert caplog.text.count(f"the table {STAMPS}") == (fault is not None)
    if fault:
        assert f"the table {STAMPS} {fault.value}" in caplog.text


@on_servers
def test_rights_that_come_and_go_are_noticed_without_a_restart(
    user: Restricted, restricted: Instance, instances: Instances
) -> None:
    plain = instances.start(keeps=False)
    for _ in range(2):
        for change, keeps in ((user.grant, True), (user.revoke, False)):
            change(STAMPS)
            host = restricted.client.make_provider(VCPU=8)
            assert ask(restricted, HOSTS) == ask(plain, HOSTS)
            assert host in ask(restricted, HOSTS)["provider_summaries"]
            assert restricted.keeper.is_keeping == keeps


@on_servers
def test_others_notice_what_a_process_could_not_record(
    restricted: Instance, instances: Instances
) -> None:
    one, plain = instances.start(), instances.start(keeps=False)
    restricted.client.make_provider(VCPU=8)
    assert ask(one, HOSTS) == ask(plain, HOSTS)
    assert one.keeper.is_keeping
    host = restricted.client.make_provider(VCPU=8)
    one.clock.now += NOTICED_AFTER
    assert ask(one, HOSTS) == ask(plain, HOSTS)
    assert host in ask(one, HOSTS)["provider_summaries"]
    assert not one.keeper.is_keeping


@on_servers
@old_style
def test_probes_and_the_upgrade_check_say_which_rights_are_missing(
    user: Restricted,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    database = backends.connect(user.url)
    monkeypatch.setattr(storage, "connect", lambda settings: database)
    try:
        application = app.start(settings.make_config())
        ready = webob.Request.blank("/readyz").get_response(application)
        assert ready.status_int == 200
        assert ready.text.endswith("names: ok\nown_tables: warning\n")
        monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", user.url)
        assert status.main(["upgrade", "check"]) == 1
        printed = " ".join(capsys.readouterr().out.replace("|", " ").split())
        assert f"The table {STAMPS} may not be read by the database user." in printed
        assert "Result: Failure" not in printed
    finally:
        database.engine.dispose()


@on_servers
def test_a_key_from_a_sequence_needs_a_right_as_well(
    user: Restricted, restricted: Instance, database: Database
) -> None:
    table = sa.Table(
        "numbered", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True)
    )
    with database.engine.begin() as connection:
        table.create(connection)
    try:
        user.grant(table.name)
        missing = Fault.UNWRITABLE if backends.KIND == "postgresql" else None
        for expected in (missing, None):
            fault = restricted.database.write(
                lambda connection: own_table.find_fault(connection, table)
            )
            assert fault is expected
            user.grant_sequences()
    finally:
        with database.engine.begin() as connection:
            table.drop(connection)


def test_a_table_that_is_missing_is_known_to_be_and_found_when_it_comes(
    empty: Database, caplog: pytest.LogCaptureFixture
) -> None:
    table = sa.Table(
        "later", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True)
    )

    def look(connection: sa.Connection) -> tuple[bool, list[str]]:
        return (
            own_table.is_writable(connection, table),
            list(own_table.list_faults(connection, [table])),
        )

    sentence = f"The table later {Fault.MISSING.value}."
    for run in (empty.read, empty.write, empty.read):
        assert run(look) == (False, [sentence])
    assert caplog.text.count("the table later is missing") == 1
    with empty.engine.begin() as connection:
        table.create(connection)
    for run in (empty.read, empty.write):
        assert run(look) == (True, [])
    with empty.engine.begin() as connection:
        table.drop(connection)

    attempts = []

    def use(connection: sa.Connection) -> bool:
        attempts.append(1)
        if own_table.is_writable(connection, table):
            own_table.execute(connection, table, sa.insert(table), {"id": 1})
            return True
        return False

    # The transaction begins again, and does without.
    assert not empty.write(use)
    assert len(attempts) == 2
