"""What another service writes is in the journal soon."""

import re
import time
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from placement import app
from placement.db import models
from placement.objects.journal import tidying
from placement.objects.journal.keeping import Keeper
from placement_foundation.database.storage import Database
from tests import programs, settings
from tests.client import Client
from tests.db.test_restart import status_of

CHANGES = "/ledger/v1/changes"
# Long enough for a machine with much to do, and too short for what a minute brings.
SOON = 25
OFTEN = 0.2


@pytest.mark.lengthy
def test_what_another_service_wrote_is_a_gap_soon(
    database: Database, tmp_path: Path
) -> None:
    client = Client(app.build(settings.make_config(), database))
    client.make_provider(VCPU=8)
    cursor = client.get(f"{CHANGES}?since=now")["cursor"]
    with programs.start(
        *("placement.cmd.api", "--port=0", "--workers=1"),
        home=tmp_path,
        connection=database.engine.url.render_as_string(hide_password=False),
        OS_API__AUTH_STRATEGY="noauth2",
    ) as service:
        assert service.stdout
        found = re.search(r"http://\S+/", service.stdout.readline())
        assert found, service.communicate(timeout=SOON)
        assert status_of(f"{found[0]}resource_providers") == 200
        provider = models.ResourceProvider
        foreign = sa.update(provider).values(generation=provider.generation + 1)
        with database.engine.begin() as connection:
            connection.execute(foreign)
        end = time.monotonic() + SOON
        while not (changes := client.get(f"{CHANGES}?since={cursor}")["changes"]):
            assert time.monotonic() < end
            time.sleep(OFTEN)
            assert status_of(f"{found[0]}resource_providers") == 200
        service.terminate()
    [gap] = changes
    assert (gap["type"], gap["request"]) == ("journal.gap", "noticed by the service")


def test_many_gaps_are_one_a_minute(client: Client, journal: Keeper) -> None:
    cursor = client.get(f"{CHANGES}?since=now")["cursor"]
    for second in range(3 * tidying.EVERY):
        journal.miss()
        tidying.record_gap(journal, partial(int, second))
    changes = client.get(f"{CHANGES}?since={cursor}")["changes"]
    assert [each["type"] for each in changes] == ["journal.gap"] * 3
    tidying.record_gap(journal, partial(int, 3 * tidying.EVERY))
    assert not journal.has_missed
